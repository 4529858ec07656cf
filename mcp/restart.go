package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/mcp/protocol"
	"mailtree/mcp/resume"
	"mailtree/mcp/tool"
)

// Sessions survive a restart of the server, because most clients do not begin a new session when a request in the old
// one gets a 404. The store keeps the messages with which a client began its session (package resume). If a request
// belongs to a session that the SDK no longer has, the server replays these messages on the client's behalf under the
// same session id. The server does not know which resources have changed since the restart, so the client's next stream
// begins with one notification for each subscription.

// sessionsDir is the folder in the store that contains the sessions.
const sessionsDir = "sessions"

// keepIn sets the folder in which sessions are saved. If there is no store, sessions are not saved.
func (s *Server) keepIn() {
	s.kept = resume.Folder{Most: s.cfg.MaxSessions}
	if s.cfg.Store != nil {
		s.kept.Dir = filepath.Join(s.cfg.Store.Root(), sessionsDir)
		s.kept.Key = []byte(s.cfg.Store.Token())
	}
}

// signedFor returns the owner of a session that the caller begins on this route. The signature in the session's id
// covers this owner.
func (d *route) signedFor(c tool.Caller) string { return d.name + " " + ownerOf(c) }

// nextID supplies the id of the next session. The type is needed because the SDK asks for an id without saying which
// request the id is for.
type nextID struct {
	mu   sync.Mutex
	give func() string // called with mu held; unlocks mu
}

// serve passes a request that begins a session to h, and makes the SDK use the given id. The SDK asks for the id before
// it reads the body, so a slow client does not make other clients wait.
func (n *nextID) serve(h http.Handler, w http.ResponseWriter, r *http.Request, id string) {
	n.mu.Lock()
	given := false
	n.give = func() string {
		given = true
		n.mu.Unlock()
		return id
	}
	defer func() {
		if !given {
			n.mu.Unlock()
		}
	}()
	h.ServeHTTP(w, r)
}

// get is the GetSessionID function of every toolset. It is called only during serve.
func (n *nextID) get() string { return n.give() }

// keepSession saves a message's effect on its session. It is called after the message has been answered.
func (s *Server) keepSession(ctx context.Context, req mcp.Request) {
	var edit func(k *resume.Session) error
	switch p := req.GetParams().(type) {
	case *mcp.InitializeParams:
		edit = func(k *resume.Session) (err error) {
			k.Initialize, err = json.Marshal(p)
			return err
		}
	case *mcp.SubscribeParams:
		edit = func(k *resume.Session) error {
			if !slices.Contains(k.URIs, p.URI) {
				k.URIs = append(k.URIs, p.URI)
			}
			return nil
		}
	case *mcp.UnsubscribeParams:
		edit = func(k *resume.Session) error {
			k.URIs = slices.DeleteFunc(k.URIs, func(uri string) bool { return uri == p.URI })
			return nil
		}
	}
	id := req.GetSession().ID()
	if edit == nil || id == "" {
		return
	}
	err := s.sessions.edit(id, func(k *resume.Session) error { return cmp.Or(edit(k), s.kept.Save(id, *k)) })
	if err != nil {
		s.log.Warn("mcp: failed to save a session; its client will start a new session after the server restarts", "error", err)
	}
}

// enterSession prevents the request's session from being ended to make room for another session, until done is called.
// The context of the returned request is canceled when the client ends the session. If the SDK no longer has the
// session, enterSession resumes it. If the caller has no such session, the returned request contains noSession.
func (s *Server) enterSession(d *route, r *http.Request) (in *http.Request, done func()) {
	id, c := r.Header.Get(protocol.SessionHeader), tool.CallerOf(r.Context())
	ctx, done, ok := s.sessions.use(r.Context(), id, ownerOf(c))
	if !ok || !d.lives(id) {
		done()
		if ok = s.resume(d, r, id); ok {
			ctx, done, ok = s.sessions.use(r.Context(), id, ownerOf(c))
		}
	}
	if !ok {
		r.Header.Set(protocol.SessionHeader, noSession)
		return r, func() {}
	}
	if s.sessions.noteUse(id) {
		s.kept.Use(id)
	}
	return r.WithContext(ctx), done
}

// resume restarts a saved session under its id, and reports whether the session now exists. It returns false if there
// is no room for another session.
func (s *Server) resume(d *route, r *http.Request, id string) bool {
	s.resuming.Lock()
	defer s.resuming.Unlock()
	if d.lives(id) { // another request has already resumed the session
		return true
	}
	c := tool.CallerOf(r.Context())
	k, ok := s.kept.Load(id, d.signedFor(c))
	if !ok {
		return false
	}
	resumed := s.sessions.beginResuming(id)
	defer func() { resumed(k.URIs) }()
	ctx, header := context.WithoutCancel(r.Context()), r.Header.Clone()
	header.Del(protocol.SessionHeader)
	const first = `{"jsonrpc":"2.0","id":"mailtree-resume","method":`
	w := &discardResponse{header: http.Header{}}
	begin := forClient(ctx, header, first+`"initialize","params":`+string(k.Initialize)+"}")
	if !s.beginSession(d, w, begin, id) || !d.lives(id) {
		return false
	}
	header.Set(protocol.SessionHeader, id)
	say := func(text string) {
		d.stateful.ServeHTTP(&discardResponse{header: http.Header{}}, forClient(ctx, header, text))
	}
	say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for _, uri := range k.URIs {
		say(first + `"resources/subscribe","params":{"uri":` + string(tool.Encode(uri)) + "}}")
	}
	return true
}

// forClient creates a POST on behalf of the client whose request had the given headers.
func forClient(ctx context.Context, header http.Header, text string) *http.Request {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "/mcp", strings.NewReader(text))
	if err != nil {
		panic(err) // cannot happen: the method and the URL are valid
	}
	for _, k := range []string{protocol.VersionHeader, protocol.SessionHeader, callerHeader} {
		if v := header.Get(k); v != "" {
			r.Header.Set(k, v)
		}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", protocol.AcceptBoth)
	return r
}

// missedEvents returns the notifications that begin the stream of a resumed session, encoded as stream events. It
// returns them only once.
func (s *Server) missedEvents(id string) (events []byte) {
	for _, uri := range s.sessions.takeMissed(id) {
		events = append(events, "event: message\ndata: "...)
		events = append(events, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":`...)
		events = append(append(events, tool.Encode(uri)...), "}}\n\n"...)
	}
	return events
}

// discardResponse is a ResponseWriter that discards everything written to it.
type discardResponse struct{ header http.Header }

func (n *discardResponse) Header() http.Header         { return n.header }
func (n *discardResponse) Write(p []byte) (int, error) { return len(p), nil }
func (n *discardResponse) WriteHeader(int)             {}
