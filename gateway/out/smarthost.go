package out

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"github.com/emersion/go-sasl"

	"mailtree/maildir/outgoing"
)

// Smarthost is a Transport that sends all our mail through one server, which relays it.
type Smarthost struct {
	Host, Port   string
	TLS          bool        // whether to use TLS from the first byte; if not, STARTTLS is used, or plain text if Host is this machine
	User         string      // if "", do not log in
	PasswordFile string      // file whose first line is the password; read again for each message
	Name         string      // our host name, for EHLO
	Config       *tls.Config // if nil, the machine's certificates are used; the server is always verified

	Resolver *net.Resolver // used to look up Host; if nil, the machine's resolver is used
}

// ParseSmarthost parses smtps://USER@HOST:465 or smtp://HOST:587. If s is invalid, the error says what to write
// instead.
func ParseSmarthost(s string) (*Smarthost, error) {
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || u.Path != "" || u.Scheme != "smtp" && u.Scheme != "smtps" {
		return nil, errors.New("the smarthost address is not valid: use smtps://USER@HOST:465 or smtp://HOST:587")
	}
	if _, has := u.User.Password(); has {
		return nil, errors.New("the smarthost address contains a password: put the password in a file instead")
	}
	secure := u.Scheme == "smtps"
	port := cmp.Or(u.Port(), map[bool]string{true: "465", false: "587"}[secure])
	return &Smarthost{Host: u.Hostname(), Port: port, TLS: secure, User: u.User.Username()}, nil
}

// here reports whether host refers to this machine.
func here(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// Deliver implements Transport. If the smarthost rejects our login, the error is not a *Refusal, so the queue retries
// the message.
func (s *Smarthost) Deliver(ctx context.Context, i *outgoing.Item, raw []byte, sending func() error) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, deliveryTime)
	defer cancel()
	dialer := net.Dialer{Timeout: connectTime, Resolver: s.Resolver}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(s.Host, s.Port))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	config := &tls.Config{}
	if s.Config != nil {
		config = s.Config.Clone()
	}
	config.ServerName = s.Host
	switch {
	case s.TLS:
		conn, config = tls.Client(conn, config), nil
	case here(s.Host):
		config = nil
	}
	c, err := connect(ctx, conn, s.Name, config, config != nil)
	if err != nil {
		return "", fmt.Errorf("%s: %w", s.Host, err)
	}
	if s.User != "" {
		if err := s.login(c); err != nil {
			return "", fmt.Errorf("%s: %w", s.Host, err)
		}
	}
	reply, err := transfer(c, i, raw, sending)
	if err == nil {
		c.Quit() // the reply to QUIT does not matter
	}
	return reply, err
}

// authenticator contains the methods of an SMTP client that are needed to log in.
type authenticator interface {
	SupportsAuth(mechanism string) bool
	Auth(sasl.Client) error
}

func (s *Smarthost) login(c authenticator) error {
	data, err := os.ReadFile(s.PasswordFile)
	if err != nil {
		return err
	}
	password, _, _ := strings.Cut(string(data), "\n")
	password = strings.TrimSuffix(password, "\r")
	if !c.SupportsAuth(sasl.Plain) && c.SupportsAuth(sasl.Login) {
		return c.Auth(sasl.NewLoginClient(s.User, password))
	}
	return c.Auth(sasl.NewPlainClient("", s.User, password))
}
