package mcp

import (
	"context"
	"net/http"

	"mailtree/mcp/tool"
)

// NudgeError is the last line of an answer to POST /nudge that ends early.
type NudgeError struct {
	Error string `json:"error"`
}

// nudge tells agents of their mail, once, or with ?watch=1 as long as the client and the server
// stay. The answer is one JSON document a line, one for each agent that was due.
func (s *Server) nudge(w http.ResponseWriter, r *http.Request) {
	if s.cfg.Nudge == nil {
		notFound(w, r)
		return
	}
	by, watch := tool.CallerOf(r.Context()), r.URL.Query().Get("watch") != ""
	s.lasting(w, r, func(ctx context.Context, a *answer) {
		a.Header().Set("Content-Type", "application/x-ndjson")
		_ = a.FlushError() // a client that is gone ends ctx
		say := func(v any) {
			if _, err := a.Write(append(tool.Encode(v), '\n')); err == nil {
				_ = a.FlushError() // a client that is gone ends ctx
			}
		}
		err := s.cfg.Nudge(ctx, by, watch, say)
		switch {
		case err == nil:
		case ctx.Err() == nil:
			s.log.Error("nudge failed", "err", err)
			say(NudgeError{tool.InternalText})
		case !watch: // what was not said would be taken for nobody to tell
			say(NudgeError{"the server ended before it had looked at everybody: ask again"})
		}
	})
}
