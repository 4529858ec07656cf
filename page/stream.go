package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// The stream tells a browser that something has changed: the number of the newest change, and no
// more. The script then asks for the view again (fragmentHeader) and swaps what differs.

const (
	streamRest = time.Second      // between two events: who sends pays little for pages that are open
	streamBeat = 20 * time.Second // of silence, then a beat: a page that hears nothing is stale
	streamRead = 200              // changes looked at; what lies before them says no more
)

func (h *Page) stream(v *view) error {
	mark, err := h.cfg.Store.LastChange(v.ctx())
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "text/event-stream")
	v.w.Header().Set("X-Accel-Buffering", "no")
	out := http.NewResponseController(v.w)
	for text := "retry: 2000\n\n"; text != ""; text, mark = v.nextEvent(mark) {
		if _, err := fmt.Fprint(v.w, text); err != nil || out.Flush() != nil {
			return nil //nolint:nilerr // the browser is gone
		}
	}
	return nil
}

// nextEvent waits for a change of the project after the mark, or for the next beat; "" when the
// browser or the server goes.
func (v *view) nextEvent(mark int64) (event string, now int64) {
	wait, cancel := context.WithTimeout(v.ctx(), streamBeat)
	defer cancel()
	for {
		changes, err := v.page.cfg.Store.WaitChanges(wait, mark, streamRead)
		switch {
		case v.ctx().Err() != nil:
			return "", mark
		case errors.Is(err, context.DeadlineExceeded):
			return "event: beat\ndata:\n\n", mark
		case err != nil:
			return "", mark
		}
		ours := false
		for _, c := range changes {
			mark = max(mark, c.Seq)
			ours = ours || c.Project == v.p.Slug()
		}
		v.rest()
		if last, err := v.page.cfg.Store.LastChange(v.ctx()); err == nil {
			mark = max(mark, last-streamRead)
		}
		if ours {
			return fmt.Sprintf("event: change\ndata: %d\n\n", mark), mark
		}
	}
}

// rest waits for streamRest, or until the browser goes.
func (v *view) rest() {
	t := time.NewTimer(streamRest)
	defer t.Stop()
	select {
	case <-t.C:
	case <-v.ctx().Done():
	}
}
