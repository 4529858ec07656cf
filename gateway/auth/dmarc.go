package auth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/emersion/go-msgauth/dmarc"
	"golang.org/x/net/publicsuffix"
)

// policy returns a domain's DMARC policy or, if there is none, the policy of its organization's domain. The text of the
// error is a sentence without a trailing period. Spec: RFC 7489 6.6.3.
func (c *Checker) policy(ctx context.Context, domain string) (*dmarc.Record, error) {
	for _, at := range slices.Compact([]string{domain, organization(domain)}) {
		record, err := c.published(ctx, at)
		if record != nil || err != nil {
			return record, err
		}
	}
	return nil, errors.New(domain + " has no DMARC policy")
}

// published returns the policy that a domain publishes, or nil without an error if there is none. If the domain
// publishes several policies, published ignores all of them.
func (c *Checker) published(ctx context.Context, domain string) (*dmarc.Record, error) {
	all, err := c.Resolver.LookupTXT(ctx, "_dmarc."+domain)
	var missing *net.DNSError
	if errors.As(err, &missing) && missing.IsNotFound {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("cannot look up the DMARC policy of %s", domain)
	}
	all = slices.DeleteFunc(slices.Clone(all), func(txt string) bool {
		version, _, _ := strings.Cut(txt, ";")
		return strings.ReplaceAll(version, " ", "") != "v=DMARC1"
	})
	if len(all) != 1 {
		return nil, nil
	}
	record, err := dmarc.Parse(all[0])
	if err != nil {
		return nil, fmt.Errorf("the DMARC policy of %s is not valid", domain)
	}
	return record, nil
}

// aligned reports whether a verified domain may vouch for the From domain. Spec: RFC 7489 3.1.
func aligned(found, from string, mode dmarc.AlignmentMode) bool {
	if mode == dmarc.AlignmentStrict {
		return found == from
	}
	return found == from || organization(found) == organization(from)
}

// organization returns the registered domain to which a domain belongs. For a public suffix, under which anyone may
// register domains, it returns the suffix itself.
func organization(domain string) string {
	registered, err := publicsuffix.EffectiveTLDPlusOne(domain)
	if err != nil {
		return domain
	}
	return registered
}
