// Package gateway exchanges a store's mail with other domains.
//
//	gateway.go  the configuration
//	incoming.go finds the mailbox for incoming mail and stores it
//	outgoing.go sends the mail queued by a store's projects
//	setup.go    the folder with the domains' keys
//	check.go    explains what would happen to mail sent to an address
//	in/         receives mail over SMTP and LMTP
//	spool/      limits the memory and temporary files used by mail that is being received
//	out/        composes, signs and sends mail, with retries
//	message/    parses an email into a neutral struct
//	auth/       checks which domain vouches for a sender: SPF, DKIM, DMARC
//	dns/        a domain's DNS records and key
//
// See docs/reference/email.md, "The gateway".
package gateway

import (
	"context"
	"crypto/tls"
	"net"

	"mailtree/gateway/in"
	"mailtree/gateway/out"
)

// Config configures the gateway. With the zero value, the gateway neither receives nor sends mail.
type Config struct {
	Listen     []in.Address
	Postmaster string      // the mailbox for postmaster@ and abuse@; required if Listen is set
	CatchAll   string      // the mailbox for unknown addresses; if "", mail to them is refused
	TLS        *tls.Config // if nil, STARTTLS is not offered
	Authserv   string      // authserv-id of the server whose Authentication-Results are trusted; "" trusts no server
	MTAUser    int         // uid of the mail server in front of this server; negative if there is no such server

	Allow     []string       // domains to which mail may be sent; "*" allows all
	Rate      int            // maximum number of emails per mailbox per hour
	Smarthost *out.Smarthost // if nil, mail goes directly to the recipients' servers

	DNS string // ADDRESS:PORT of the DNS server; "" means the system's resolver
}

// NameServer returns the resolver to use for DNS lookups.
func (c *Config) NameServer() *net.Resolver {
	if c.DNS == "" {
		return net.DefaultResolver
	}
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, c.DNS)
	}}
}
