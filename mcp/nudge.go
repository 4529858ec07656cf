package mcp

import (
	"context"

	"mailtree/maildir"
	"mailtree/mcp/tool"
)

// NudgeAsk is the body of POST /mailtree/nudge.
type NudgeAsk struct {
	Watch bool `json:"watch,omitempty"` // keep running until the client disconnects or the server stops; otherwise run once
}

// nudge notifies agents about their mail. The response contains one line for each agent with mail that has not been
// announced yet.
func (s *Server) nudge(ctx context.Context, _ *maildir.Project, ask *NudgeAsk, say func(any) error) error {
	told := func(v any) { _ = say(v) } // if the client disconnects, ctx is canceled
	err := s.cfg.Nudge(ctx, tool.CallerOf(ctx), ask.Watch, told)
	if ctx.Err() != nil && !ask.Watch { // without this check, the response would look complete to the client
		return say(failure{"the server stopped before it had checked all agents: try again"})
	}
	return err
}
