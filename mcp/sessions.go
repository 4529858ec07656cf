package mcp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/mcp/protocol"
	"mailtree/mcp/resume"
	"mailtree/mcp/tool"
)

// sessions keeps track of which sessions are in use. Most clients that crash do not end their sessions. Therefore, if
// there are too many sessions, a new session ends the least recently used one. If the client of that session is still
// alive, it gets a 404 and begins a new session. Spec: MCP 2025-06-18, transports, session management. Only the owner
// of a session can use it, even if another caller knows the session's id. The type is safe for concurrent use.
type sessions struct {
	mu       sync.Mutex
	byID     map[string]*session
	starting int   // initialize requests in progress
	clock    int64 // incremented with each use

	saving sync.Mutex // guards session.kept
}

// session contains the data that the server records about a session, in addition to the SDK's own data.
type session struct {
	id    string
	begun bool                              // the initialize request has been answered
	owner string                            // the caller who began the session (see ownerOf); set before the client gets the id
	uses  map[int64]context.CancelCauseFunc // requests in progress and open streams, each with the function that cancels its context
	last  int64                             // value of sessions.clock when a use of the session last ended
	ended chan struct{}                     // non-nil while the session is being ended to make room; closed once it has ended

	kept     resume.Session // the saved data that resume needs to restart the session
	noted    time.Time      // when the session's use was last recorded on disk
	resuming bool           // resuming is not complete, so only resume may use the session
	missed   []string       // URIs of resumed subscriptions for which the client has not been notified yet
}

func newSessions() *sessions {
	return &sessions{byID: map[string]*session{}}
}

// get returns the session with the given id, creating it if necessary. The caller must hold x.mu.
func (x *sessions) get(id string) *session {
	e := x.byID[id]
	if e == nil {
		e = &session{id: id, uses: map[int64]context.CancelCauseFunc{}}
		x.byID[id] = e
	}
	return e
}

// ownerOf returns the owner of the caller's sessions. All callers that authenticate in the same way have the same
// owner. For example, all callers with the token have one owner.
func ownerOf(c tool.Caller) string { return "/" + c.Auth }

// setOwner records the owner of a new session.
func (x *sessions) setOwner(id, owner string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.get(id).owner = owner
}

// touch records that a use of the session has ended. The caller must hold x.mu.
func (x *sessions) touch(e *session) {
	x.clock++
	e.last = x.clock
}

// use prevents a session from being ended to make room for another session, until done is called. Calling leave cancels
// the context within. If the session is already being ended, use first waits until it has ended or ctx is done. If the
// session does not exist, belongs to another owner or is being resumed, use does nothing and ok is false.
func (x *sessions) use(ctx context.Context, id, owner string) (within context.Context, done func(), ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.byID[id]
	if e == nil || e.owner != owner || e.resuming {
		return ctx, func() {}, false
	}
	if e.ended != nil {
		return ctx, x.await(ctx, e), true
	}
	within, cancel := context.WithCancelCause(ctx)
	x.clock++
	n := x.clock
	e.uses[n] = cancel
	return within, func() {
		cancel(nil)
		x.mu.Lock()
		defer x.mu.Unlock()
		x.touch(e)
		delete(e.uses, n)
	}, true
}

// errLeft is the cancellation cause of requests whose client has ended the session.
var errLeft = errors.New("the session has ended")

// leave cancels the requests in a session. It is called when the client ends the session.
func (x *sessions) leave(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.byID[id]; e != nil {
		for _, cancel := range e.uses {
			cancel(errLeft)
		}
	}
}

// edit calls change with the saved data of a session. Only one edit runs at a time.
func (x *sessions) edit(id string, change func(k *resume.Session) error) error {
	x.saving.Lock()
	defer x.saving.Unlock()
	x.mu.Lock()
	e := x.get(id)
	x.mu.Unlock()
	return change(&e.kept)
}

// noteUse reports whether to record the session's use on disk. It returns true at most once an hour.
func (x *sessions) noteUse(id string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	e, now := x.get(id), time.Now()
	due := now.Sub(e.noted) > time.Hour
	if due {
		e.noted = now
	}
	return due
}

