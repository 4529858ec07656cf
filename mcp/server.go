// Package mcp implements the wire protocol: HTTP routes, protocol eras, callers. It contains no rules about mail. The
// toolsets below it call the domain packages.
//
// Each toolset has its own URLs (the table is in toolsets.go), and one URL serves every client. The headers of a POST
// select its handler (see endpoint.go):
//
//	MCP-Protocol-Version >= 2026-07-28   the stateless handler: subscriptions/listen
//	Mcp-Session-Id, or initialize        the stateful handler: sessions, GET streams
//	neither                              a bare POST, answered statelessly as one JSON document
//
// From the outside in, the handlers are wrapped by panic recovery, the request log, the Host and Origin checks, the
// user check, the token check and the limits. The limits apply to the size of each body and of all bodies together, and
// to the size of each response and of all large responses together (answers.go). They also apply to the number of
// requests, streams and sessions, and to the time that a client may take to send a body or read a response. A batch
// counts as one request, because the server handles its messages one after another (batch.go).
//
// One client's large uploads or waiting calls do not lock out other clients. The server counts a body as its bytes
// arrive, regardless of its declared length, and counts its request once the body is complete. A quarter of the
// requests and bodies is reserved for requests with bodies of up to 64 KiB. A call that waits for mail counts as a
// stream until it is answered. If there is no room for another stream, the server refuses the call as unavailable. A
// call that finds mail never waits. Other users on the socket have separate limits, each a quarter of the limits above.
package mcp

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"mailtree/maildir"
	"mailtree/mcp/resume"
	"mailtree/mcp/tool"
)

// Defaults for Config.
const (
	DefaultMaxBody        = 12 << 20  // enough for a message of 8 MiB, escaped as JSON
	DefaultMaxBodies      = 128 << 20 // the SDK keeps several copies of a body while decoding it
	DefaultMaxAnswers     = 64 << 20  // TestFaultMemory in cmd/mailtree checks the memory that this takes
	DefaultMaxRequests    = 1024
	DefaultMaxStreams     = 4096 // enough for 1,024 agents, each with a bridge's hold request, a GET stream and a waiting call
	DefaultMaxSessions    = 1024
	DefaultSessionTimeout = time.Hour
	DefaultProgress       = 25 * time.Second // proxies and clients give up after 30 s or 60 s of silence
)

// Config configures a Server. Store is required. Zero values select the defaults.
type Config struct {
	Store   *maildir.Store
	Version string

	Host  string   // address that the server is bound to, which determines the valid Host headers; "" means 127.0.0.1
	Hosts []string // additional names that a Host header may contain, such as a reverse proxy's

	Token        string // bearer token; "" if there is no token to check
	RequireToken bool   // refuse requests without the token (AUTH=token, or Host is not loopback)
	UserOnly     bool   // refuse other users on TCP unless they send the token (AUTH=user); peeruid.Check must succeed

	// Nudge implements POST /mailtree/nudge on the socket. It notifies agents of new mail, once or until ctx is done,
	// and calls told for each notified agent. If it is nil, the verb does not exist.
	Nudge func(ctx context.Context, by tool.Caller, watch bool, told func(any)) error
	// Queue is the queue of mail to other domains. If it is nil, the server does not send mail to other domains.
	Queue Queue
	// CheckAddress answers POST /mailtree/check-address. It explains what would happen to mail sent to the address.
	CheckAddress func(ctx context.Context, address string) (any, error)
	// Explain returns the text to send when a POST /mailtree/… on the socket is refused. If it is nil, the error's own
	// text is used.
	Explain func(error) string

	// Page is the web page for users. It serves the paths in its Patterns, and other requests for which Wants returns
	// true. If it is nil, there is no web page.
	Page Page
	// URL returns the server's TCP URL without a path. In a background server, calling URL makes the server start to
	// listen on TCP. If URL is nil, the server does not listen on TCP.
	URL func(context.Context) (string, error)

	// Looked is called when the user's screen shows a thread. It may be nil.
	Looked func(project, thread string)

	Stop  func() // stops the server; if nil, the server cannot be stopped over the socket
	Yield func() // stops a background server when another server starts; if nil, this server keeps running
	// Health returns the JSON of GET /health, and whether the server can do its work. If the server cannot, the status
	// on TCP is 503. If Health is nil, the response is {"status":"ok"}.
	Health func(context.Context) (report any, able bool)
	// Ready returns an error if the server cannot currently answer calls. Anyone who can connect can read the error. If
	// Ready is nil, the server is ready until it stops.
	Ready func(context.Context) error
	// Metrics serves GET /metrics. If it is nil, the path does not exist.
	Metrics http.Handler
	// Called is called after each tool call with the toolset and the tool, and whether the call was refused. It may be
	// nil.
	Called func(toolset, tool string, refused bool)
	Log    *slog.Logger // if nil, log lines are discarded

	MaxBody     int64 // maximum bytes of one request body; a larger body gets status 413
	MaxBodies   int64 // maximum bytes of all bodies being received or handled; a body over this limit gets status 503
	MaxAnswer   int   // maximum bytes of one response; longer lists and texts are split
	MaxAnswers  int64 // bytes of memory for all large responses; when none is left, calls wait and are eventually refused
	MaxRequests int   // maximum number of requests being handled; further requests get status 503

	// MaxStreams limits the number of open GET and subscriptions/listen streams, bridges, and calls that wait for mail.
	// Streams over the limit get status 503, and calls over the limit are refused.
	MaxStreams int
	// MaxSessions limits the number of sessions in memory, and the number of sessions saved in the store. If a new
	// session exceeds the limit, the server ends the least recently used session. If all sessions are in use, the
	// request for a new session gets status 503.
	MaxSessions int
	// SessionTimeout is how long a session stays in memory without a request or an open stream. After that, the session
	// is resumed from the store when it is next used, as after a restart.
	SessionTimeout time.Duration
	// Progress is the interval between notifications to a call that waits for mail, and between comments on a stream.
	Progress time.Duration
	// Settle is how long the server collects mail for an idle session before it wakes the session.
	Settle time.Duration
}

