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

// Sessions go on after the server was started anew, because most clients that are answered 404 for
// theirs do not begin another. What a client said to begin its session stands in the store (package
// resume); when a request names a session that the SDK does not have any more, the server says the
// same again in the client's name, under the same id. What changed meanwhile nobody knows, so the
// client's next stream begins with one notification for each of its subscriptions.

// sessionsDir is the folder of the store that keeps them.
const sessionsDir = "sessions"

// keepIn makes the folder of sessions: below the store's folder, or, without a store, nowhere.
func (s *Server) keepIn() {
	s.kept = resume.Folder{Most: s.cfg.MaxSessions}
	if s.cfg.Store != nil {
		s.kept.Dir = filepath.Join(s.cfg.Store.Root(), sessionsDir)
		s.kept.Key = []byte(s.cfg.Store.Token())
	}
}

// signedFor is to whom the id of a session belongs that a caller begins.
func (d *door) signedFor(c tool.Caller) string { return d.name + " " + ownerOf(c) }

// nextID chooses the id of the session that the SDK begins next. The SDK asks for it without saying
// for which request.
type nextID struct {
	mu   sync.Mutex
	give func() string // called with mu held, which it unlocks
}

// serve has h begin a session with that id. The SDK asks for the id before it reads the body:
// nobody waits here for another's client.
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

// get is the GetSessionID of every toolset. Only serve leads to it.
func (n *nextID) get() string { return n.give() }

// keepSession keeps what a message that was answered means for its session.
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
		s.log.Warn("mcp: a session is not kept; its client begins anew when the server has been started anew", "err", err)
	}
}

// enterSession keeps the session of a request from being ended to make room until done is called;
// the context of the request that it returns ends when the session's client ends the session. A
// session that the SDK does not have any more it resumes. Where there is no such session of this
// caller, the request names none.
func (s *Server) enterSession(d *door, r *http.Request) (in *http.Request, done func()) {
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

// resume begins a session that was kept anew, under its id, and reports whether the session is
// there now. While the server has no room for one more session it is not.
func (s *Server) resume(d *door, r *http.Request, id string) bool {
	s.resuming.Lock()
	defer s.resuming.Unlock()
	if d.lives(id) { // another request has resumed it
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
	w := &nowhere{header: http.Header{}}
	begin := forClient(ctx, header, first+`"initialize","params":`+string(k.Initialize)+"}")
	if !s.beginSession(d, w, begin, id) || !d.lives(id) {
		return false
	}
	header.Set(protocol.SessionHeader, id)
	say := func(text string) { d.stateful.ServeHTTP(&nowhere{header: http.Header{}}, forClient(ctx, header, text)) }
	say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for _, uri := range k.URIs {
		say(first + `"resources/subscribe","params":{"uri":` + string(tool.Encode(uri)) + "}}")
	}
	return true
}

// forClient makes a POST in the name of the client of a request with that header.
func forClient(ctx context.Context, header http.Header, text string) *http.Request {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "/mcp", strings.NewReader(text))
	if err != nil {
		panic(err) // of a method or URL that is wrong
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

// missedEvents are the notifications with which the stream of a resumed session begins, as events
// of the stream. They are given once.
func (s *Server) missedEvents(id string) (events []byte) {
	for _, uri := range s.sessions.takeMissed(id) {
		events = append(events, "event: message\ndata: "...)
		events = append(events, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":`...)
		events = append(append(events, tool.Encode(uri)...), "}}\n\n"...)
	}
	return events
}

// nowhere is a ResponseWriter that drops what is written to it.
type nowhere struct{ header http.Header }

func (n *nowhere) Header() http.Header         { return n.header }
func (n *nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (n *nowhere) WriteHeader(int)             {}
