package auth

import (
	"strings"

	"github.com/emersion/go-msgauth/authres"

	"mailtree/gateway/message"
)

// believed returns the DMARC result that the mail server in front of us has reported for domain. If that server has
// reported no result or several, or if the result cannot be trusted, believed returns "". Results are trusted only on a
// connection from that server, and only in fields above the topmost Received field. That server added these fields,
// whereas the fields below may come from the sender. Spec: RFC 8601 5.
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

// results returns the DMARC results in a field written by the trusted server. It removes comments and quoted strings
// before splitting at semicolons, because the sender may have chosen their text.
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
