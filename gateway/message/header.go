package message

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"mime"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/emersion/go-message/charset"
	"golang.org/x/net/idna"

	"mailtree/maildir/format"
)

// Field is one field of a header.
type Field struct {
	Name  string // as written, without trailing blanks
	Value string // on one line, not decoded
}

// Is reports whether the field has that name, in upper or lower case.
func (f Field) Is(name string) bool { return strings.EqualFold(f.Name, name) }

// single are the fields that may occur at most once. Of repeated fields one program shows the first,
// another the last, and a signature may cover either. Spec: RFC 5322 3.6.
var single = []string{"From", "Sender", "Reply-To", "To", "Cc", "Subject", "Date", "Message-ID", "In-Reply-To", "References",
	"MIME-Version", "Content-Type", "Content-Transfer-Encoding"}

// splitHeader splits a message, or a part of a message, at its first blank line.
func splitHeader(raw []byte) (head, body []byte) {
	end := 0 // end of the line
	for line := range bytes.Lines(raw) {
		end += len(line)
		if string(line) == "\n" || string(line) == "\r\n" {
			return raw[:end-len(line)], raw[end:]
		}
	}
	return raw, nil
}

// fields parses a header. It skips lines that are not fields and reports them as problems.
func (m *Message) fields(head []byte) (all []Field) {
	continues := false  // what begins with a blank belongs to the last of all
	var folded []string // those lines, joined once: a header may be 256 KiB of them
	unfold := func() {
		if len(folded) > 0 {
			all[len(all)-1].Value += " " + strings.Join(folded, " ")
			folded = nil
		}
	}
	defer unfold()
	for line := range bytes.Lines(head) {
		text := strings.TrimRight(string(line), "\r\n")
		if text != "" && (text[0] == ' ' || text[0] == '\t') {
			if continues {
				folded = append(folded, strings.TrimLeft(text, " \t"))
			}
			continue
		}
		unfold()
		name, value, ok := strings.Cut(text, ":")
		name = strings.TrimRight(name, " \t")
		if continues = ok && name != "" && !strings.ContainsFunc(name, notInFieldName); continues {
			all = append(all, Field{name, strings.TrimLeft(value, " \t")})
		} else if !strings.HasPrefix(text, "From ") && !strings.HasPrefix(text, ">From ") { // a line of an mbox file
			m.problem("a line of the header is no field: %s", format.Quote(text))
		}
	}
	return all
}

func notInFieldName(r rune) bool { return r <= ' ' || r >= 0x7f }

// all returns the values of all fields with that name, from the top.
func (m *Message) all(name string) (values []string) {
	for _, f := range m.Header {
		if f.Is(name) {
			values = append(values, f.Value)
		}
	}
	return values
}

// value returns the value of the first field with that name in a header.
func value(header []Field, name string) string {
	if i := slices.IndexFunc(header, func(f Field) bool { return f.Is(name) }); i >= 0 {
		return header[i].Value
	}
	return ""
}

func (m *Message) readHeader() {
	for _, name := range single {
		if n := len(m.all(name)); n > 1 {
			m.Repeated = append(m.Repeated, name)
			m.problem("the field %s stands %d times", name, n)
		}
	}
	get := func(name string) string { return value(m.Header, name) }
	m.From = m.sender()
	m.To, m.Cc, m.ReplyTo = m.addresses("To"), m.addresses("Cc"), m.addresses("Reply-To")
	m.Subject = format.Cut(oneLine(m.readable(get("Subject"))), maxSubject)
	m.MessageID = last(m.ids("Message-ID", 1))
	m.InReplyTo = last(m.ids("In-Reply-To", 1))
	m.References = m.ids("References", maxReferences)
	m.AutoSubmitted = keyword(get("Auto-Submitted"))
	m.Precedence = keyword(get("Precedence"))
	m.ListID = last(m.ids("List-ID", 1))
	if date := get("Date"); date != "" {
		t, err := mail.ParseDate(date)
		if err != nil || t.UTC().Year() < 1 || t.UTC().Year() > 9999 {
			m.problem("the date %s cannot be read", format.Quote(date))
		} else {
			m.Date = t.UTC()
		}
	}
}

