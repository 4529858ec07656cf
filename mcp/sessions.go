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

// sessions know which of the sessions begun with initialize are in use. Most clients that die do
// not end theirs; so that those do not keep others out until they time out, a new one takes the
// place of the one that has been unused for longest, whose client, if there is one, is answered 404
// and begins anew. Spec: MCP 2025-06-18, transports, session management. A session is its owner's:
// for everybody else it does not exist, whether or not they know its id. Safe for concurrent use.
type sessions struct {
	mu       sync.Mutex
	byID     map[string]*session
	starting map[bool]int // initialize requests under way, of guests and not
	clock    int64        // grows with each use
}

// session is what is known of one beside what the SDK knows.
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

// get is the session of an id, entered where it is not known. x.mu is held.
func (x *sessions) get(id string) *session {
	e := x.byID[id]
	if e == nil {
		e = &session{id: id}
		x.byID[id] = e
	}
	return e
}

// ownerOf is the kind of caller that a session belongs to: a user on the socket, over TCP who has
// the token or who has none.
func ownerOf(c tool.Caller) string { return c.Via + "/" + c.Auth }

// setOwner notes whose a session is that is being begun.
func (x *sessions) setOwner(id, owner string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.get(id).owner = owner
}

// touch notes that a use has ended. x.mu is held.
func (x *sessions) touch(e *session) {
	x.clock++
	e.last = x.clock
}

// use keeps the session from making room until done is called. Where it is doing so just then, it
// has ended when use returns, or ctx has. false, and nothing is kept, where the session is another
// owner's, or there is none.
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

// await waits until e, which makes room, has ended. x.mu is held, but not meanwhile.
func (x *sessions) await(ctx context.Context, e *session) (done func()) {
	x.mu.Unlock()
	defer x.mu.Lock()
	select {
	case <-e.ended:
	case <-ctx.Done():
	}
	return func() {}
}

// start enters an initialize under way, which began takes out again; false, and nothing is entered,
// where as many sessions as there may be, most, are in use. makeRoom ends the one that has been
// unused for longest, where one is to. Guests make room for guests, and others for others. living
// are the sessions that there are, by id.
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

// end ends a session that makes room. Nothing is under way in it but notifications that have been
// answered.
func (x *sessions) end(e *session, ss *mcp.ServerSession) {
	_ = ss.Close() // it has ended whatever that says
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.byID, e.id)
	close(e.ended)
}

// began ends what start entered: the session has begun, or with the id "" none has.
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

// living are the sessions that have begun, by id. Stateless requests have sessions without an id.
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
