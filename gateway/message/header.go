package message

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"net/mail"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"mailtree/maildir/format"
	"mailtree/maildir/lazy"
)

// Field is one field of a header.
type Field struct {
	Name  string // as written, without trailing spaces
	Value string // on one line, but not decoded
}

// Is reports whether the field has the given name, ignoring case.
func (f Field) Is(name string) bool { return strings.EqualFold(f.Name, name) }

// single contains the fields that may occur only once. If such a field is repeated, one program may show the first
// occurrence and another program the last, and a signature may cover either one. Spec: RFC 5322 3.6.
var single = []string{"From", "Sender", "Reply-To", "To", "Cc", "Subject", "Date", "Message-ID", "In-Reply-To", "References",
	"MIME-Version", "Content-Type", "Content-Transfer-Encoding"}

// splitHeader splits a message or a part at its first blank line.
func splitHeader(raw []byte) (head, body []byte) {
	end := 0 // end of the current line
	for line := range bytes.Lines(raw) {
		end += len(line)
		if string(line) == "\n" || string(line) == "\r\n" {
			return raw[:end-len(line)], raw[end:]
		}
	}
	return raw, nil
}

// fields parses a header. Lines that are not fields are skipped and reported as problems.
func (m *Message) fields(head []byte) (all []Field) {
	continues := false  // whether a line that begins with a space or tab belongs to the last field
	var folded []string // continuation lines; joining them one by one would be slow in a 256 KiB header
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
		} else if !strings.HasPrefix(text, "From ") && !strings.HasPrefix(text, ">From ") { // not a line from an mbox file
			m.problem("invalid header line: %s", format.Quote(text))
		}
	}
	return all
}

func notInFieldName(r rune) bool { return r <= ' ' || r >= 0x7f }

// all returns the values of all fields with the given name, from top to bottom.
func (m *Message) all(name string) (values []string) {
	for _, f := range m.Header {
		if f.Is(name) {
			values = append(values, f.Value)
		}
	}
	return values
}

// value returns the value of the first field in header that has the given name.
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
			m.problem("the field %s appears %d times", name, n)
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
		m.Date = m.date(date)
	}
}

// zones maps the names of time zones that a date may contain to their offsets. Spec: RFC 5322 4.3.
var zones = map[string]string{
	"UT": "+0000", "UTC": "+0000", "GMT": "+0000", "Z": "+0000",
	"EST": "-0500", "EDT": "-0400", "CST": "-0600", "CDT": "-0500",
	"MST": "-0700", "MDT": "-0600", "PST": "-0800", "PDT": "-0700",
}

// date parses a date. If the date is invalid, it returns the zero time. If the name of the time zone is unknown, it
// assumes UTC. Both are reported as problems. Spec: RFC 5322 3.3, 4.3.
func (m *Message) date(field string) time.Time {
	text, _ := Bare(field)
	text = strings.TrimSpace(text)
	zone := ""
	if at := strings.LastIndexByte(text, ' '); at >= 0 && !strings.ContainsAny(text[at:], "0123456789:") {
		text, zone = text[:at+1], strings.ToUpper(text[at+1:])
		text += cmp.Or(zones[zone], "+0000")
	}
	t, err := mail.ParseDate(text)
	if err != nil || t.UTC().Year() < 1 || t.UTC().Year() > 9999 {
		m.problem("the date %s is not valid", format.Quote(field))
		return time.Time{}
	}
	if zone != "" && zones[zone] == "" {
		m.problem("the date's time zone %s is unknown, so the date is treated as UTC", format.Quote(zone))
	}
	return t.UTC()
}

// keyword returns the first word of a machine-readable field in lower case.
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

// Bare returns a field without comments and without the text of quoted strings, so that a caller can search for a
// character outside comments and strings. Bare also reports whether every comment and string is closed. Spec: RFC 5322
// 3.2.2, 3.2.4.
func Bare(field string) (bare string, whole bool) {
	var b strings.Builder
	whole = eachBare(field, func(_ int, c byte) { b.WriteByte(c) })
	return b.String(), whole
}

// eachBare calls f with each byte that Bare returns and the byte's offset in the field. The end of a comment is treated
// as a space. eachBare stops at an unmatched closing parenthesis. It reports whether every comment and string is
// closed.
func eachBare(field string, f func(i int, c byte)) (whole bool) {
	depth, quoted := 0, false
	for i := 0; i < len(field); i++ {
		switch c := field[i]; {
		case c == '\\' && (quoted || depth > 0):
			i++
		case c == '"' && depth == 0:
			quoted = !quoted
			f(i, c)
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth < 0 {
				return false
			}
			f(i, ' ')
		case depth == 0:
			f(i, c)
		}
	}
	return depth == 0 && !quoted
}

// bracketed matches text between < and >.
var bracketed = lazy.Regexp(`<([^>]*)>`)

// ids returns the ids in the first field with the given name. If there are more than most ids, it returns only the last
// ones. An id is the text between < and >. If the field has no brackets, every word with an @ is treated as an id. In
// Message-ID, every word is treated as an id.
func (m *Message) ids(name string, most int) (all []string) {
	field := value(m.Header, name)
	var found []string
	for _, match := range bracketed().FindAllStringSubmatch(field, -1) {
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
			m.problem("%s: %s is not a valid message id", name, format.Quote(id))
		}
	}
	return all[max(0, len(all)-most):]
}

// validID reports whether the store accepts an id as the id of mail from another domain.
func validID(id string) bool {
	return id != "" && len(id) <= maxMessageID && utf8.ValidString(id) &&
		!strings.ContainsFunc(id, func(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune(" <>", r) })
}

// utf8 converts a field with raw non-ASCII characters to UTF-8. If the field is not in UTF-8, utf8 assumes
// Windows-1252.
func (m *Message) utf8(value string) string {
	if utf8.ValidString(value) {
		return value
	}
	m.problem("a header field is not valid UTF-8: %s", format.Quote(value))
	return latin(value)
}

// oneLine replaces line breaks, and characters that can disguise text, with spaces.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if format.Misleading(r) {
			return ' '
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// trace contains the fields that servers add in transit. Two copies of the same message may differ in these fields.
var trace = []string{"Return-Path", "Received", "Delivered-To", "X-Original-To", "Authentication-Results", "Received-SPF",
	"ARC-Seal", "ARC-Message-Signature", "ARC-Authentication-Results", "X-Received", "X-Spam-Status", "X-Spam-Score"}

// hash returns a hash that identifies a message. It is the SHA-256 of the message's body and fields, except for trace
// fields. Line folding does not affect the hash.
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
