// Package mcp implements the wire protocol: HTTP routes, protocol eras, callers. It contains no rules about mail. The
// toolsets below it call the domain.
//
// Each toolset has its own URLs (the table is in toolsets.go), and one URL serves every client. Only the headers
// distinguish POSTs (see endpoint.go):
//
//	MCP-Protocol-Version >= 2026-07-28   the stateless handler: subscriptions/listen
//	Mcp-Session-Id, or initialize        the stateful handler: sessions, GET streams
//	neither                              a bare POST, answered statelessly as one JSON document
//
// The handlers are wrapped, from the outside in, by: recovery from panics, the request log, the Host and Origin checks,
// the user, the token, limits. The limits restrict the cost of a request. They apply to the bytes of its body and of
// all bodies together, and to the bytes of an answer and of all large answers together (answers.go). They also apply to
// the number of requests, streams and sessions, and to the time that a client may take to send a body or to read an
// answer. A batch counts as one request, because the server handles its messages one after the other (batch.go).
//
// A client's large uploads or waiting calls do not keep other clients out. A body is counted as its bytes arrive,
// whatever length was declared, and its request is counted once the body is complete. A fourth of the requests and
// bodies is reserved for requests with a body of up to 64 KiB. A call that is waiting for mail counts as a stream until
// it is answered. If there is no room for one more stream, the server refuses the call as unavailable. A call that
// finds mail never waits. Other users on the socket have separate limits, each a fourth of the limits above.
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

// Defaults of Config.
const (
	DefaultMaxBody        = 12 << 20  // a message of 8 MiB, escaped as JSON
	DefaultMaxBodies      = 128 << 20 // the SDK has several copies of a body while it decodes it
	DefaultMaxAnswers     = 64 << 20  // memory of large answers; measured: cmd/mailtree, TestFaultMemory
	DefaultMaxRequests    = 1024
	DefaultMaxStreams     = 4096 // 1,024 agents, each with a bridge's hold, a GET stream and a waiting call
	DefaultMaxSessions    = 1024
	DefaultSessionTimeout = time.Hour
	DefaultProgress       = 25 * time.Second // proxies and clients give up after 30 s or 60 s without a sign of life
)

// Config configures a Server. Store is required. Zero values mean the defaults.
type Config struct {
	Store   *maildir.Store
	Version string

	Host  string   // address that the server is bound to; "" is 127.0.0.1. It decides which Host headers are accepted
	Hosts []string // more names that a Host header may contain, such as a reverse proxy's

	Token        string // bearer token; "" if there is none to compare with
	RequireToken bool   // refuse requests without it (AUTH=token, or Host is not loopback)
	UserOnly     bool   // over TCP, refuse other users of this machine who send no token (AUTH=user); peeruid.Check must be nil

	// Nudge implements POST /mailtree/nudge on the socket. It notifies agents of new mail, once or until ctx ends,
	// and calls told for each agent. If it is nil, the verb does not exist.
	Nudge func(ctx context.Context, by tool.Caller, watch bool, told func(any)) error
	// Queue is the queue of mail to other domains. If it is nil, the server sends no mail to other domains.
	Queue Queue
	// CheckAddress answers POST /mailtree/check-address. It explains what would happen to mail sent to an address.
	CheckAddress func(ctx context.Context, address string) (any, error)
	// Explain returns the wording for refusals of POST /mailtree/… on the socket. If it is nil, the refusals' own
	// wording is used.
	Explain func(error) string

	// Page is the web page for users. It serves GET / and pagePaths. If it is nil, there is no page.
	Page Page
	// URL returns the URL of this server over TCP, without a path. If the server runs in the background, it begins to
	// listen when URL is called. If URL is nil, the server does not listen on TCP.
	URL func(context.Context) (string, error)

	Stop  func() // stops the server; nil: the server cannot be stopped over the socket
	Yield func() // stops a background server when another server starts; nil: the server does not yield
	// Health returns the JSON of GET /health, and whether the server can do its work. If it cannot, the status over
	// TCP is 503. If Health is nil, the answer is {"status":"ok"}.
	Health func(context.Context) (report any, able bool)
	// Metrics answers GET /metrics. If it is nil, the address does not exist.
	Metrics http.Handler
	// Called is called after each call of a tool, with the toolset and whether the call was refused. It may be nil.
	Called func(toolset, tool string, refused bool)
	Log    *slog.Logger // nil: discarded

	MaxBody     int64 // bytes of one request body; a larger one is answered with 413
	MaxBodies   int64 // bytes of all bodies being received or handled; more is answered with 503
	MaxAnswer   int   // bytes of one answer; a longer list or text is split
	MaxAnswers  int64 // bytes of memory for all large answers; calls wait for memory and are then refused
	MaxRequests int   // requests being handled; more is answered with 503

	// MaxStreams bounds open GET and subscriptions/listen streams, bridges, and calls that wait for mail. A stream over
	// the limit is answered with 503. A call over the limit is refused.
	MaxStreams int
	// MaxSessions bounds the sessions in memory, and the sessions kept in the store. A new session over the limit ends
	// the session that has been unused for the longest time. If all sessions are in use, the request for a new one is
	// answered with 503.
	MaxSessions int
	// SessionTimeout is how long a session stays in memory without a request or an open stream. After that it is
	// resumed from the store, as after a restart.
	SessionTimeout time.Duration
	// Progress is the time between two notifications to a call that waits for mail, and between two comments
	// on a stream.
	Progress time.Duration
	// Settle is how long mail for an idle session is collected before the session is woken.
	Settle time.Duration
}

// Server is the server's HTTP interface.
type Server struct {
	cfg    Config
	log    *slog.Logger
	token  [sha256.Size]byte
	routes []*route

	limits          // for the server's own user, and for all callers over TCP
	guests   limits // for other users on the socket, all together
	answers  answers
	sessions *sessions
	ids      nextID
	resuming sync.Mutex    // held while a session is resumed
	kept     resume.Folder // sessions that survive a restart

	inFlight inFlight
	stopping chan struct{}
	stop     sync.Once
}

// New creates the server. It starts nothing. Run starts the background work.
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
	orElse(&c.MaxBodies, max(DefaultMaxBodies, 2*c.MaxBody)) // large bodies may take three fourths of it
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

// Run runs the background work of the toolsets, which notify subscribers of changes, until ctx ends. Then it ends every
// stream and long poll, so that the HTTP server can shut down, and returns the toolsets' errors. It may be called once.
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

// end closes stopping, once.
func (s *Server) end() { s.stop.Do(func() { close(s.stopping) }) }

// HTTPServer returns an http.Server for the handler, with suitable timeouts. There is no overall write timeout, because
// streams and long polls take a long time. Instead, each write has a deadline. There is no overall read timeout,
// because the body has a separate timeout.
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
