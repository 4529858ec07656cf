package mcp

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/mcp/protocol"
	"mailtree/mcp/tool"
)

// sessions records which sessions are in use. Most clients that die do not end their sessions. So
// that those do not keep others out until they time out, a new session takes the place of the one
// unused for longest, whose client, if it still lives, is answered 404 and begins anew. Spec: MCP
// 2025-06-18, transports, session management. A session belongs to its owner: for everybody else it
// does not exist, whether or not they know its id. Safe for concurrent use.
type sessions struct {
	mu       sync.Mutex
	byID     map[string]*session
	starting map[bool]int // initialize requests under way, of guests and not
	clock    int64        // grows with each use
}

// session is what the server records of a session beside what the SDK does.
type session struct {
	id    string
	begun bool          // with an initialize that was answered
	guest bool          // begun by a guest
	owner string        // the ownerOf who began it, noted before the id is answered
	uses  int           // requests under way and open streams
	last  int64         // when a use ended last
	ended chan struct{} // nil but in one that makes room; closed when it has
}

func newSessions() *sessions {
	return &sessions{byID: map[string]*session{}, starting: map[bool]int{}}
}

// get returns the session of an id, and enters one that is not known. The caller holds x.mu.
func (x *sessions) get(id string) *session {
	e := x.byID[id]
	if e == nil {
		e = &session{id: id}
		x.byID[id] = e
	}
	return e
}

// ownerOf is the kind of caller to whom a session belongs: a user on the socket; over TCP, callers
// with the token or callers without.
func ownerOf(c tool.Caller) string { return c.Via + "/" + c.Auth }

// setOwner records the owner of a session that begins.
func (x *sessions) setOwner(id, owner string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.get(id).owner = owner
}

// touch records that a use has ended. The caller holds x.mu.
func (x *sessions) touch(e *session) {
	x.clock++
	e.last = x.clock
}

// use keeps the session from being ended to make room, until done is called. Where the session is
// ending just then, use returns once it has ended, or ctx has. ok is false, and nothing is kept,
// where there is no such session or it is another owner's.
func (x *sessions) use(ctx context.Context, id, owner string) (done func(), ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.byID[id]
	if e == nil || e.owner != owner {
		return func() {}, false
	}
	if e.ended != nil {
		return x.await(ctx, e), true
	}
	e.uses++
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.touch(e)
		e.uses--
	}, true
}

// await waits until e, which is ending to make room, has ended. The caller holds x.mu; await gives
// it up meanwhile.
func (x *sessions) await(ctx context.Context, e *session) (done func()) {
	x.mu.Unlock()
	defer x.mu.Lock()
	select {
	case <-e.ended:
	case <-ctx.Done():
	}
	return func() {}
}

// start records an initialize under way; began removes the record. ok is false, and nothing is
// recorded, where most sessions, as many as there may be, are in use. makeRoom ends the session
// that has been unused for longest, if one must end. Guests make room for guests, and others for
// others. living returns the sessions that exist, by id.
func (x *sessions) start(guest bool, most int, living func() map[string]*mcp.ServerSession) (makeRoom func(), ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := living()
	maps.DeleteFunc(x.byID, func(id string, e *session) bool { return all[id] == nil && e.uses == 0 && e.ended == nil })
	n, unused := x.starting[guest], (*session)(nil)
	for _, e := range x.byID {
		if !e.begun || e.guest != guest || e.ended != nil || all[e.id] == nil {
			continue
		}
		if n++; e.uses == 0 && (unused == nil || e.last < unused.last) {
			unused = e
		}
	}
	switch {
	case n < most:
		makeRoom = func() {}
	case unused == nil:
		return nil, false
	default:
		unused.ended = make(chan struct{})
		makeRoom = func() { x.end(unused, all[unused.id]) }
	}
	x.starting[guest]++
	return makeRoom, true
}

// end ends a session to make room. Nothing is under way in it but notifications that have been
// answered.
func (x *sessions) end(e *session, ss *mcp.ServerSession) {
	_ = ss.Close() // it has ended whatever that says
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.byID, e.id)
	close(e.ended)
}

// began removes what start recorded: the session of that id has begun, or none has, with "".
func (x *sessions) began(id string, guest bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.starting[guest]--
	if id != "" {
		e := x.get(id)
		e.begun, e.guest = true, guest
		x.touch(e)
	}
}

// startSession serves an initialize, which begins a session.
func (s *Server) startSession(d *door, w http.ResponseWriter, r *http.Request, m *message) {
	guest, most, whose := s.limitsOf(r) == &s.guests, s.cfg.MaxSessions, ""
	if guest {
		most, whose = most/guestShare, " for other users"
	}
	makeRoom, ok := s.sessions.start(guest, most, s.living)
	if !ok {
		what := fmt.Sprintf("all %d sessions%s have a request under way or an open stream", most, whose)
		busy(w, m.id, what, "end one, or try again when one has ended")
		return
	}
	defer func() { s.sessions.began(w.Header().Get(protocol.SessionHeader), guest) }()
	makeRoom()
	d.stateful.ServeHTTP(w, r)
}

// living returns the sessions that have begun, by id. Stateless requests have sessions without an
// id.
func (s *Server) living() map[string]*mcp.ServerSession {
	all := map[string]*mcp.ServerSession{}
	for _, d := range s.doors {
		for ss := range d.set.Server().Sessions() {
			if ss.ID() != "" {
				all[ss.ID()] = ss
			}
		}
	}
	return all
}
