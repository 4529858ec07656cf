// Package mcp is the wire: HTTP routes, protocol eras, who calls. It holds no rule of the mail; the
// toolsets below it call the domain.
//
// Each toolset has its URLs (the table is in door.go), and one URL serves every client. Headers
// alone tell POSTs apart (see endpoint.go):
//
//	MCP-Protocol-Version >= 2026-07-28   the stateless handler: subscriptions/listen
//	Mcp-Session-Id, or initialize        the stateful handler: sessions, GET streams
//	neither                              a bare POST, answered statelessly as one JSON document
//
// Around the handlers stand, outermost first: recovery from panics, the request log, the Host and
// Origin checks, the token, limits. Limits bound what a request may cost: the bytes of its body and
// of all bodies at once, the bytes of an answer and of all large ones at once (answers.go), the
// number of requests, streams and sessions, the time a client may take to send a body or to read an
// answer. A batch is one request: the server handles its messages one after the other (batch.go).
//
// Nobody's large uploads or waiting keep others out. A body counts as its bytes arrive, whatever
// length was declared, and its request counts once all of it is there. Requests with a body of up
// to 64 KiB have a fourth of requests and bodies to themselves. A call that waits for mail counts
// as a stream from then on until it is answered; where there is no room for one more stream, the
// server refuses it as unavailable. A call that finds mail never waits. Other users on the socket
// have limits of their own, a fourth of each.
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
	DefaultMaxBodies      = 128 << 20 // the SDK holds a body several times over while it decodes it
	DefaultMaxAnswers     = 64 << 20  // memory of large answers; measured: cmd/mailtree, TestFaultMemory
	DefaultMaxRequests    = 1024
	DefaultMaxStreams     = 4096 // 1,024 agents, each with a bridge that holds the server, a GET stream and a call that waits
	DefaultMaxSessions    = 1024
	DefaultSessionTimeout = time.Hour
	DefaultProgress       = 30 * time.Second // clients count a minute without a sign of life as the end
)

// Config says what is served and to whom. Store is needed; zero values mean the defaults.
type Config struct {
	Store   *maildir.Store
	Version string

	Host  string   // what the server is bound to; "" is 127.0.0.1. Decides which Host headers are right
	Hosts []string // further names that a Host header may have (a reverse proxy's)

	Token        string // bearer token; "" when there is none to compare with
	RequireToken bool   // refuse requests without it (AUTH=token, or Host is not loopback)

	// Nudge is what POST /mailtree/nudge on the socket does for its caller: it tells agents of new mail,
	// once or as long as ctx lasts, and told hears of each. nil: there is no such thing.
	Nudge func(ctx context.Context, by tool.Caller, watch bool, told func(any)) error
	// Explain words the refusals of POST /mailtree/… on the socket; nil: as they are.
	Explain func(error) string

	// Page is the page for people: it answers GET / and what no other address is for. nil: there is
	// none.
	Page Page
	URL  string // of this server over TCP, without a path; "" for one that has no TCP

	Stop   func()                    // stops the server, whatever it does; nil: it is not to be stopped over the socket
	Yield  func()                    // stops a server in the background for another that starts; nil: it does not yield
	Health func(context.Context) any // what GET /health answers as JSON; nil: {"status":"ok"}
	// Metrics answers GET /metrics; nil: there is no such thing.
	Metrics http.Handler
	// Called is told of each call of a tool of a toolset, and whether it was refused. nil: nobody is.
	Called func(toolset, tool string, refused bool)
	Log    *slog.Logger // nil: discarded

	MaxBody     int64 // bytes of one request body; more is answered 413
	MaxBodies   int64 // bytes of all bodies that have come and are worked on; more is answered 503
	MaxAnswer   int   // bytes of one answer; a list or text that has more comes in pieces
	MaxAnswers  int64 // bytes of memory for all large answers; calls wait for it, then they are refused
	MaxRequests int   // requests being worked on; more is answered 503

	// MaxStreams bounds open GET and subscriptions/listen streams, bridges, and calls that wait for
	// mail. One more is answered 503, a call is refused.
	MaxStreams int
	// MaxSessions bounds the sessions begun with initialize, and those that stand in the store. One
	// more ends the session that has been unused for longest; where all are in use it is answered
	// 503.
	MaxSessions int
	// SessionTimeout is how long a session takes memory without a request or an open stream; after
	// that it is resumed from the store, as after a restart.
	SessionTimeout time.Duration
	// Progress is the time between two notifications to a call that waits for mail.
	Progress time.Duration
	// Settle is how long mail for an idle session is let come together before that is woken.
	Settle time.Duration
}

// Server is the HTTP surface.
type Server struct {
	cfg   Config
	log   *slog.Logger
	token [sha256.Size]byte
	doors []*door

	limits          // of the server's own user, and of everybody over TCP
	guests   limits // of other users on the socket, all together
	answers  answers
	sessions *sessions
	ids      nextID
	resuming sync.Mutex    // held while a session is resumed
	kept     resume.Folder // sessions, for the next server

	underWay underWay
	stopping chan struct{}
	stop     sync.Once
}

// New makes the server. It starts nothing: Run does.
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
	orElse(&c.MaxBodies, max(DefaultMaxBodies, 2*c.MaxBody)) // three fourths are for large ones
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

// Run runs what the toolsets do beside answering (they tell subscribers of changes) until ctx ends.
// Then it ends every stream and long poll, so that the HTTP server can shut down, and returns the
// errors of the toolsets. It may be called once.
func (s *Server) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() {
		<-ctx.Done()
		s.end()
	})
	errs := make([]error, len(s.doors))
	for i, d := range s.doors {
		wg.Go(func() { errs[i] = d.set.Run(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// end closes stopping, once.
func (s *Server) end() { s.stop.Do(func() { close(s.stopping) }) }

// HTTPServer returns an http.Server for the handler, with timeouts that suit it: none on writing,
// because streams and long polls take their time (each single write has a deadline), and none on
// all of reading, because the body has a timeout of its own.
func (s *Server) HTTPServer(addr string) *http.Server {
	return &http.Server{
		Addr:              addr,
		Handler:           s.Handler(),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}
