package mcp

import (
	"context"

	"mailtree/maildir"
	"mailtree/mcp/tool"
)

// NudgeAsk is the body of POST /mailtree/nudge.
type NudgeAsk struct {
	Watch bool `json:"watch,omitempty"` // as long as the client and the server stay, not once
}

// nudge tells agents of their mail. The answer is one line for each agent that was due.
func (s *Server) nudge(ctx context.Context, _ *maildir.Project, ask *NudgeAsk, say func(any) error) error {
	told := func(v any) { _ = say(v) } // a client that is gone ends ctx
	err := s.cfg.Nudge(ctx, tool.CallerOf(ctx), ask.Watch, told)
	if ctx.Err() != nil && !ask.Watch { // what was not said would be taken for nobody to tell
		return say(failure{"the server ended before it had looked at everybody: ask again"})
	}
	return err
}
