package message

import (
	"errors"
	"io"
	"mime"
	"net/mail"
	"slices"
	"strings"

	"golang.org/x/net/idna"

	"mailtree/maildir/format"
)

// sender returns the address in the From field. It returns "" unless the message has exactly one From field with
// exactly one address, and the address is not in a group.
func (m *Message) sender() string {
	values := m.all("From")
	if len(values) != 1 {
		if len(values) == 0 {
			m.problem("the message has no From field")
		}
		return ""
	}
	list := m.mailboxes(values[0])
	if len(list) != 1 || isAmbiguous(values[0]) {
		m.problem("the From field %s is not a single address", format.Quote(values[0]))
		return ""
	}
	address, err := ascii(list[0].Address)
	if err != nil {
		m.problem("From: %s", err)
		return ""
	}
	if lookAlike(list[0].Name, address) {
		m.problem("the sender is %s, but the display name may be misleading: %s", address, format.Quote(list[0].Name))
	}
	return address
}

// isAmbiguous reports whether different programs might find different senders in a field. This is possible if the
// field contains a group (a name followed by a colon, addresses and a semicolon). It is also possible if a comment or
// quoted string is not closed, unless the field contains exactly one @.
func isAmbiguous(field string) bool {
	bare, whole := Bare(field)
	colon, semicolon := strings.IndexByte(bare, ':'), strings.LastIndexByte(bare, ';')
	return colon >= 0 && semicolon > colon || !whole && strings.Count(field, "@") != 1
}

// lookAlike reports whether a display name looks like a different address, or contains characters that could disguise
// the name.
func lookAlike(name, address string) bool {
	if strings.ContainsFunc(name, format.Misleading) {
		return true
	}
	at := strings.ContainsFunc(name, func(r rune) bool { return r == '@' || r == '\uff20' || r == '\ufe6b' })
	return at && !strings.EqualFold(strings.Trim(name, "<>'\" "), address)
}

// addresses returns the addresses in all fields with the given name. It skips invalid addresses and reports them as
// problems.
func (m *Message) addresses(name string) (all []string) {
	field := strings.Join(m.all(name), ", ")
	for _, a := range m.mailboxes(field) {
		address, err := ascii(a.Address)
		switch {
		case err != nil:
			m.problem("%s: %s", name, err)
		case len(all) == maxAddresses:
			m.problem("%s has more than %d addresses; the rest are omitted", name, maxAddresses)
			return all
		case !slices.Contains(all, address):
			all = append(all, address)
		}
	}
	return all
}

// mailboxes returns the names and addresses in a field, including those in groups. Many programs do not quote names
// that need quoting. Therefore, if the field is invalid, mailboxes treats any text between < and >, and each
// remaining list element, as an address.
func (m *Message) mailboxes(field string) []*mail.Address {
	field = m.utf8(field)
	if strings.TrimSpace(field) == "" {
		return nil
	}
	parser := mail.AddressParser{WordDecoder: &mime.WordDecoder{CharsetReader: m.charsetReader}}
	if list, err := parser.ParseList(field); err == nil {
		return list
	}
	return m.singly(field)
}

// charsetReader converts text to UTF-8. It also accepts unknown charsets, because otherwise a name in an unknown
// charset would make the whole address unreadable.
func (m *Message) charsetReader(name string, r io.Reader) (io.Reader, error) {
	data, err := io.ReadAll(r)
	return strings.NewReader(m.toUTF8(name, data)), err
}

// singly returns the mailboxes in an invalid field. It parses the field's elements one by one.
func (m *Message) singly(field string) (list []*mail.Address) {
	var words []string // elements that are not addresses but parts of a name with unquoted commas
	for _, one := range elements(field) {
		if len(list) > maxAddresses {
			return list
		}
		bare, whole := Bare(one)
		if !whole {
			bare = one
		}
		if found := bracketed().FindAllStringSubmatch(bare, -1); found != nil {
			name := strings.TrimSpace(bracketed().ReplaceAllString(one, " "))
			if name == "" {
				m.noAddress(words)
			} else {
				name = m.readable(strings.Join(append(words, name), ","))
			}
			for _, match := range found {
				_, address, _ := lastCut(match[1], ":") // skip a route, as in <@a,@b:ann@example.org>
				list = append(list, &mail.Address{Name: name, Address: strings.TrimSpace(address)})
			}
			words = nil
			continue
		}
		_, bare, _ = lastCut(strings.TrimRight(bare, "; "), ":") // skip a group's name and end
		if bare = strings.TrimSpace(bare); strings.Contains(bare, "@") {
			list = append(list, &mail.Address{Address: bare})
		} else if bare != "" {
			words = append(words, one)
		}
	}
	m.noAddress(words)
	return list
}

// noAddress reports list elements that are not addresses as problems.
func (m *Message) noAddress(elements []string) {
	for _, one := range elements[:min(len(elements), maxProblems)] {
		m.problem("%s is not an address", format.Quote(strings.TrimSpace(one)))
	}
}

// lastCut is like strings.Cut, but cuts s at the last occurrence of sep. If s does not contain sep, after is s.
func lastCut(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return "", s, false
}

// elements splits a list at commas outside quoted strings, comments and brackets. If a quoted string or a comment is
// not closed, it splits at every comma.
func elements(field string) (all []string) {
	begin, bracket := 0, false
	whole := eachBare(field, func(i int, c byte) {
		switch c {
		case '<', '>':
			bracket = c == '<'
		case ',':
			if !bracket {
				all = append(all, field[begin:i])
				begin = i + 1
			}
		}
	})
	if !whole {
		return strings.Split(field, ",")
	}
	return append(all, field[begin:])
}

// ascii returns an address in the form used by the store, with the domain in ASCII and lower case.
func ascii(address string) (string, error) {
	at := strings.LastIndexByte(address, '@')
	if at < 0 {
		return "", errors.New(format.Quote(address) + " is not an address: it has no @")
	}
	domain, err := idna.Lookup.ToASCII(address[at+1:])
	if err != nil {
		return "", errors.New(format.Quote(address) + " is not an address: its domain is not valid")
	}
	a, err := format.ParseAddress(address[:at] + "@" + domain)
	return a.String(), err
}
