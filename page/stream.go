package page

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"mailtree/maildir"
)

// The stream tells a browser that something has changed: since which tick (shared.go), and no more.
// The script then asks for the view again (fragmentHeader) and swaps what differs.

const (
	streamBeat    = 20 * time.Second // of silence, then a beat: a page that hears nothing is stale
	streamPatient = 10 * time.Second // with a browser that takes nothing
)

func (h *Page) stream(v *view) error {
	v.w.Header().Set("Content-Type", "text/event-stream")
	v.w.Header().Set("X-Accel-Buffering", "no")
	out := http.NewResponseController(v.w)
	bell := v.p.Changed()
	for text := "retry: 2000\n\n"; text != ""; text, bell = nextEvent(v.ctx(), v.p, bell) {
		_ = out.SetWriteDeadline(time.Now().Add(streamPatient)) // where there is a connection
		if _, err := fmt.Fprint(v.w, text); err != nil || out.Flush() != nil {
			return nil //nolint:nilerr // the browser is gone, or reads nothing
		}
	}
	return nil
}

// nextEvent waits for a change of the project, which the bell tells, and for the tick after it, or
// for the next beat; "" when the browser or the server goes. It returns the bell of what changes
// after that.
func nextEvent(ctx context.Context, p *maildir.Project, bell <-chan struct{}) (string, <-chan struct{}) {
	beat := time.NewTimer(streamBeat)
	defer beat.Stop()
	select {
	case <-bell:
	case <-beat.C:
		return "event: beat\ndata:\n\n", bell
	case <-ctx.Done():
		return "", nil
	}
	bell = p.Changed() // before the tick: what comes after it may be missing in a part that others have made
	now := time.Now()
	tick := time.NewTimer(untilTick(now))
	defer tick.Stop()
	select {
	case <-tick.C:
		return fmt.Sprintf("event: change\ndata: %d\n\n", tickAt(now)+1), bell
	case <-ctx.Done():
		return "", nil
	}
}
