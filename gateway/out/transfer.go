package out

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/emersion/go-smtp"

	"mailtree/maildir/format"
	"mailtree/maildir/outgoing"
)

// Transport delivers a message to one recipient.
type Transport interface {
	// Deliver returns the remote server's reply once the server has accepted the message. It calls sending just before
	// it sends the end of the message. If sending returns an error, Deliver does not send the end. Deliver returns a
	// *Refusal if the server will never accept the message, and ErrUnanswered if the server did not reply to the end of
	// the message. Any other error means that the message was not accepted, so another attempt is allowed.
	Deliver(ctx context.Context, i *outgoing.Item, raw []byte, sending func() error) (reply string, err error)
}

// Refusal is a permanent refusal by the remote server.
type Refusal struct{ Reply string }

// Error returns the remote server's reply.
func (r *Refusal) Error() string { return r.Reply }

// ErrUnanswered means that the whole message was sent but no reply arrived.
var ErrUnanswered = errors.New("the remote server did not confirm the message, but may have accepted it")

const (
	connectTime  = 30 * time.Second
	deliveryTime = 30 * time.Minute // time limit for one message to one server
	stopTime     = 4 * time.Second  // how long to wait for a reply after ctx is done
	maxReply     = 500              // bytes of a reply that are kept
)

// dialer connects to a server. Tests replace it.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: connectTime}
	return d.DialContext(ctx, network, address)
}

// connect sets up an SMTP connection and sends EHLO with the given name. If config is not nil and the server offers
// TLS, connect starts TLS. If must is true but the server does not offer TLS, connect returns an error. The connection
// is closed stopTime after ctx is done, so that the reply to a complete message can still arrive.
func connect(ctx context.Context, conn net.Conn, name string, config *tls.Config, must bool) (*smtp.Client, error) {
	context.AfterFunc(ctx, func() { time.AfterFunc(stopTime, func() { conn.Close() }) })
	c := smtp.NewClient(conn)
	if err := c.Hello(name); err != nil {
		conn.Close()
		return nil, err
	}
	offered, _ := c.Extension("STARTTLS")
	switch {
	case must && !offered:
		conn.Close()
		return nil, errors.New("the server does not offer STARTTLS")
	case config == nil || !offered:
		return c, nil
	}
	c, err := smtp.NewClientStartTLS(&greeted{Conn: conn}, config)
	if err == nil {
		err = c.Hello(name)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}

// greeted is a connection whose greeting has already been read. Read returns a greeting again, because the library
// can start TLS only on a connection from which nothing has been read.
type greeted struct {
	net.Conn
	again bool
}

// Read implements net.Conn.
func (g *greeted) Read(p []byte) (int, error) {
	if !g.again {
		g.again = true
		return copy(p, "220 \r\n"), nil
	}
	return g.Conn.Read(p)
}

// transfer sends one message over a connection on which EHLO has already been sent.
func transfer(c *smtp.Client, i *outgoing.Item, raw []byte, sending func() error) (string, error) {
	options := &smtp.MailOptions{Size: int64(len(raw))}
	if !ascii(i.From) || !ascii(i.To) || !ascii(header(raw)) {
		if ok, _ := c.Extension("SMTPUTF8"); !ok {
			return "", &Refusal{"the remote server accepts only ASCII addresses (it does not support SMTPUTF8)"}
		}
		options.UTF8 = true
	}
	if err := c.Mail(i.From, options); err != nil {
		return "", answered(err)
	}
	if err := c.Rcpt(i.To, nil); err != nil {
		return "", answered(err)
	}
	w, err := c.Data()
	if err != nil {
		return "", answered(err)
	}
	if _, err := w.Write(raw); err != nil {
		return "", answered(err)
	}
	if err := sending(); err != nil {
		return "", err
	}
	response, err := w.CloseWithResponse()
	var reply *smtp.SMTPError
	switch {
	case errors.As(err, &reply):
		return "", answered(err)
	case err != nil:
		return "", fmt.Errorf("%w (%v)", ErrUnanswered, err)
	}
	return words("250", response.StatusText), nil
}

// answered converts an error from the library to one of the errors that Transport documents.
func answered(err error) error {
	var reply *smtp.SMTPError
	if !errors.As(err, &reply) {
		return err
	}
	text := words(fmt.Sprint(reply.Code), reply.Message)
	if e := reply.EnhancedCode; e != (smtp.EnhancedCode{}) {
		text = words(fmt.Sprintf("%d %d.%d.%d", reply.Code, e[0], e[1], e[2]), reply.Message)
	}
	if reply.Code/100 == 5 {
		return &Refusal{text}
	}
	return errors.New(text)
}

// words formats the remote server's reply as a single line.
func words(code, text string) string {
	clean := strings.Map(func(r rune) rune {
		if format.Misleading(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd"))
	return format.Cut(code+" "+strings.Join(strings.Fields(clean), " "), maxReply)
}

func header(raw []byte) string {
	head, _, _ := strings.Cut(string(raw), "\r\n\r\n")
	return head
}

func ascii(s string) bool { return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 }) }
