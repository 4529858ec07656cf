package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/mcp/protocol"
	"mailtree/mcp/tool"
)

// noSession is an id that no session has. If a request specifies the id of another caller's session, the server
// replaces that id with noSession. The client then gets the same response as for an unknown session.
const noSession = "none"

// endpoint serves the URLs of a toolset. Only the version header determines the protocol era. Mcp-Method must not be
// used for this, because some old clients (mcp-remote) also send it. With the wrong era, they would silently get no
// notifications.
func (s *Server) endpoint(d *route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set(callerHeader, headerOf(tool.CallerOf(r.Context())))
		r.Header.Del(requestHeader)
		s.serve(d, w, r)
	})
}

func (s *Server) serve(d *route, w http.ResponseWriter, r *http.Request) {
	era := protocol.IsStateless(r.Header.Get(protocol.VersionHeader))
	session := r.Header.Get(protocol.SessionHeader) != "" && !onSocket(r)
	switch {
	case r.Method == http.MethodPost:
		s.post(d, w, r, era, session)
	case r.Method == http.MethodGet && session && !era:
		r, done := s.enterSession(d, r)
		defer done()
		s.stream(d, w, r)
	case r.Method == http.MethodDelete && session && !era:
		s.endSession(d, w, r)
	default:
		// The status is 405 rather than 400 because a client that gets 405 for a GET knows that there is no stream, and
		// continues.
		w.Header().Set("Allow", "POST")
		http.Error(w, "405: POST JSON-RPC messages to this URL; GET and DELETE require the Mcp-Session-Id of a "+
			"session", http.StatusMethodNotAllowed)
	}
}

// onSocket reports whether a request arrived on the socket. Bridges use the socket, which has no sessions.
func onSocket(r *http.Request) bool { return tool.CallerOf(r.Context()).Via != "" }

// post serves a POST with one or more JSON-RPC messages.
func (s *Server) post(d *route, w http.ResponseWriter, r *http.Request, era, session bool) {
	counted := &countedBody{of: s.limitsOf(r)}
	defer counted.giveBack()
	body, ok := s.readBody(w, r, counted)
	if !ok {
		return
	}
	place := counted.of.admit(counted.large) // after reading the body, so that a slow client holds no slot
	if place == nil {
		busy(w, nil, "too many requests at once", aMoment)
		return
	}
	defer place.leave()
	m, ok := readMessage(w, body)
	if !ok || !knownRevision(w, r, m.id) {
		return
	}
	if session && !era {
		if session = m.method != "initialize" || s.inSession(d, r); session {
			var done func()
			r, done = s.enterSession(d, r)
			defer done()
		} else {
			r.Header.Del(protocol.SessionHeader)
		}
	}
	c := call{message: m, era: era, session: session, bridged: onSocket(r)}
	c.bare = !era && !session && (c.bridged || m.method != "initialize")
	var shape envelopeless
	readsPlain := false // whether the toolset has clients that do not read JSON-RPC
	if c.bare && m.batch == nil {
		var p envelopeless
		if p, readsPlain = d.set.(envelopeless); readsPlain && m.translate() {
			shape = p
		}
		if readsPlain && m.method == "" {
			writeError(w, http.StatusBadRequest, m.id, protocol.CodeRequest,
				`the request contains neither a method nor a tool: POST a JSON-RPC message, or {"tool": NAME, "args": {…}}`)
			return
		}
		m.complete()
	}
	streams := readsPlain && wantsStream(r)
	numbers := m.keepNumbers()
	m.restoreBody(r, c.bare)
	if era && c.bridged {
		m.describe(r.Header)
	}
	r, end := s.holdAnswer(r)
	defer end()
	a := newAnswer(w, r, m.id)
	a.plain, a.numbers = shape, numbers
	// The response to a batch is one document, and some bare clients cannot read streams.
	if streams || (!c.bare || c.bridged) && m.batch == nil {
		a.showProgress(s.cfg.Progress)
	}
	defer a.finish()
	if streams {
		a.wait.begin(nil)
	}
	defer s.inFlight.enterRequest(a, place)()
	s.serveCall(d, a, place, c)
}

// call is a request that post is handling.
type call struct {
	*message
	era, session bool // whether the request is of the new era, and whether it belongs to a session (see the package comment)
	bridged      bool // the call arrived on the socket
	bare         bool // an old-era call outside a session, except an initialize request over TCP
}