// keyword returns the first word of a field that programs read.
func keyword(value string) string {
	bare, _ := Bare(value)
	word, _, _ := strings.Cut(bare, ";")
	return strings.ToLower(strings.TrimSpace(word))
}

func last(l []string) string {
	if len(l) == 0 {
		return ""
	}
	return l[len(l)-1]
}

// sender returns the address in From. It returns "" unless the message has exactly one From field, with
// exactly one address, outside a group.
func (m *Message) sender() string {
	values := m.all("From")
	if len(values) != 1 {
		if len(values) == 0 {
			m.problem("there is no From field")
		}
		return ""
	}
	bare, ok := Bare(values[0])
	if !ok || strings.ContainsAny(bare, ":;") {
		m.problem("From %s is a group, or has a quotation mark or parenthesis too many", format.Quote(values[0]))
		return ""
	}
	list, err := m.parseList(values[0])
	if err != nil || len(list) != 1 {
		m.problem("From %s is not one address", format.Quote(values[0]))
		return ""
	}
	address, err := ascii(list[0].Address)
	if err != nil {
		m.problem("From: %s", err)
		return ""
	}
	if lookAlike(list[0].Name, address) {
		m.problem("the sender is %s; the name beside it reads otherwise: %s", address, format.Quote(list[0].Name))
	}
	return address
}

// lookAlike reports whether a display name looks like an address other than its own, or contains characters
// that disguise the name.
func lookAlike(name, address string) bool {
	if strings.ContainsFunc(name, format.Misleading) {
		return true
	}
	at := strings.ContainsFunc(name, func(r rune) bool { return r == '@' || r == '\uff20' || r == '\ufe6b' })
	return at && !strings.EqualFold(strings.Trim(name, "<>'\" "), address)
}

func (m *Message) parseList(value string) ([]*mail.Address, error) {
	parser := mail.AddressParser{WordDecoder: words}
	return parser.ParseList(m.utf8(value))
}

// addresses returns the addresses in the first field with that name. It skips invalid addresses and reports
// them as problems.
func (m *Message) addresses(name string) (all []string) {
	field := value(m.Header, name)
	if strings.TrimSpace(field) == "" {
		return nil
	}
	list, err := m.parseList(field)
	if err != nil {
		list = m.singly(name, field)
	}
	for _, a := range list {
		address, err := ascii(a.Address)
		switch {
		case err != nil:
			m.problem("%s: %s", name, err)
		case len(all) == maxAddresses:
			m.problem("%s holds more than %d addresses: the rest is left out", name, maxAddresses)
			return all
		case !slices.Contains(all, address):
			all = append(all, address)
		}
	}
	return all
}

// singly parses the addresses one by one if the list as a whole is invalid.
func (m *Message) singly(name, field string) (list []*mail.Address) {
	for _, one := range strings.Split(field, ",") {
		if one = strings.TrimSpace(one); one == "" || strings.HasSuffix(one, ":;") || strings.HasSuffix(one, ": ;") {
			continue // an empty group: undisclosed recipients
		}
		if len(list) > maxAddresses {
			return list
		}
		if a, err := m.parseList(one); err == nil {
			list = append(list, a...)
		} else {
			m.problem("%s: %s is not an address", name, format.Quote(one))
		}
	}
	return list
}

// ascii returns an address in the form that the store uses: the domain in ASCII and lower case.
func ascii(address string) (string, error) {
	at := strings.LastIndexByte(address, '@')
	if at < 0 {
		return "", errors.New(format.Quote(address) + " is not an address: it has no @")
	}
	domain, err := idna.Lookup.ToASCII(address[at+1:])
	if err != nil {
		return "", errors.New(format.Quote(address) + " is not an address: its domain is none")
	}
	a, err := format.ParseAddress(address[:at] + "@" + domain)
	return a.String(), err
}

