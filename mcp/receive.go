package mcp

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/mcp/protocol"
	"mailtree/mcp/tool"
)

// receive wraps every method of the MCP server. It recovers from panics, because the SDK runs methods in its own
// goroutines, where the HTTP handler cannot recover and a panic would end the process.
func (s *Server) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				s.log.Error("mcp: panic", "method", method, "panic", p, "stack", string(debug.Stack()))
				res, err = nil, &jsonrpc.Error{Code: protocol.CodeInternal, Message: tool.InternalText}
			}
		}()
		extra := req.GetExtra()
		ctx, cancel := s.lifetime(s.withHold(s.inFlight.withAdmission(withCaller(ctx, extra), req), extra), method, extra)
		defer cancel()
		if method == "initialize" {
			s.sessions.setOwner(req.GetSession().ID(), ownerOf(tool.CallerOf(ctx)))
		}
		if name := namedBy(req); len(name) > maxEcho {
			return nil, &jsonrpc.Error{Code: protocol.CodeParams,
				Message: fmt.Sprintf("the name or uri of %s is %d bytes long, over the limit of %d", method, len(name), maxEcho)}
		}
		if res, err = next(ctx, method, req); err == nil {
			s.keepSession(ctx, req)
		}
		return res, err
	}
}

// countCalls reports each call to one of the toolset's tools to Config.Called.
func (s *Server) countCalls(toolset string) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			res, err := next(ctx, method, req)
			if called, ok := res.(*mcp.CallToolResult); ok && err == nil && s.cfg.Called != nil {
				s.cfg.Called(toolset, namedBy(req), called.IsError)
			}
			return res, err
		}
	}
}

// namedBy returns the name or URI in a request. If the name or URI is unknown, the SDK repeats it in its error.
func namedBy(req mcp.Request) string {
	switch p := req.GetParams().(type) {
	case *mcp.CallToolParamsRaw:
		return p.Name
	case *mcp.ReadResourceParams:
		return p.URI
	case *mcp.SubscribeParams:
		return p.URI
	case *mcp.UnsubscribeParams:
		return p.URI
	case *mcp.GetPromptParams:
		return p.Name
	}
	return ""
}

// lifetime cancels a method's context when its HTTP request ends, and a subscription's context when the server stops.
// The protocol would allow a method in a session to continue after its connection breaks, so that the client can
// reconnect and get the response. This server's clients cannot reconnect, and a waiting call would pop mail that no
// client reads.
func (s *Server) lifetime(ctx context.Context, method string, extra *mcp.RequestExtra) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := func() bool { return true }
	if !strings.HasPrefix(method, "notifications/") { // a notification is answered before it is handled
		stop = s.inFlight.bind(extra, cancel)
	}
	if method == "subscriptions/listen" {
		go s.endWithServer(ctx, cancel)
	}
	return ctx, func() { stop(); cancel() }
}
