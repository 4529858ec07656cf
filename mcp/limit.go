package mcp

import (
	"net/http"
	"sync"
	"sync/atomic"

	"mailtree/maildir"
	"mailtree/mcp/protocol"
	"mailtree/mcp/tool"
)

// gauge counts the units in use and refuses more than max.
type gauge struct {
	max  int64
	used atomic.Int64
}

func (g *gauge) tryTake(n int64) bool {
	if g.used.Add(n) > g.max {
		g.used.Add(-n)
		return false
	}
	return true
}

func (g *gauge) give(n int64) { g.used.Add(-n) }

// limits restricts how many requests, bodies and streams can be in use at the same time. Large requests and bodies are
// counted twice: with all others, and once more in large. The limits in large are lower, so that there is always room
// for small requests.
type limits struct {
	requests, streams, bodies gauge
	waiting                   atomic.Int64 // calls that are waiting for mail; they are also counted as streams
	large                     struct{ requests, bodies gauge }
}

// smallBody is the maximum body size in bytes of a small request. A typical message from an agent, escaped as JSON,
// fits within it.
const smallBody = 64 << 10

// smallShare is the divisor that turns the limits on requests and body bytes into the share reserved for small
// requests.
const smallShare = 4

func (l *limits) set(requests, streams, bodies int64) {
	l.requests.max, l.streams.max, l.bodies.max = requests, streams, bodies
	l.large.requests.max, l.large.bodies.max = requests-requests/smallShare, bodies-bodies/smallShare
}

// guestShare is the divisor that turns each limit into the limit for other users on the socket. Their limits are
// separate, so they can never crowd out the server's own user.
const guestShare = 4

// limitsOf returns the limits that apply to the user who made the request.
func (s *Server) limitsOf(r *http.Request) *limits {
	if guest(tool.CallerOf(r.Context())) {
		return &s.guests
	}
	return &s.limits
}

// place is the slot that a request occupies while it is being handled. A request that takes a long time, such as a
// stream or a call that waits for mail, moves from a request slot to a stream slot. A place is safe for concurrent use.
type place struct {
	of    *limits
	large bool

	mu    sync.Mutex
	in    *gauge // of.requests or of.streams; nil after leave
	waits bool   // the call is counted in of.waiting
}

// admit occupies a request slot, or returns nil if no slot is free. The caller must call leave on the result.
func (l *limits) admit(large bool) *place {
	if large && !l.large.requests.tryTake(1) {
		return nil
	}
	if !l.requests.tryTake(1) {
		if large {
			l.large.requests.give(1)
		}
		return nil
	}
	return &place{of: l, large: large, in: &l.requests}
}

// moveToStreams moves the request to a stream slot until the request is answered, and reports whether it succeeded. If
// no stream slot is free, the request keeps its slot. If the request has already moved or been answered, moveToStreams
// does nothing and returns true.
func (p *place) moveToStreams() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.in != &p.of.requests {
		return true
	}
	if !p.of.streams.tryTake(1) {
		return false
	}
	p.vacate()
	p.in = &p.of.streams
	return true
}

// roomToWait is like moveToStreams, but for a call that is about to wait for mail. It returns maildir.ErrUnavailable if
// no slot is free.
func (p *place) roomToWait() error {
	if p.moveToStreams() {
		p.countWaiting()
		return nil
	}
	return tool.Refused(maildir.ErrUnavailable,
		"There is no mail, and the server cannot wait for new mail: %d calls are already waiting or holding a stream open, "+
			"which is the limit. Leave out wait_seconds to get an answer at once, or ask again in a minute.", p.of.streams.max)
}

// countWaiting counts the request as a waiting call until the request is answered. Calling countWaiting again has no
// effect.
func (p *place) countWaiting() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.in != nil && !p.waits {
		p.waits = true
		p.of.waiting.Add(1)
	}
}

// leave releases the slot.
func (p *place) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.vacate()
	if p.waits {
		p.waits = false
		p.of.waiting.Add(-1)
	}
}

// vacate releases the slot in p.in. The caller must hold p.mu.
func (p *place) vacate() {
	if p.large && p.in == &p.of.requests {
		p.of.large.requests.give(1)
	}
	if p.in != nil {
		p.in.give(1)
	}
	p.in = nil
}

// aMoment tells the client to retry soon.
const aMoment = "try again in a moment"

// busy refuses a request because a limit has been reached. The argument what identifies the limit, and the argument
// then says when to try again.
func busy(w http.ResponseWriter, id []byte, what, then string) {
	w.Header().Set("Retry-After", "1")
	writeError(w, http.StatusServiceUnavailable, id, protocol.CodeBusy, "the server is busy ("+what+"): "+then)
}

// Usage contains the current numbers of requests, streams and sessions.
type Usage struct {
	Requests int // requests being handled
	Streams  int // open streams and bridges, and calls waiting for mail
	Waiting  int // calls waiting for mail
	Sessions int // sessions in memory; other sessions are resumed from the store
}

// Usage returns the server's current usage.
func (s *Server) Usage() (u Usage) {
	for _, l := range []*limits{&s.limits, &s.guests} {
		u.Requests += int(l.requests.used.Load())
		u.Streams += int(l.streams.used.Load())
		u.Waiting += int(l.waiting.Load())
	}
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	u.Sessions = len(s.sessions.byID)
	return u
}
