// Package gateway is mail to and from other domains, above the mail of the store.
//
//	gateway.go  the configuration, and what runs
//	incoming.go which mailbox gets what, and how it is kept
//	outgoing.go sends what the projects of a store have queued
//	setup.go    where the keys of domains lie; check.go says what would become of mail to an address
//	in/         takes mail over SMTP and LMTP
//	out/        composes, signs and sends mail, and tries until it is sent
//	message/    reads an email into a neutral struct
//	auth/       says who vouches for a sender: SPF, DKIM, DMARC
//	dns/        the records and the key of a domain
//
// See docs/email.md, "The gateway".
package gateway

import (
	"context"
	"crypto/tls"
	"net"

	"mailtree/gateway/in"
	"mailtree/gateway/out"
)

// Config says how mail comes and goes. The zero value takes no mail and allows none to be sent.
type Config struct {
	Listen     []in.Address
	Postmaster string      // the mailbox for postmaster@ and abuse@; Listen needs it
	CatchAll   string      // the mailbox for unknown addresses; "" refuses their mail
	TLS        *tls.Config // nil offers no STARTTLS
	Authserv   string      // whose Authentication-Results are believed; "" nobody's
	MTAUser    int         // the uid of the mail server in front of this one; below 0: none

	Allow     []string       // domains that mail may be sent to; "*" all
	Rate      int            // most emails of a mailbox in an hour
	Smarthost *out.Smarthost // nil: the recipients' own servers

	DNS string // the server that is asked, as ADDRESS:PORT; "" the machine's
}

// resolver returns the resolver that looks names up.
func (c *Config) resolver() *net.Resolver {
	if c.DNS == "" {
		return net.DefaultResolver
	}
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, c.DNS)
	}}
}
