// Package auth says who vouches for the sender of an email: SPF, DKIM, and DMARC, which ties them to
// the From field.
//
//	Checker.Check  evaluates one message
//	dmarc.go       policies, and when two domains belong together
//	authres.go     what the machine's own mail server found, where it may be believed
//
// The one result that counts is Result.Domain: the domain of the one From address, where a signature
// or the sending machine was found to be of that domain and the domain publishes a DMARC policy.
// Everything that is unclear is no pass: two From fields, a DNS server that does not answer, a
// policy that cannot be read. Spec: RFC 7208, RFC 6376, RFC 7489.
package auth

import (
	"bytes"
	"context"
	"errors"
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
	maxSignatures = 8                // that are verified; the rest counts as none
	timeout       = 20 * time.Second // for all look-ups of one message
)

// Resolver looks names up. *net.Resolver is one.
type Resolver interface {
	LookupTXT(ctx context.Context, name string) ([]string, error)
	LookupMX(ctx context.Context, name string) ([]*net.MX, error)
	LookupIPAddr(ctx context.Context, host string) ([]net.IPAddr, error)
	LookupAddr(ctx context.Context, addr string) ([]string, error)
}

// Checker evaluates messages. Safe for concurrent use.
type Checker struct {
	Resolver Resolver
	Trusted  string // the authserv-id of the mail server in front of us; "" believes nobody's results
}

// Peer is the other side of the connection that a message came through.
type Peer struct {
	IP       netip.Addr // of the machine that sends; the zero value behind a mail server of ours: SPF is not evaluated then
	Helo     string
	MailFrom string // of the envelope; "" is the null sender
	Trusted  bool   // the connection is that of our mail server, as the kernel tells
}

// Result is what was found.
type Result struct {
	Domain string   // the domain of From, where it passes; "" where nobody vouches for it
	By     string   // how it passes: dkim, spf, or the authserv-id that says so
	SPF    string   // none, neutral, pass, fail, softfail, temperror, permerror; "" where it was not evaluated
	DKIM   []string // the domains whose signatures are valid, in lower case
	Reason string   // why it does not pass, as a sentence without its end
}

// Auth is what a message file says about it: dmarc:DOMAIN, or none.
func (r Result) Auth() string {
	if r.Domain == "" {
		return "none"
	}
	return "dmarc:" + r.Domain
}

// Check evaluates a message that came from a peer: raw as it came, and parsed. It asks the resolver
// for 20 seconds at most, and has no error: what cannot be found out is no pass.
func (c *Checker) Check(ctx context.Context, raw []byte, m *message.Message, peer Peer) Result {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var r Result
	_, domain, _ := strings.Cut(m.From, "@")
	switch {
	case domain == "":
		r.Reason = "the message does not have one sender"
		return r
	case len(m.Repeated) > 0:
		r.Reason = "fields that must stand once stand more often: " + strings.Join(m.Repeated, ", ")
		return r
	}
	if verdict := c.believed(m, domain, peer); verdict != "" {
		r.By = c.Trusted
		if verdict == "pass" {
			r.Domain = domain
		} else {
			r.Reason = c.Trusted + " says that DMARC of " + domain + " is " + format.Cut(verdict, 20)
		}
		return r
	}
	c.evaluate(ctx, raw, domain, peer, &r)
	return r
}

// evaluate does what a mail server does.
func (c *Checker) evaluate(ctx context.Context, raw []byte, domain string, peer Peer, r *Result) {
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
		r.Reason = "the signature is of " + strings.Join(r.DKIM, ", ") + ", not of " + domain
	case sender != "":
		r.Reason = "the envelope is of " + format.Quote(sender) + ", not of " + domain
	default:
		r.Reason = "no valid signature, and no permitted machine, vouches for " + domain
	}
}

// signers lists the domains whose signatures are valid.
func (c *Checker) signers(ctx context.Context, raw []byte) (domains []string) {
	found, err := dkim.VerifyWithOptions(bytes.NewReader(raw), &dkim.VerifyOptions{
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

// keys looks a key up and leaves those out that their domain is testing: a signature with such a key
// counts as none. Spec: RFC 6376 3.6.1.
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

// spf evaluates SPF, notes the result, and returns the domain that passes; "" where none does.
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
