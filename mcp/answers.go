package mcp

import (
	"context"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/mcp/tool"
)

// The server counts large answers against one limit, as it does bodies: a call reserves the memory
// of its answer before it reads what it answers (tool.Memory), and its request gives the memory
// back when the answer has been written or dropped. The limit is one for TCP and the socket and for
// all toolsets; other users on the socket have a share of their own.

// answers are the limits of the server's own user and of guests.
type answers struct{ own, guests *tool.Memory }

func newAnswers(bytes int64) answers {
	return answers{own: tool.NewMemory(bytes), guests: tool.NewMemory(bytes / guestShare)}
}

// holdAnswer gives a request a hold on the answers of its caller. end gives back what it has
// reserved.
func (s *Server) holdAnswer(r *http.Request) (held *http.Request, end func()) {
	memory := s.answers.own
	if s.limitsOf(r) == &s.guests {
		memory = s.answers.guests
	}
	h := memory.Hold()
	return r.WithContext(tool.WithHold(r.Context(), h)), h.End
}

// withHold puts the hold of the HTTP request into the context of a method that came in it.
func (s *Server) withHold(ctx context.Context, extra *mcp.RequestExtra) context.Context {
	if extra == nil {
		return ctx
	}
	if request, ok := s.underWay.byID.Load(extra.Header.Get(requestHeader)); ok {
		ctx = tool.WithHold(ctx, tool.HoldOf(request.(openRequest).done))
	}
	return ctx
}
