package mcp

import (
	"context"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/mcp/tool"
)

// All large responses share one memory limit, and all request bodies share another. Before a call reads mail, it
// reserves memory for its response (tool.Memory). The request releases the memory once the response has been written or
// dropped. The limit covers TCP, the socket and all toolsets. Other users on the socket have a separate limit.

// answers contains the memory limits for the server's own user and for guests.
type answers struct{ own, guests *tool.Memory }

func newAnswers(bytes int64) answers {
	return answers{own: tool.NewMemory(bytes), guests: tool.NewMemory(bytes / guestShare)}
}

// holdAnswer attaches a hold (tool.Hold) to a request, through which the request reserves memory within the caller's
// limit. Call end to release that memory.
func (s *Server) holdAnswer(r *http.Request) (held *http.Request, end func()) {
	memory := s.answers.own
	if s.limitsOf(r) == &s.guests {
		memory = s.answers.guests
	}
	h := memory.Hold()
	return r.WithContext(tool.WithHold(r.Context(), h)), h.End
}

// withHold copies the memory hold of an HTTP request into the context of a method call that the request contains.
func (s *Server) withHold(ctx context.Context, extra *mcp.RequestExtra) context.Context {
	if extra == nil {
		return ctx
	}
	if request, ok := s.inFlight.byID.Load(extra.Header.Get(requestHeader)); ok {
		ctx = tool.WithHold(ctx, tool.HoldOf(request.(openRequest).done))
	}
	return ctx
}