// Bare returns a field without its comments and without the text of its quoted strings, so that a caller
// can search for a mark that must not come from a comment or string. whole reports whether every comment
// and string ends. Spec: RFC 5322 3.2.2, 3.2.4.
func Bare(field string) (bare string, whole bool) {
	var b strings.Builder
	depth, quoted := 0, false
	for i := 0; i < len(field); i++ {
		switch c := field[i]; {
		case c == '\\' && (quoted || depth > 0):
			i++
		case c == '"' && depth == 0:
			quoted = !quoted
			b.WriteByte('"')
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth < 0 {
				return b.String(), false
			}
			b.WriteByte(' ')
		case depth == 0:
			b.WriteByte(c)
		}
	}
	return b.String(), depth == 0 && !quoted
}

// bracketed finds text between < and >.
var bracketed = regexp.MustCompile(`<([^>]*)>`)

// ids returns the last ids in the first field with that name: texts between < and >, or if there are no
// brackets the words with an @.
func (m *Message) ids(name string, most int) (all []string) {
	field := value(m.Header, name)
	var found []string
	for _, match := range bracketed.FindAllStringSubmatch(field, -1) {
		found = append(found, match[1])
	}
	if !strings.Contains(field, "<") {
		found = slices.DeleteFunc(strings.Fields(field), func(word string) bool {
			return !strings.Contains(word, "@") && !strings.EqualFold(name, "Message-ID")
		})
	}
	for _, id := range found {
		if id = strings.Join(strings.Fields(id), ""); validID(id) {
			all = append(all, id)
		} else if id != "" {
			m.problem("%s: %s is no id", name, format.Quote(id))
		}
	}
	return all[max(0, len(all)-most):]
}

// validID reports whether the store accepts an id as the id of mail from another domain.
func validID(id string) bool {
	return id != "" && len(id) <= maxMessageID && utf8.ValidString(id) &&
		!strings.ContainsFunc(id, func(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune(" <>", r) })
}

// words decodes encoded words. Spec: RFC 2047.
var words = &mime.WordDecoder{CharsetReader: charset.Reader}

// readable decodes a field that people read.
func (m *Message) readable(value string) string {
	value = m.utf8(value)
	decoded, err := words.DecodeHeader(value)
	if err != nil {
		m.problem("the field %s cannot be decoded", format.Quote(value))
		return value
	}
	return strings.ToValidUTF8(decoded, "\ufffd")
}

// utf8 decodes a field with characters beyond ASCII and without a declared charset.
func (m *Message) utf8(value string) string {
	if utf8.ValidString(value) {
		return value
	}
	m.problem("a field of the header is not in UTF-8: %s", format.Quote(value))
	return latin(value)
}

// oneLine removes line breaks and characters that disguise a text.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if format.Misleading(r) {
			return ' '
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// trace are the fields that servers add on the way. Two copies of the same message may differ in them.
var trace = []string{"Return-Path", "Received", "Delivered-To", "X-Original-To", "Authentication-Results", "Received-SPF",
	"ARC-Seal", "ARC-Message-Signature", "ARC-Authentication-Results", "X-Received", "X-Spam-Status", "X-Spam-Score"}

// hash identifies a message: SHA-256 over fields and body, except for trace fields. Folding does not change
// the hash.
func hash(header []Field, body []byte) [32]byte {
	h := sha256.New()
	for _, f := range header {
		if !slices.ContainsFunc(trace, f.Is) {
			h.Write([]byte(strings.ToLower(f.Name) + ":" + strings.Join(strings.Fields(f.Value), " ") + "\n"))
		}
	}
	h.Write([]byte("\n"))
	h.Write(body)
	return [32]byte(h.Sum(nil))
}
