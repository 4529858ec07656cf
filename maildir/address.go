package maildir

import (
	"strings"
	"unicode"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
)

// An address is a mailbox's name at the store's domain, a Message-ID a message's id at it. Mail of other domains needs a
// gateway, which this version does not have.
// See docs/email.md, "Addresses".

// DefaultDomain is the domain of addresses where Config names none.
const DefaultDomain = "mailtree.local"

// Domain is the domain of the store's addresses.
func (s *Store) Domain() string { return s.cfg.Domain }

// Address is where the party of a message gets mail: an agent at the store's domain, others where they are.
func (s *Store) Address(party string) string {
	if strings.Contains(party, "@") { // which no agent's name has
		return party
	}
	return party + "@" + s.cfg.Domain
}

// Addresses are those of several parties, as one line.
func (s *Store) Addresses(parties []string) string {
	all := make([]string, len(parties))
	for i, party := range parties {
		all[i] = s.Address(party)
	}
	return strings.Join(all, ", ")
}

// MessageID is how mail programs name a message; an id that has a domain keeps it.
func (s *Store) MessageID(id string) string {
	if !strings.Contains(id, "@") {
		id += "@" + s.cfg.Domain
	}
	return "<" + id + ">"
}

// IDOf is the id of a message that a field names by id or Message-ID. One of another domain stays as it is, without brackets.
// Errors: ErrInvalid for what is neither.
func (s *Store) IDOf(field refusal.Field, messageID string) (string, error) {
	id := strings.TrimSpace(messageID)
	if strings.HasPrefix(id, "<") && strings.HasSuffix(id, ">") {
		id = id[1 : len(id)-1]
	}
	name, domain, at := strings.Cut(id, "@")
	if !at || strings.EqualFold(domain, s.cfg.Domain) {
		if format.ValidID(name) {
			return name, nil
		}
	} else if name != "" && domain != "" && len(id) <= maxReference && !strings.ContainsFunc(id, notInMessageID) {
		return id, nil
	}
	return "", &Error{
		What:  refusal.MessageIDMalformed,
		Field: field,
		Name:  messageID,
		Other: s.MessageID("msg_20251023_3a51c0f7b3dc3a7e"),
	}
}

func notInMessageID(r rune) bool {
	return unicode.IsSpace(r) || format.Misleading(r) || strings.ContainsRune("<>,", r)
}

// Recipients reads a list of addresses, separated by commas: "bob", "bob@mailtree.local", "Bob <bob@mailtree.local>".
// It returns the agents' names, none of them looked up. Errors: ErrInvalid for a line break, an empty list or what is no
// address, ErrUnavailable naming the addresses of other domains.
func (s *Store) Recipients(list string) ([]string, error) {
	if strings.ContainsFunc(list, format.Misleading) {
		return nil, &Error{What: refusal.AddressBreaksLine, Field: refusal.Recipients, Name: list}
	}
	parts, closed := splitAddresses(list)
	if !closed {
		return nil, &Error{
			What:  refusal.AddressUnclosed,
			Field: refusal.Recipients,
			Name:  list,
			Other: s.Address("bob"),
		}
	}
	var names, foreign []string
	for _, part := range parts {
		addr := strings.TrimSpace(part)
		if addr == "" {
			continue
		}
		if at := strings.LastIndexByte(addr, '<'); at >= 0 && strings.HasSuffix(addr, ">") {
			addr = strings.TrimSpace(addr[at+1 : len(addr)-1])
		}
		name, domain := addr, s.cfg.Domain
		if at := strings.LastIndexByte(addr, '@'); at >= 0 {
			name, domain = addr[:at], addr[at+1:]
		}
		switch {
		case name == "" || domain == "" || strings.ContainsAny(name, "<>") || strings.ContainsAny(domain, `<>" `):
			return nil, &Error{
				What:  refusal.AddressMalformed,
				Field: refusal.Recipients,
				Name:  strings.TrimSpace(part),
				Other: s.Address("bob"),
			}
		case strings.EqualFold(domain, s.cfg.Domain):
			names = append(names, name)
		default:
			foreign = append(foreign, addr)
		}
	}
	switch {
	case len(foreign) > 0:
		return nil, &Error{
			What:  refusal.AddressElsewhere,
			Name:  foreign[0],
			More:  foreign[1:],
			Other: s.cfg.Domain,
		}
	case len(names) == 0:
		return nil, &Error{
			What:  refusal.NoAddress,
			Field: refusal.Recipients,
			Name:  list,
			Other: s.Address("bob"),
		}
	}
	return names, nil
}

// splitAddresses cuts a list at its commas, but not at those in a quoted string, where a backslash takes the meaning of what is
// behind it. It reports whether the last quoted string ends. Spec: RFC 5322 3.2.4.
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
