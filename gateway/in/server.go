// Package in receives mail: over SMTP from the Internet, and over LMTP from a mail server on this machine.
//
//	Server.Run    listens and serves until its context ends
//	listen.go     addresses to listen on, connection limits
//	session.go    one connection: sender, recipients, message
//	recipient.go  finds the mailbox of an address
//	strict.go     rejects invalid line endings
//
// The server replies 250 only after Deliverer has returned and the message is durable. It never relays mail, so it
// refuses recipients in other domains.
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
	"mailtree/gateway/spool"
)

// Limits on a connection.
const (
	maxRecipients = 100
	maxLine       = 8 << 10          // maximum bytes in a line; the standard allows 998, but some programs send longer lines
	maxErrors     = 10               // maximum number of refused recipients per connection
	firstTime     = 30 * time.Second // time limit for the first command
	commandTime   = 5 * time.Minute  // time limit for each later command and for a whole message
	stopTime      = 4 * time.Second  // time limit for messages in progress when the server stops
	sessionTime   = 30 * time.Minute // time limit for a whole connection
)

// Deliverer stores mail.
type Deliverer interface {
	// Deliver stores a message. It returns one result for each recipient. The result is nil if the message is durable
	// or had already been stored for that recipient. The result may also be ErrFull, or a *smtp.SMTPError, which
	// becomes the reply. For any other error, the server tells the sender to try again later.
	Deliver(ctx context.Context, d *Delivery) []error
}

// ErrFull means that a mailbox currently accepts no more mail.
var ErrFull = errors.New("the mailbox is full")

// Recipient is one of a message's recipients.
type Recipient struct {
	Address string // envelope recipient
	Mailbox string // the name returned by Directory
}

// Delivery is a message and its recipients.
type Delivery struct {
	To       []Recipient
	Sender   string // envelope sender; "" for the null sender
	Raw      []byte // the message, with this server's Return-Path and Received fields at the top; valid until Deliver returns
	Message  *message.Message
	Auth     auth.Result
	Received time.Time
}

// Config configures a Server.
type Config struct {
	Listen     []Address
	Host       string      // the server's host name
	Domains    []string    // our domains in lower case
	CatchAll   string      // the mailbox for unknown addresses; if "", mail to them is refused
	Postmaster string      // the mailbox for postmaster@ and abuse@
	TLS        *tls.Config // if nil, STARTTLS is not offered
	MTAUser    int         // uid of the mail server in front of us; if negative, no mail server is trusted
	SocketGID  int         // group of the Unix sockets; 0 means the process's group

	MaxConns        int // 0 means 100
	MaxConnsPerHost int // 0 means 10; an IPv6 /64 counts as one host; Unix sockets have no such limit

	Spool     *spool.Spool // memory and temporary files for messages that are being received
	Directory Directory
	Deliverer Deliverer
	Checker   *auth.Checker
	Now       func() time.Time
	Log       *slog.Logger
}

// Server receives mail.
type Server struct{ cfg Config }

// New returns a server without starting it. The configuration must be complete.
func New(cfg Config) *Server {
	if cfg.MaxConns == 0 {
		cfg.MaxConns = 100
	}
	if cfg.MaxConnsPerHost == 0 {
		cfg.MaxConnsPerHost = 10
	}
	return &Server{cfg}
}

// Run listens on all addresses and serves until ctx is done. Messages in progress then have stopTime to finish. Once
// the server is listening, Run calls ready, unless ready is nil. If the server cannot listen on an address, Run
// returns an error that includes the address.
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
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	for i, server := range servers {
		if server.Shutdown(end) != nil {
			server.Close()
		}
		listeners[i].Close() // Serve may not have registered this listener yet
	}
	for range servers {
		err = errors.Join(err, <-failed)
	}
	return err
}

// server returns the SMTP or LMTP server for an address.
func (s *Server) server(ctx context.Context, a Address) *smtp.Server {
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		return &session{server: s, ctx: ctx, conn: c, lmtp: a.LMTP}, nil
	}))
	server.Domain = s.cfg.Host
	server.LMTP = a.LMTP
	server.TLSConfig = s.cfg.TLS
	server.EnableSMTPUTF8 = true // without it, Postfix bounces non-ASCII headers even if all addresses are ASCII
	server.MaxRecipients = maxRecipients
	server.MaxMessageBytes = message.MaxBytes
	server.MaxLineLength = maxLine
	server.ReadTimeout = commandTime
	server.WriteTimeout = commandTime
	server.ErrorLog = slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug)
	return server
}
