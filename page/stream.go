package page

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"mailtree/maildir"
)

// A stream tells the browser only that something has changed, and at which tick. The script then requests the view
// again (fragmentHeader) and replaces the parts that differ.
//
// Time is divided into ticks. All streams report changes at the beginning of a tick, along with the tick's number. All
// views that are notified of the same tick then share a single read of the user's waiting items and of the agents
// (kept).

// tickLasts is the length of a tick, and thus the minimum time between two events. This limit keeps open pages from
// slowing down senders.
const tickLasts = time.Second

// tickAt returns the tick that contains the time t.
func tickAt(t time.Time) int64 { return t.UnixMilli() / tickLasts.Milliseconds() }

// rightNow is the tick of a request for the current state of a view.
const rightNow = math.MaxInt64

// sinceTick returns the tick in a request's fragmentHeader, or rightNow if there is none.
func sinceTick(r *http.Request) int64 {
	tick, err := strconv.ParseInt(r.Header.Get(fragmentHeader), 10, 64)
	if err != nil || tick <= 1 || r.Method != http.MethodGet {
		return rightNow
	}
	return tick
}

// untilTick returns the time from t until the next tick.
func untilTick(t time.Time) time.Duration {
	return time.UnixMilli((tickAt(t) + 1) * tickLasts.Milliseconds()).Sub(t)
}

const (
	streamBeat    = 20 * time.Second // time without events before a beat event, which says that the page is up to date
	streamPatient = 10 * time.Second // time limit for a browser that has stopped reading
)

func (h *Page) stream(v *view) error {
	v.w.Header().Set("Content-Type", "text/event-stream")
	v.w.Header().Set("X-Accel-Buffering", "no")
	out := http.NewResponseController(v.w)
	of := []*maildir.Project{v.p}
	if v.p == nil {
		of = h.cfg.Store.Projects()
	}
	bell, text := changed(v.ctx(), of), "retry: 2000\n\n"
	if now := h.stateOf(of...); now != cmp.Or(v.r.Header.Get("Last-Event-ID"), v.asked("at"), now) {
		text += changeEvent(now, 1)
	}
	for ; text != ""; text, bell = h.nextEvent(v.ctx(), of, bell) {
		_ = out.SetWriteDeadline(time.Now().Add(streamPatient)) // fails harmlessly if there is no connection
		if _, err := fmt.Fprint(v.w, text); err != nil || out.Flush() != nil {
			return nil //nolint:nilerr // the browser is gone, or is not reading
		}
	}
	return nil
}

// changed returns a channel that is closed when any of the projects changes.
func changed(ctx context.Context, all []*maildir.Project) <-chan struct{} {
	if len(all) == 1 {
		return all[0].Changed()
	}
	bell := make(chan struct{})
	ring := sync.OnceFunc(func() { close(bell) })
	for _, p := range all {
		go func(one <-chan struct{}) {
			select {
			case <-one:
				ring()
			case <-bell:
			case <-ctx.Done():
			}
		}(p.Changed())
	}
	return bell
}

// nextEvent waits for bell, which is closed when one of the projects changes, and then for the next tick. If nothing
// changes, it waits for the next beat. It returns the event and a new bell for later changes. If the browser or the
// server ends the connection, the event is "".
func (h *Page) nextEvent(ctx context.Context, of []*maildir.Project, bell <-chan struct{}) (string, <-chan struct{}) {
	beat := time.NewTimer(streamBeat)
	defer beat.Stop()
	select {
	case <-bell:
	case <-beat.C:
		return "event: beat\ndata:\n\n", bell
	case <-ctx.Done():
		return "", nil
	}
	bell = changed(ctx, of) // get the bell before the tick, so that no change after the tick is missed
	now := time.Now()
	tick := time.NewTimer(untilTick(now))
	defer tick.Stop()
	select {
	case <-tick.C:
		return changeEvent(h.stateOf(of...), tickAt(now)+1), bell
	case <-ctx.Done():
		return "", nil
	}
}

// changeEvent returns the event that reports a change at a tick. The event's id is the name of the current state.
func changeEvent(state string, tick int64) string {
	return fmt.Sprintf("id: %s\nevent: change\ndata: %d\n\n", state, tick)
}

// state gives the current state of a project a name. When the project changes, it gets a new name. If two names are
// equal, nothing has changed in between, so a browser that has loaded a view does not have to load it again when its
// stream begins.
type state struct {
	bell <-chan struct{} // closed when the project has changed
	name string
}

// stateOf returns a name for the current state of the given projects.
func (h *Page) stateOf(of ...*maildir.Project) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	names := sha256.New()
	for _, p := range of {
		s := h.states[p]
		if s == nil || rung(s.bell) {
			s = &state{p.Changed(), rand.Text()}
			h.states[p] = s
		}
		names.Write([]byte(s.name))
	}
	return hex.EncodeToString(names.Sum(nil)[:16])
}