// beginResuming prevents a session from being used until resumed is called. The caller must pass the URIs of the
// resumed subscriptions to resumed.
func (x *sessions) beginResuming(id string) (resumed func(missed []string)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.get(id)
	e.resuming = true
	return func(missed []string) {
		x.mu.Lock()
		defer x.mu.Unlock()
		e.resuming, e.missed = false, missed
	}
}

// takeMissed returns the URIs that were passed to resumed. It returns each URI only once.
func (x *sessions) takeMissed(id string) (uris []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.byID[id]; e != nil {
		uris, e.missed = e.missed, nil
	}
	return uris
}

// has reports whether the owner has a usable session with the given id in memory.
func (x *sessions) has(id, owner string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.byID[id]
	return e != nil && e.owner == owner && !e.resuming
}

// await waits until e, which is being ended to make room, has ended. The caller must hold x.mu, which await releases
// while it waits.
func (x *sessions) await(ctx context.Context, e *session) (done func()) {
	x.mu.Unlock()
	defer x.mu.Lock()
	select {
	case <-e.ended:
	case <-ctx.Done():
	}
	return func() {}
}

// start records that an initialize request is in progress until began is called. The maximum number of sessions is
// most. If that many are in use, start records nothing and ok is false. If a session must be ended first, makeRoom ends
// the least recently used one and returns its id. The function living must return the existing sessions by id.
func (x *sessions) start(most int, living func() map[string]*mcp.ServerSession) (makeRoom func() (ended string), ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := living()
	maps.DeleteFunc(x.byID, func(id string, e *session) bool {
		return all[id] == nil && len(e.uses) == 0 && e.ended == nil && !e.resuming
	})
	n, unused := x.starting, (*session)(nil)
	for _, e := range x.byID {
		if !e.begun || e.ended != nil || all[e.id] == nil {
			continue
		}
		if n++; len(e.uses) == 0 && (unused == nil || e.last < unused.last) {
			unused = e
		}
	}
	switch {
	case n < most:
		makeRoom = func() string { return "" }
	case unused == nil:
		return nil, false
	default:
		unused.ended = make(chan struct{})
		makeRoom = func() string {
			x.end(unused, all[unused.id])
			return unused.id
		}
	}
	x.starting++
	return makeRoom, true
}

// end ends a session to make room for another session. No request in the session may be in progress, except for
// notifications, which have already been answered.
func (x *sessions) end(e *session, ss *mcp.ServerSession) {
	_ = ss.Close() // the session has ended even if Close fails
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.byID, e.id)
	close(e.ended)
}

// began records that an initialize request is no longer in progress. The parameter id is the id of the session that has
// begun, or "" if none has.
func (x *sessions) began(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.starting--
	if id != "" {
		e := x.get(id)
		e.begun = true
		x.touch(e)
	}
}

// startSession serves an initialize request, which begins a session.
func (s *Server) startSession(d *route, w http.ResponseWriter, r *http.Request, m *message) {
	c := tool.CallerOf(r.Context())
	if s.beginSession(d, w, r, s.kept.NewID(d.signedFor(c))) {
		return
	}
	what := fmt.Sprintf("all %d sessions have a request in progress or an open stream", s.cfg.MaxSessions)
	busy(w, m.id, what, "end a session, or try again later")
}

// beginSession serves an initialize request and gives the new session the id. If there is no room for another session,
// beginSession returns false and sends no response.
func (s *Server) beginSession(d *route, w http.ResponseWriter, r *http.Request, id string) bool {
	makeRoom, ok := s.sessions.start(s.cfg.MaxSessions, s.living)
	if !ok {
		return false
	}
	defer func() { s.sessions.began(w.Header().Get(protocol.SessionHeader)) }()
	if ended := makeRoom(); ended != "" {
		s.kept.Remove(ended)
	}
	s.ids.serve(d.stateful, w, r, id)
	return true
}

// living returns the existing sessions, by id. It omits the sessions of stateless requests, which have no id.
func (s *Server) living() map[string]*mcp.ServerSession {
	all := map[string]*mcp.ServerSession{}
	for _, d := range s.routes {
		for ss := range d.set.Server().Sessions() {
			if ss.ID() != "" {
				all[ss.ID()] = ss
			}
		}
	}
	return all
}

// lives reports whether the SDK has a session with the given id.
func (d *route) lives(id string) bool {
	for ss := range d.set.Server().Sessions() {
		if ss.ID() == id {
			return true
		}
	}
	return false
}
