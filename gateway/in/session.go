package in

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/emersion/go-smtp"

	"mailtree/gateway/auth"
	"mailtree/gateway/message"
	"mailtree/gateway/spool"
	"mailtree/mcp/socket"
)

// session is an SMTP session. It lasts from one client greeting to the next, or to the end of the connection.
type session struct {
	server *Server
	ctx    context.Context // Run's context; the library does not pass a context to sessions
	conn   *smtp.Conn
	lmtp   bool

	begun   bool // whether MAIL has been accepted
	sender  string
	to      []Recipient
	refused int // number of recipients refused on this connection
}

// Reset discards the current message.
func (s *session) Reset() { s.begun, s.sender, s.to = false, "", nil }

// Logout does nothing.
func (s *session) Logout() error { return nil }

// Mail starts a message.
func (s *session) Mail(sender string, _ *smtp.MailOptions) error {
	switch {
	case s.begun:
		return refuse(503, 5, 5, 1, "A mail transaction is already in progress: finish it or send RSET")
	case sender != "" && strings.Count(sender, "@") != 1: // programs disagree about which of two @ signs precedes the domain
		return refuse(553, 5, 1, 7, "The sender address is not valid")
	case len(sender) > 320 || !utf8.ValidString(sender) ||
		strings.ContainsFunc(sender, func(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }):
		return refuse(553, 5, 1, 7, "The sender address is not valid")
	}
	s.begun, s.sender = true, sender
	return nil
}

// Rcpt adds a recipient to the message.
func (s *session) Rcpt(address string, _ *smtp.RcptOptions) error {
	if s.refused >= maxErrors {
		return refuse(421, 4, 7, 0, "Too many recipients were refused, try again later")
	}
	mailbox, err := s.server.Mailbox(s.ctx, address)
	if err != nil {
		s.refused++
		return err
	}
	s.to = append(s.to, Recipient{address, mailbox})
	return nil
}

// Data receives a message for all recipients. SMTP has only one reply for all recipients, so if delivery to one of them
// fails, the sender retries for all of them. Deliverer does not store a second copy for recipients that already have
// the message.
func (s *session) Data(r io.Reader) error {
	var worst error
	err := s.receive(r, func(_ Recipient, err error) {
		if worst == nil || temporary(err) {
			worst = err
		}
	})
	return cmp.Or(err, worst)
}

func temporary(err error) bool {
	var reply *smtp.SMTPError
	return errors.As(err, &reply) && reply.Temporary()
}

// LMTPData receives a message and sends one reply for each recipient.
func (s *session) LMTPData(r io.Reader, status smtp.StatusCollector) error {
	return s.receive(r, func(to Recipient, err error) { status.SetStatus(to.Address, err) })
}

// receive receives, checks and delivers a message. It calls done for each recipient with the SMTP reply, which is nil
// if the message is durable. If the whole message fails, receive does not call done. Instead, it returns the SMTP reply
// for all recipients as an error.
func (s *session) receive(r io.Reader, done func(Recipient, error)) error {
	m, err := s.server.cfg.Spool.Receive()
	if err != nil {
		return s.server.reply(err)
	}
	defer m.Close()
	if err := s.read(r, m); err != nil {
		return err
	}
	head, err := m.Head(message.MaxHeader + 1)
	if err != nil {
		return s.server.reply(err)
	}
	parsed, err := message.ParseHeader(head)
	if err != nil {
		return unreadable(err)
	}
	peer, now := s.peer(), s.server.cfg.Now()
	d := &Delivery{To: s.to, Sender: s.sender, Received: now, Auth: s.server.cfg.Checker.Check(s.ctx, m.Reader(), parsed, peer)}
	trace := s.trace(peer, now)
	lerr := m.Load(s.ctx, trace, func(whole []byte) {
		d.Raw = whole
		if d.Message, err = message.Parse(whole[len(trace):]); err != nil {
			return
		}
		for i, err := range s.server.cfg.Deliverer.Deliver(s.ctx, d) {
			done(s.to[i], s.server.reply(err))
		}
	})
	if err != nil {
		return unreadable(err)
	}
	return s.server.reply(lerr)
}

// read copies a whole message from r to the given writer. The error is an SMTP reply.
func (s *session) read(r io.Reader, to io.Writer) error {
	_, err := io.Copy(to, &strictReader{r: r})
	var known *smtp.SMTPError
	var disk *fs.PathError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return known
	case errors.Is(err, smtp.ErrTooLongLine):
		return refuse(500, 5, 6, 0, fmt.Sprintf("A line is longer than %d bytes", maxLine))
	case errors.Is(err, spool.ErrNoRoom), errors.As(err, &disk):
		return s.server.reply(err)
	}
	return refuse(451, 4, 4, 2, "The message was not received completely")
}

// unreadable returns the SMTP reply for an error from message.Parse.
func unreadable(err error) error {
	switch {
	case errors.Is(err, message.ErrLoop):
		return refuse(554, 5, 4, 6, err.Error())
	case errors.Is(err, message.ErrTooLarge), errors.Is(err, message.ErrHeaderTooLarge):
		return refuse(552, 5, 3, 4, err.Error())
	}
	return refuse(550, 5, 6, 0, err.Error())
}

// peer describes the sending side of the connection. For SMTP, this is a remote machine. For LMTP, it is our own mail
// server.
func (s *session) peer() auth.Peer {
	p := auth.Peer{Helo: s.conn.Hostname(), MailFrom: s.sender}
	switch a := s.conn.Conn().RemoteAddr().(type) {
	case *net.TCPAddr:
		if !s.lmtp {
			p.IP = a.AddrPort().Addr().Unmap()
		}
	case *net.UnixAddr:
		p.Trusted = s.server.cfg.MTAUser >= 0 && s.uid() == s.server.cfg.MTAUser
	}
	return p
}

// uid returns the uid of the process at the other end of a Unix socket. If the connection is not a Unix socket or the
// kernel does not report the uid, uid returns -1.
func (s *session) uid() int {
	c, ok := s.conn.Conn().(*strictConn)
	if !ok {
		return -1
	}
	local, ok := c.Conn.(*net.UnixConn)
	if !ok {
		return -1
	}
	uid, err := socket.Peer(local)
	if err != nil {
		return -1
	}
	return uid
}

// trace returns the header fields that this server adds to the top of a message. Spec: RFC 5321 4.4.
func (s *session) trace(p auth.Peer, now time.Time) []byte {
	var b bytes.Buffer
	protocol := "ESMTP"
	if s.lmtp {
		protocol = "LMTP"
	}
	if _, ok := s.conn.TLSConnectionState(); ok {
		protocol += "S"
	}
	from := printable(p.Helo)
	if p.IP.IsValid() {
		from += " (" + literal(p.IP) + ")"
	}
	fmt.Fprintf(&b, "Return-Path: <%s>\r\nReceived: from %s\r\n\tby %s with %s; %s\r\n", s.sender, from, s.server.cfg.Host, protocol,
		now.Format("Mon, 02 Jan 2006 15:04:05 -0700"))
	return b.Bytes()
}

func literal(ip netip.Addr) string {
	if ip.Is6() {
		return "[IPv6:" + ip.String() + "]"
	}
	return "[" + ip.String() + "]"
}

// printable makes a name from the client's greeting safe to write into a header.
func printable(name string) string {
	name = strings.Map(func(r rune) rune {
		if r <= ' ' || r >= 0x7f || strings.ContainsRune("()<>;\"\\", r) {
			return '?'
		}
		return r
	}, name)
	return name[:min(len(name), 255)]
}
