package auth

import (
	"strings"

	"github.com/emersion/go-msgauth/authres"

	"mailtree/gateway/message"
)

// believed is what the mail server in front of us found about DMARC of a domain; "" where it says
// nothing, says it more than once, or is not to be believed. Only a connection of that server is,
// and only what stands above the topmost Received field, which that server wrote: everything below
// may be the sender's. Spec: RFC 8601 5.
func (c *Checker) believed(m *message.Message, domain string, peer Peer) (verdict string) {
	if c.Trusted == "" || !peer.Trusted {
		return ""
	}
	found := 0
	for _, f := range m.Header {
		if f.Is("Received") {
			break
		}
		if !f.Is("Authentication-Results") {
			continue
		}
		for _, r := range c.results(f.Value) {
			found++
			if strings.EqualFold(r.From, domain) {
				verdict = string(r.Value)
			}
		}
	}
	if found != 1 {
		return ""
	}
	return verdict
}

// results are the results for DMARC in a field of the trusted server. Comments, and texts in
// quotation marks, may hold words of the sender's: they are left out before a semicolon means
// anything.
func (c *Checker) results(field string) (all []*authres.DMARCResult) {
	bare, whole := message.Bare(field)
	if !whole {
		return nil
	}
	id, results, err := authres.Parse(bare)
	if err != nil || !strings.EqualFold(id, c.Trusted) {
		return nil
	}
	for _, r := range results {
		if d, ok := r.(*authres.DMARCResult); ok {
			all = append(all, d)
		}
	}
	return all
}
