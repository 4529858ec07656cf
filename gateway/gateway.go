// Package gateway exchanges a store's mail with other domains.
//
//	gateway.go  the configuration
//	incoming.go finds the mailbox for incoming mail and stores the mail
//	outgoing.go sends the mail that a store's projects have queued
//	setup.go    the folder with the domains' keys; check.go explains what would happen to mail sent to an address
//	in/         receives mail over SMTP and LMTP
//	spool/      limits the memory and temporary files for mail that is being received
//	out/        composes, signs and sends mail, with retries
//	message/    parses an email into a neutral struct
//	auth/       checks who vouches for a sender: SPF, DKIM, DMARC
//	dns/        a domain's records and key
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

// Config configures the gateway. The zero value neither receives mail nor allows mail to be sent.
type Config struct {
	Listen     []in.Address
	Postmaster string      // the mailbox for postmaster@ and abuse@; required if Listen is set
	CatchAll   string      // the mailbox for unknown addresses; "": mail to them is refused
	TLS        *tls.Config // nil: no STARTTLS
	Authserv   string      // authserv-id of the server whose Authentication-Results are trusted; "": none
	MTAUser    int         // the uid of the mail server in front of this server; below 0: none

	Allow     []string       // domains to which mail may be sent; "*": all
	Rate      int            // maximum number of emails per mailbox per hour
	Smarthost *out.Smarthost // nil: mail goes directly to the recipients' servers

	DNS string // address of the DNS server, as ADDRESS:PORT; "": the machine's resolver
}

// NameServer returns the resolver that looks up names.
func (c *Config) NameServer() *net.Resolver {
	if c.DNS == "" {
		return net.DefaultResolver
	}
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, c.DNS)
	}}
}
