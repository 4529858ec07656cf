package maildir

import (
	"strings"
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
func (s *Store) IDOf(messageID string) string {
	id := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(messageID), "<"), ">")
	if name, domain, ok := strings.Cut(id, "@"); ok && strings.EqualFold(domain, s.cfg.Domain) {
		return name
	}
	return id
}

// Recipients reads a list of addresses, separated by commas: "bob", "bob@mailtree.local", "Bob <bob@mailtree.local>".
// It returns the agents' names, none of them looked up. Errors: ErrInvalid for a line break or an empty list,
// ErrUnavailable naming the addresses of other domains.
func (s *Store) Recipients(list string) ([]string, error) {
	if strings.ContainsFunc(list, misleading) {
		return nil, errorf(ErrInvalid, "The address %s holds a line break or control character: write addresses on one line, separated by commas.", quote(list))
	}
	var names, foreign []string
	for part := range strings.SplitSeq(list, ",") {
		addr := strings.TrimSpace(part)
		if at := strings.LastIndexByte(addr, '<'); at >= 0 && strings.HasSuffix(addr, ">") {
			addr = strings.TrimSpace(addr[at+1 : len(addr)-1])
		}
		at := strings.LastIndexByte(addr, '@')
		switch {
		case addr == "":
		case at < 0:
			names = append(names, addr)
		case strings.EqualFold(addr[at+1:], s.cfg.Domain):
			names = append(names, addr[:at])
		default:
			foreign = append(foreign, addr)
		}
	}
	switch {
	case len(foreign) > 0:
		return nil, errorf(ErrUnavailable, "No mail gateway is configured, so mail reaches only addresses at %s, and nothing was sent: %s cannot be reached because the setting MAIL_GATEWAY is missing (this version has no gateway to set yet).",
			s.cfg.Domain, strings.Join(quoted(foreign), ", "))
	case len(names) == 0:
		return nil, errorf(ErrInvalid, "No recipient in %s: give an address such as %s, several separated by commas.", quote(list), s.Address("bob"))
	}
	return names, nil
}

func quoted(l []string) []string {
	out := make([]string, len(l))
	for i, s := range l {
		out[i] = quote(s)
	}
	return out
}
