package maildir

import (
	"strings"
	"unicode"

	"mailtree/maildir/format"
)

// An address is a mailbox's name at the store's domain, a Message-ID a message's id at it. Mail of other domains needs a
// gateway, which this version does not have. Spec: TOOLS.md aimx.

// DefaultDomain is the domain of addresses where Config names none.
const DefaultDomain = "mailtree.local"

// Domain is the domain of the store's addresses.
func (s *Store) Domain() string { return s.cfg.Domain }

// Address is where an agent gets mail.
func (s *Store) Address(agent string) string { return agent + "@" + s.cfg.Domain }

// Addresses are those of several agents, as one line.
func (s *Store) Addresses(agents []string) string {
	all := make([]string, len(agents))
	for i, a := range agents {
		all[i] = s.Address(a)
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

// IDOf is the id of a message that is named by id or Message-ID. One of another domain stays as it is, without brackets.
// Errors: ErrInvalid for what is neither.
func (s *Store) IDOf(messageID string) (string, error) {
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
	return "", errorf(ErrInvalid, "%s is no Message-ID and no id of a message: write it such as %s or msg_20251023_3a51c0f7b3dc3a7e.", format.Quote(messageID), s.MessageID("msg_20251023_3a51c0f7b3dc3a7e"))
}

func notInMessageID(r rune) bool {
	return unicode.IsSpace(r) || misleading(r) || strings.ContainsRune("<>,", r)
}

// Recipients reads a list of addresses, separated by commas: "bob", "bob@mailtree.local", "Bob <bob@mailtree.local>".
// It returns the agents' names, none of them looked up. Errors: ErrInvalid for a line break, an empty list or what is no
// address, ErrUnavailable naming the addresses of other domains.
func (s *Store) Recipients(list string) ([]string, error) {
	if strings.ContainsFunc(list, misleading) {
		return nil, errorf(ErrInvalid, "The address %s holds a line break or control character: write addresses on one line, separated by commas.", format.Quote(list))
	}
	parts, closed := splitAddresses(list)
	if !closed {
		return nil, errorf(ErrInvalid, "A quotation mark in %s is not closed: write addresses such as \"Bob\" <%s>, separated by commas.", format.Quote(list), s.Address("bob"))
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
			return nil, errorf(ErrInvalid, "%s is no address: write one such as %s or \"Bob\" <%[2]s>, several separated by commas.", format.Quote(strings.TrimSpace(part)), s.Address("bob"))
		case strings.EqualFold(domain, s.cfg.Domain):
			names = append(names, name)
		default:
			foreign = append(foreign, addr)
		}
	}
	switch {
	case len(foreign) > 0:
		return nil, errorf(ErrUnavailable, "This server has no gateway to other domains (the setting MAIL_GATEWAY is missing, or has no effect in this version), so mail reaches only addresses at %s, and nothing was sent: %s cannot be reached.",
			s.cfg.Domain, strings.Join(quoted(foreign), ", "))
	case len(names) == 0:
		return nil, errorf(ErrInvalid, "No recipient in %s: give an address such as %s, several separated by commas.", format.Quote(list), s.Address("bob"))
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

func quoted(l []string) []string {
	out := make([]string, len(l))
	for i, s := range l {
		out[i] = format.Quote(s)
	}
	return out
}