// Server serves mailtree over HTTP.
type Server struct {
	cfg    Config
	log    *slog.Logger
	token  [sha256.Size]byte
	routes []*route

	limits          // limits for the server's own user and for all callers on TCP
	guests   limits // limits for all other users on the socket together
	answers  answers
	sessions *sessions
	ids      nextID
	resuming sync.Mutex    // held while a session is resumed
	kept     resume.Folder // saves sessions, so that they survive a restart

	inFlight inFlight
	stopping chan struct{}
	stop     sync.Once
}

// New returns a new server. Call Run to start its background work.
func New(cfg Config) *Server {
	cfg.fill()
	s := &Server{
		cfg:      cfg,
		log:      cfg.Log,
		token:    sha256.Sum256([]byte(cfg.Token)),
		sessions: newSessions(),
		stopping: make(chan struct{}),
	}
	s.limits.set(int64(cfg.MaxRequests), int64(cfg.MaxStreams), cfg.MaxBodies)
	s.guests.set(int64(cfg.MaxRequests)/guestShare, int64(cfg.MaxStreams)/guestShare, max(cfg.MaxBodies/guestShare, 2*cfg.MaxBody))
	s.answers = newAnswers(cfg.MaxAnswers)
	s.keepIn()
	s.mount(s.table()...)
	return s
}

func (c *Config) fill() {
	if c.Host == "" {
		c.Host = "127.0.0.1"
	}
	if c.Version == "" {
		c.Version = "devel"
	}
	if c.Explain == nil {
		c.Explain = error.Error
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	orElse(&c.MaxBody, DefaultMaxBody)
	orElse(&c.MaxBodies, max(DefaultMaxBodies, 2*c.MaxBody)) // large bodies may take up three quarters of the limit
	orElse(&c.MaxAnswer, int(tool.DefaultBudget))
	orElse(&c.MaxAnswers, DefaultMaxAnswers)
	orElse(&c.MaxRequests, DefaultMaxRequests)
	orElse(&c.MaxStreams, DefaultMaxStreams)
	orElse(&c.MaxSessions, DefaultMaxSessions)
	orElse(&c.SessionTimeout, DefaultSessionTimeout)
	orElse(&c.Progress, DefaultProgress)
	orElse(&c.Settle, maildir.DefaultSettle)
}

func orElse[T int | int64 | time.Duration](v *T, deflt T) {
	if *v == 0 {
		*v = deflt
	}
}

// Run does the toolsets' background work, which notifies subscribers of changes, until ctx is done. Then it ends all
// streams and long polls, so that the HTTP server can shut down, and returns the toolsets' errors. Run may be called
// only once.
func (s *Server) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() {
		<-ctx.Done()
		s.end()
	})
	errs := make([]error, len(s.routes))
	for i, d := range s.routes {
		wg.Go(func() { errs[i] = d.set.Run(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// end closes stopping. Calling end again has no effect.
func (s *Server) end() { s.stop.Do(func() { close(s.stopping) }) }

// HTTPServer returns an http.Server with suitable timeouts for the handler. There is no overall write timeout, because
// streams and long polls take a long time. Instead, each write has a deadline. There is no overall read timeout either,
// because reading a body has its own time limit.
func (s *Server) HTTPServer(addr string) *http.Server {
	srv := &http.Server{
		Addr:              addr,
		Handler:           s.Handler(),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	if s.cfg.UserOnly {
		srv.ConnContext = findUser
	}
	return srv
}
