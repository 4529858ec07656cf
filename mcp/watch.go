package mcp

import (
	"context"
	"net/http"

	"mailtree/maildir"
	"mailtree/mcp/tool"
)

// WatchAsk is the body of POST /mailtree/watch.
type WatchAsk struct {
	Project string `json:"project"`         // as of DeskAsk; "": every project
	After   *int64 `json:"after,omitempty"` // the Seq behind which to begin; nil: from now on
}

// Happening is one line of the answer, which lasts until the caller or the server goes. The first
// line has only a Seq: the watching has begun there.
type Happening struct {
	Seq    int64  `json:"seq"`
	Slug   string `json:"project,omitempty"` // where every project is asked for
	At     string `json:"at,omitempty"`
	What   string `json:"what,omitempty"` // as of maildir.Happening
	Agent  string `json:"agent,omitempty"`
	ID     string `json:"id,omitempty"`
	Thread string `json:"thread_id,omitempty"`
	Text   string `json:"text,omitempty"`
}

func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	var ask WatchAsk
	if !s.readVerb(w, r, &ask) {
		return
	}
	var p *maildir.Project
	var err error
	if ask.Project != "" {
		p, err = s.cfg.Store.ProjectNamed(r.Context(), ask.Project)
	}
	var after int64
	if err == nil {
		after, err = s.cfg.Store.LastChange(r.Context())
	}
	if ask.After != nil {
		after = *ask.After
	}
	if err != nil {
		s.answerVerb(w, r, nil, err)
		return
	}
	s.lasting(w, r, func(ctx context.Context, a *answer) {
		a.Header().Set("Content-Type", "application/x-ndjson")
		say := func(h Happening) error {
			if _, err := a.Write(append(tool.Encode(h), '\n')); err != nil {
				return err
			}
			return a.FlushError()
		}
		err := say(Happening{Seq: after})
		if err == nil {
			err = s.cfg.Store.Watch(ctx, p, after, func(h *maildir.Happening) error {
				line := shapeHappening(h)
				if p == nil {
					line.Slug = h.Project
				}
				return say(line)
			})
		}
		if ctx.Err() == nil && err != nil {
			s.log.Error("watching failed", "project", ask.Project, "error", err)
		}
	})
}

func shapeHappening(h *maildir.Happening) Happening {
	return Happening{
		Seq:    h.Seq,
		At:     tool.Stamp(h.At),
		What:   h.What,
		Agent:  h.Agent,
		ID:     h.ID,
		Thread: h.Thread,
		Text:   h.Text,
	}
}
