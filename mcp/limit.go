package mcp

import (
	"net/http"
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

// aMoment is when to try again where requests end soon.
const aMoment = "try again in a moment"

// busy answers that a limit is reached: which, and what to do.
func busy(w http.ResponseWriter, id []byte, what, then string) {
	w.Header().Set("Retry-After", "1")
	writeError(w, http.StatusServiceUnavailable, id, codeBusy, "the server is busy ("+what+"): "+then)
}
