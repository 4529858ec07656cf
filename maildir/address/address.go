// Package address formats and parses email addresses. A mailbox's address is its name at any of the store's domains. A
// message's Message-ID is its id at the first domain.
//
// See docs/reference/email.md, "Addresses". format/address.go defines the addresses in messages.
package address

import (
	"slices"
	"strings"
	"unicode"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
)

// Domains is the list of a store's mail domains, in lower case. It is never empty.
type Domains []string

// Default is the store's domain if none is configured.
const Default = "mailtree.local"

// Has reports whether domain is one of the store's domains, ignoring case.
func (d Domains) Has(domain string) bool {
	return slices.ContainsFunc(d, func(own string) bool { return strings.EqualFold(own, domain) })
}

// Of returns the email address of a party. If the party is an agent, this is the agent's name at the first domain. If
// the party is an address, Of returns it unchanged.
func (d Domains) Of(party string) string {
	if strings.Contains(party, "@") { // agents' names never contain an @
		return party
	}
	return party + "@" + d[0]
}

// Named returns a party's name in the store. For an address at one of the domains, that is the part before the @. Named
// formats any other valid address as format.Address does, and returns anything else unchanged.
func (d Domains) Named(party string) string {
	a, err := format.ParseAddress(party)
	switch {
	case err != nil || a.IsAgent():
		return party
	case d.Has(a.Domain):
		return a.Local
	}
	return a.String()
}

// Join returns the addresses of several parties, separated by commas.
func (d Domains) Join(parties []string) string {
	all := make([]string, len(parties))
	for i, party := range parties {
		all[i] = d.Of(party)
	}
	return strings.Join(all, ", ")
}

// MessageID returns the Message-ID of the message with the given id. If the id already has a domain, MessageID keeps
// that domain.
func (d Domains) MessageID(id string) string { return "<" + d.EmailID(id) + ">" }

// MessageIDOf returns the Message-ID of m. A message from another domain keeps its original Message-ID.
func (d Domains) MessageIDOf(m *format.Message) string {
	if m.MessageID != "" {
		return "<" + m.MessageID + ">"
	}
	return d.MessageID(m.ID)
}

// EmailID is like MessageID, but without < and >.
func (d Domains) EmailID(id string) string { return d.Of(id) }

// IDNamed returns the id of the message that given refers to. The argument may be an id, a Message-ID at one of the
// domains, or a file name. IDNamed returns anything else unchanged.
func (d Domains) IDNamed(given string) string {
	id, domain, at := strings.Cut(withoutBrackets(given), "@")
	id = strings.TrimSuffix(id, ".md")
	if at && !d.Has(domain) || !format.ValidID(id) {
		return given
	}
	return id
}

// withoutBrackets returns a Message-ID without surrounding spaces and angle brackets.
func withoutBrackets(id string) string {
	id = strings.TrimSpace(id)
	if strings.HasPrefix(id, "<") && strings.HasSuffix(id, ">") {
		return id[1 : len(id)-1]
	}
	return id
}

// IDOf parses a field's value, which is a message's id or Message-ID, and returns the message's id. For a Message-ID
// from another domain, it returns the Message-ID without angle brackets. It returns ErrInvalid for any other value.
func (d Domains) IDOf(field refusal.Field, messageID string) (string, error) {
	if id := d.IDNamed(messageID); format.ValidID(id) {
		return id, nil
	}
	id := withoutBrackets(messageID)
	name, domain, _ := strings.Cut(id, "@")
	elsewhere := name != "" && domain != "" && !d.Has(domain)
	if elsewhere && len(id) <= format.MaxReference && !strings.ContainsFunc(id, notInMessageID) {
		return id, nil
	}
	return "", &refusal.Error{
		What: refusal.Invalid("{name} {arg} is neither a Message-ID nor the id of a message: use one such as " +
			"{=other} or msg_20251023_3a51c0f7b3dc3a7e."),
		Field: field,
		Name:  messageID,
		Other: d.MessageID("msg_20251023_3a51c0f7b3dc3a7e"),
	}
}

func notInMessageID(r rune) bool {
	return unicode.IsSpace(r) || format.Misleading(r) || strings.ContainsRune("<>,", r)
}

// Recipients parses a comma-separated list of addresses, such as "Bob <bob@mailtree.local>", "bob@mailtree.local" and
// "bob". It returns the agent's name for an agent or for an address at one of the store's domains. For any other
// address, including that of an agent in another project, it returns the address. It does not check that the agents
// exist. It returns ErrInvalid if the list is empty, or contains a line break or an invalid address.
func (d Domains) Recipients(list string) ([]string, error) {
	if strings.ContainsFunc(list, format.Misleading) {
		return nil, &refusal.Error{
			What: refusal.Invalid("The address {name} {arg} contains a line break or control character: write " +
				"addresses on one line, separated by commas."),
			Field: refusal.Recipients,
			Name:  list,
		}
	}
	parts, closed := splitAddresses(list)
	if !closed {
		return nil, &refusal.Error{
			What: refusal.Invalid("A quotation mark in {name} {arg} is not closed: write addresses such as \"Bob\" <{=other}>, separated " +
				"by commas."),
			Field: refusal.Recipients,
			Name:  list,
			Other: d.Of("bob"),
		}
	}
	var names []string
	for _, part := range parts {
		addr := strings.TrimSpace(part)
		if addr == "" {
			continue
		}
		if at := strings.LastIndexByte(addr, '<'); at >= 0 && strings.HasSuffix(addr, ">") {
			addr = strings.TrimSpace(addr[at+1 : len(addr)-1])
		}
		if addr == "" || strings.ContainsAny(addr, "<>") {
			return nil, &refusal.Error{
				What: refusal.Invalid("{name} {arg} is not an address: use one such as {=other} or \"Bob\" " +
					"<{=other}>, or several separated by commas."),
				Field: refusal.Recipients,
				Name:  strings.TrimSpace(part),
				Other: d.Of("bob"),
			}
		}
		a, err := format.ParseAddress(addr)
		if err != nil && strings.Contains(addr, "@") {
			return nil, &refusal.Error{
				What:  refusal.Invalid("{cause} {arg}. Write addresses such as {=other}, separated by commas."),
				Field: refusal.Recipients,
				Other: d.Of("bob"),
				Err:   err,
			}
		}
		if err == nil && !d.Has(a.Domain) && a.MayBeInProject() { // project names are case-sensitive
			names = append(names, addr)
			continue
		}
		names = append(names, d.Named(addr))
	}
	if len(names) == 0 {
		return nil, &refusal.Error{
			What:  refusal.Invalid("{name} {arg} contains no recipient: use an address such as {=other}, or several separated by commas."),
			Field: refusal.Recipients,
			Name:  list,
			Other: d.Of("bob"),
		}
	}
	return names, nil
}

// splitAddresses splits a list at the commas outside quoted strings, in which a backslash escapes the next character.
// If a quoted string is left open, closed is false. Spec: RFC 5322 3.2.4.
func splitAddresses(list string) (parts []string, closed bool) {
	quoted, escaped, start := false, false, 0
	for i := range len(list) {
		switch c := list[i]; {
		case escaped:
			escaped = false
		case c == '\\':
			escaped = quoted
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			parts = append(parts, list[start:i])
			start = i + 1
		}
	}
	return append(parts, list[start:]), !quoted
}
