// Package in takes mail from the world: SMTP, and LMTP from a mail server on this machine.
//
//	Server.Run    listens and serves until its context ends
//	listen.go     addresses to listen at, limits for connections, the user behind a Unix socket
//	session.go    one connection: sender, recipients, message
//	recipient.go  which mailbox an address is
//	strict.go     line ends
//
// A message is answered 250 only when Deliverer has returned, which is when it is durable. Nothing is
// relayed: an address of another domain is refused.
package in

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/emersion/go-smtp"

	"mailtree/gateway/auth"
	"mailtree/gateway/message"
)

// Limits of a connection.
const (
	maxRecipients = 100
	maxLine       = 8 << 10          // bytes; mail has lines of 998, and programs that do not keep to it
	maxErrors     = 10               // recipients of one connection that are refused
	commandTime   = 5 * time.Minute  // to wait for a command, or for a whole message
	sessionTime   = 30 * time.Minute // of a connection
)

// Deliverer keeps mail.
type Deliverer interface {
	// Deliver keeps a message for one mailbox, and returns nil when it is durable, or when the same
	// message was kept for the same recipient before. Errors: ErrFull, a *smtp.SMTPError that is
	// passed on as it is; with any other the sender is told to try again later.
	Deliver(ctx context.Context, d *Delivery) error
}

// ErrFull says that a mailbox takes no more mail for now.
var ErrFull = errors.New("the mailbox is full")

// Delivery is a message for one recipient.
type Delivery struct {
	Mailbox  string // as Directory named it
	Address  string // the recipient in the envelope
	Sender   string // of the envelope; "" is the null sender
	Raw      []byte // as it came, with the fields Return-Path and Received of this server above it
	Message  *message.Message
	Auth     auth.Result
	Received time.Time
}

// Config says how a Server works.
type Config struct {
	Listen     []Address
	Host       string      // how the server calls itself
	Domains    []string    // that are ours, in lower case
	CatchAll   string      // the mailbox for unknown addresses; "" refuses them
	Postmaster string      // the mailbox for postmaster@ and abuse@
	TLS        *tls.Config // nil offers no STARTTLS
	MTAUser    int         // the uid of the mail server in front of us; below 0 trusts nobody
	SocketGID  int         // the group of Unix sockets; 0 leaves that of the process

	MaxConns        int // 0 is 100
	MaxConnsPerHost int // 0 is 10; not of Unix sockets

	Directory Directory
	Deliverer Deliverer
	Checker   *auth.Checker
	Now       func() time.Time
	Log       *slog.Logger
}

// Server takes mail in.
type Server struct{ cfg Config }

// New makes a server of a configuration, which must be whole. It starts nothing.
func New(cfg Config) *Server {
	if cfg.MaxConns == 0 {
		cfg.MaxConns = 100
	}
	if cfg.MaxConnsPerHost == 0 {
		cfg.MaxConnsPerHost = 10
	}
	return &Server{cfg}
}

// Run listens at all addresses and serves until ctx ends; it then lets messages that are under way
// end for five seconds. It calls ready, which may be nil, when it listens. Errors: those of
// listening, with the address.
func (s *Server) Run(ctx context.Context, ready func([]net.Listener)) error {
	var listeners []net.Listener
	defer func() {
		for _, l := range listeners {
			l.Close()
		}
	}()
	for _, a := range s.cfg.Listen {
		l, err := s.listen(ctx, a)
		if err != nil {
			return err
		}
		listeners = append(listeners, l)
	}
	failed := make(chan error, len(listeners))
	var servers []*smtp.Server
	for i, l := range listeners {
		server := s.server(ctx, s.cfg.Listen[i])
		servers = append(servers, server)
		go func() { failed <- server.Serve(l) }()
	}
	if ready != nil {
		ready(listeners)
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
		failed <- nil
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	for i, server := range servers {
		if server.Shutdown(end) != nil {
			server.Close()
		}
		listeners[i].Close() // Serve may not have told the server of it yet
	}
	for range servers {
		err = errors.Join(err, <-failed)
	}
	return err
}

// server makes the protocol's half of a listener.
func (s *Server) server(ctx context.Context, a Address) *smtp.Server {
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		return &session{server: s, ctx: ctx, conn: c, lmtp: a.LMTP}, nil
	}))
	server.Domain = s.cfg.Host
	server.LMTP = a.LMTP
	server.TLSConfig = s.cfg.TLS
	server.EnableSMTPUTF8 = true // postfix has letters beyond ASCII bounce otherwise, in a Subject too
	server.MaxRecipients = maxRecipients
	server.MaxMessageBytes = message.MaxBytes
	server.MaxLineLength = maxLine
	server.ReadTimeout = commandTime
	server.WriteTimeout = commandTime
	server.ErrorLog = slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug)
	return server
}
