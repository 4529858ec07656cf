// Package auth checks which domain vouches for the sender of an email. It evaluates SPF, DKIM and DMARC. DMARC ties SPF
// and DKIM to the From field.
//
//	Checker.Check  evaluates one message
//	dmarc.go       policies, and alignment of domains
//	authres.go     results from this machine's own mail server, if it can be trusted
//
// Callers must base decisions only on Result.Domain. It is the domain of the single From address. Check sets
// Result.Domain only if that domain publishes a DMARC policy, and a signature or the sending machine verifiably belongs
// to it, or if a trusted mail server reports that DMARC passes. Messages do not pass in unclear cases, such as two From
// fields, an unresponsive DNS server or an unreadable policy. Spec: RFC 7208, RFC 6376, RFC 7489.
package auth

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"blitiri.com.ar/go/spf"
	"github.com/emersion/go-msgauth/dkim"

	"mailtree/gateway/message"
	"mailtree/maildir/format"
)

const (
	maxSignatures = 8                // maximum number of signatures to verify; the rest are ignored
	timeout       = 20 * time.Second // time limit for all DNS lookups for one message
)

// Resolver looks up names. *net.Resolver implements it.
type Resolver interface {
	LookupTXT(ctx context.Context, name string) ([]string, error)
	LookupMX(ctx context.Context, name string) ([]*net.MX, error)
	LookupIPAddr(ctx context.Context, host string) ([]net.IPAddr, error)
	LookupAddr(ctx context.Context, addr string) ([]string, error)
}

// Checker evaluates messages. It is safe for concurrent use.
type Checker struct {
	Resolver Resolver
	Trusted  string // authserv-id of the mail server in front of us; if "", no results are trusted
}

// Peer describes the sending side of the connection that delivers a message.
type Peer struct {
	IP       netip.Addr // the sending machine; zero if our own mail server relayed the message, in which case SPF is not evaluated
	Helo     string
	MailFrom string // envelope sender; "" for the null sender
	Trusted  bool   // whether the kernel reports that our mail server opened the connection
}

// Result is the outcome of a check.
type Result struct {
	Domain string   // the From domain if the message passes, otherwise ""
	By     string   // why the message passes: dkim, spf, or the authserv-id of the server that reported the pass
	SPF    string   // none, neutral, pass, fail, softfail, temperror, permerror; "" if not evaluated
	DKIM   []string // domains with a valid signature, in lower case
	Reason string   // a sentence that says why the message does not pass, without a trailing period
}

// Auth returns the result as recorded in message files, which is either dmarc:DOMAIN or none.
func (r Result) Auth() string {
	if r.Domain == "" {
		return "none"
	}
	return "dmarc:" + r.Domain
}

// Check evaluates a message from a peer. The parameter raw is the message as received, and m is its parsed header. All
// DNS lookups together take at most 20 seconds. Check does not return errors. If it cannot verify the sender, the
// message does not pass.
func (c *Checker) Check(ctx context.Context, raw io.Reader, m *message.Message, peer Peer) Result {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var r Result
	_, domain, _ := strings.Cut(m.From, "@")
	switch {
	case domain == "":
		r.Reason = "the message does not have exactly one valid From address"
		return r
	case len(m.Repeated) > 0:
		r.Reason = "header fields that may occur only once are repeated: " + strings.Join(m.Repeated, ", ")
		return r
	}
	if verdict := c.believed(m, domain, peer); verdict != "" {
		r.By = c.Trusted
		if verdict == "pass" {
			r.Domain = domain
		} else {
			r.Reason = c.Trusted + " reports the DMARC result " + format.Cut(verdict, 20) + " for " + domain
		}
		return r
	}
	c.evaluate(ctx, raw, domain, peer, &r)
	return r
}

// evaluate evaluates DMARC and sets the fields of r.
func (c *Checker) evaluate(ctx context.Context, raw io.Reader, domain string, peer Peer, r *Result) {
	policy, err := c.policy(ctx, domain)
	if err != nil {
		r.Reason = err.Error()
		return
	}
	r.DKIM = c.signers(ctx, raw)
	for _, d := range r.DKIM {
		if aligned(d, domain, policy.DKIMAlignment) {
			r.Domain, r.By = domain, "dkim"
			return
		}
	}
	sender := c.spf(ctx, peer, r)
	switch {
	case sender != "" && aligned(sender, domain, policy.SPFAlignment):
		r.Domain, r.By = domain, "spf"
	case len(r.DKIM) > 0:
		r.Reason = "DKIM passes for " + strings.Join(r.DKIM, ", ") + ", not for " + domain
	case sender != "":
		r.Reason = "SPF passes for " + format.Quote(sender) + ", not for " + domain
	default:
		r.Reason = "neither DKIM nor SPF passes for " + domain
	}
}

// signers returns the domains with a valid signature on the message.
func (c *Checker) signers(ctx context.Context, raw io.Reader) (domains []string) {
	found, err := dkim.VerifyWithOptions(raw, &dkim.VerifyOptions{
		LookupTXT:        func(name string) ([]string, error) { return c.keys(ctx, name) },
		MaxVerifications: maxSignatures,
	})
	if err != nil && !errors.Is(err, dkim.ErrTooManySignatures) {
		return nil
	}
	for _, v := range found {
		if d := strings.ToLower(strings.TrimSuffix(v.Domain, ".")); v.Err == nil && !slices.Contains(domains, d) {
			domains = append(domains, d)
		}
	}
	return domains
}

// keys looks up the DKIM keys at a DNS name. It omits keys in test mode, because a message signed with such a key
// must be treated as unsigned. Spec: RFC 6376 3.6.1.
func (c *Checker) keys(ctx context.Context, name string) ([]string, error) {
	all, err := c.Resolver.LookupTXT(ctx, name)
	return slices.DeleteFunc(slices.Clone(all), func(record string) bool {
		for tag := range strings.SplitSeq(record, ";") {
			key, value, _ := strings.Cut(tag, "=")
			if strings.TrimSpace(key) == "t" && slices.Contains(strings.Split(strings.ReplaceAll(value, " ", ""), ":"), "y") {
				return true
			}
		}
		return false
	}), err
}

// spf evaluates SPF and records the result in r. It returns the domain that passed, or "".
func (c *Checker) spf(ctx context.Context, peer Peer, r *Result) (domain string) {
	if !peer.IP.IsValid() {
		return ""
	}
	sender := peer.MailFrom
	if sender == "" {
		sender = "postmaster@" + peer.Helo
	}
	result, _ := spf.CheckHostWithSender(peer.IP.Unmap().AsSlice(), peer.Helo, sender, spf.WithContext(ctx), spf.WithResolver(c.Resolver))
	if r.SPF = string(result); result != spf.Pass {
		return ""
	}
	return strings.ToLower(strings.TrimSuffix(sender[strings.LastIndexByte(sender, '@')+1:], "."))
}