// serveCall passes a request to the SDK, which answers it.
func (s *Server) serveCall(d *route, a *answer, place *place, c call) {
	switch {
	case c.batch != nil && c.session && !c.era:
		serveBatch(d.stateful, a, c.batch)
	case c.batch != nil:
		serveBatch(d.stateless, a, c.batch)
	case c.method == "subscriptions/listen" && c.era:
		if !place.moveToStreams() {
			busy(a, c.id, "too many streams", aMoment)
			return
		}
		defer a.beating(s.cfg.Progress)()
		d.stateless.ServeHTTP(a, a.request)
	case c.era:
		d.stateless.ServeHTTP(a, a.request)
	case c.bare:
		// Merge the structured content only for programs that call over HTTP without a session. A bridge's clients read
		// the result's content instead.
		a.merge = a.request.Header.Get(protocol.VersionHeader) == "" && c.method == "tools/call" && !c.bridged
		d.stateless.ServeHTTP(a, a.request)
	case c.session:
		d.stateful.ServeHTTP(a, a.request)
	default:
		s.startSession(d, a, a.request, c.message)
	}
}

// wantsStream reports whether a client accepts an event stream but not a JSON document.
func wantsStream(r *http.Request) bool {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	return strings.Contains(accept, "text/event-stream") && !strings.Contains(accept, "application/") && !strings.Contains(accept, "*/*")
}

// knownRevision refuses a request whose revision of MCP is newer than the latest one that the server supports. The
// refusal lists the supported revisions. The SDK itself refuses unknown older revisions. In a request of a newer
// revision, the SDK would require fields that exist only in the new era.
func knownRevision(w http.ResponseWriter, r *http.Request, id json.RawMessage) bool {
	revision, known := r.Header.Get(protocol.VersionHeader), mcp.SupportedProtocolVersions()
	if !protocol.IsStateless(revision) || slices.Contains(known, revision) {
		return true
	}
	if id == nil {
		id = json.RawMessage("null")
	}
	failure := map[string]any{
		"code":    mcp.CodeUnsupportedProtocolVersion,
		"message": "unsupported protocol version (supported versions: " + strings.Join(known, ", ") + ")",
		"data":    mcp.UnsupportedProtocolVersionData{Supported: known, Requested: tool.Clip(revision)},
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write(tool.Encode(map[string]any{"jsonrpc": "2.0", "id": id, "error": failure})) // the client may be gone
	return false
}

// endWithServer waits until the server stops or ctx is done. If the server stops, endWithServer calls cancel.
func (s *Server) endWithServer(ctx context.Context, cancel context.CancelFunc) {
	select {
	case <-s.stopping:
		cancel()
	case <-ctx.Done():
	}
}

// stream serves the GET of a session until the client disconnects, the session ends or the server stops.
func (s *Server) stream(d *route, w http.ResponseWriter, r *http.Request) {
	s.lasting(w, r, func(ctx context.Context, a *answer) {
		a.greet = func() []byte { return s.missedEvents(r.Header.Get(protocol.SessionHeader)) }
		ctx, end := context.WithCancel(ctx)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer end()
		wg.Go(func() { s.keepAlive(ctx, d, r.Header) })
		defer a.beating(s.cfg.Progress)()
		d.stateful.ServeHTTP(a, a.request)
	})
}

// inSession reports whether a request belongs to one of its caller's sessions. An initialize request that names another
// caller's session begins a new session.
func (s *Server) inSession(d *route, r *http.Request) bool {
	id := r.Header.Get(protocol.SessionHeader)
	return s.sessions.has(id, ownerOf(tool.CallerOf(r.Context()))) && d.lives(id)
}

// endSession serves the DELETE of a session. It first cancels the session's requests, because the SDK would wait for
// them to finish.
func (s *Server) endSession(d *route, w http.ResponseWriter, r *http.Request) {
	_, done := s.enterSession(d, r) // r keeps its own context, so that ending the session does not cancel this request
	defer done()
	id := r.Header.Get(protocol.SessionHeader)
	if id != noSession {
		s.kept.Remove(id)
		s.sessions.leave(id)
	}
	d.stateful.ServeHTTP(w, r)
}
