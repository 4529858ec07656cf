package mcp

import (
	"maps"
	"net/http"
	"sync"
	"sync/atomic"

	"mailtree/mcp/tool"
)

// gauge counts what is in use and refuses more than max.
type gauge struct {
	max  int64
	used atomic.Int64
}

func (g *gauge) take(n int64) bool {
	if g.used.Add(n) > g.max {
		g.used.Add(-n)
		return false
	}
	return true
}

func (g *gauge) give(n int64) { g.used.Add(-n) }

// limits are what may be in use at once.
type limits struct{ requests, streams, bodies gauge }

func (l *limits) set(requests, streams, bodies int64) {
	l.requests.max, l.streams.max, l.bodies.max = requests, streams, bodies
}

// guestShare is the part of each limit that other users on the socket get beside the server's own, a fourth: whatever
// they do, the server's user is served.
const guestShare = 4

// limitsOf are those of who makes the request.
func (s *Server) limitsOf(r *http.Request) *limits {
	if c := tool.CallerOf(r.Context()); c.Via == "" || own(c) {
		return &s.limits
	}
	return &s.guests
}

// idSet is a set of session ids. Safe for concurrent use.
type idSet struct {
	mu  sync.Mutex
	ids map[string]bool
}

func (x *idSet) add(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ids == nil {
		x.ids = map[string]bool{}
	}
	if id != "" {
		x.ids[id] = true
	}
}

// living counts those that are among all, and forgets the others.
func (x *idSet) living(all map[string]bool) int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	maps.DeleteFunc(x.ids, func(id string, _ bool) bool { return !all[id] })
	return int64(len(x.ids))
}

// busy answers that a limit is reached.
func busy(w http.ResponseWriter, id []byte, what string) {
	w.Header().Set("Retry-After", "1")
	writeError(w, http.StatusServiceUnavailable, id, codeBusy, "the server is busy ("+what+"): try again in a moment")
}

// sessions counts the sessions begun with initialize.
func (s *Server) sessions() int64 { return s.starting.Load() + int64(len(s.sessionIDs())) }

// sessionIDs are the ids of those that have begun. Stateless requests have sessions without an id.
func (s *Server) sessionIDs() map[string]bool {
	ids := map[string]bool{}
	for _, d := range s.doors {
		for ss := range d.set.Server().Sessions() {
			if ss.ID() != "" {
				ids[ss.ID()] = true
			}
		}
	}
	return ids
}
