package format

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"mailtree/maildir/tree"
)

// A user may write the header of a file in an outbox as lines such as "to: BlueLake", with or without --- lines
// around them. Such a plain header is parsed line by line, not as YAML. In YAML, the value of "subject: 12" would be
// a number, and the value of "subject: no" would be false. In a plain header, every value is text. Some YAML forms
// are supported: lists, quoted strings and, between --- lines, comment lines.
//
// A fault reports the line and the key. It never quotes a value, because the value may be a bcc recipient (Invariant
// I7). See docs/reference/tree.md, "Sending by saving".

// draftKey returns the standard spelling of a key in a draft. Keys may also be written as in an email
// ("In-Reply-To"), and ack_required may be written as "ack". draftKey returns an unknown key unchanged.
func draftKey(name string) string {
	key := underscored(name)
	switch {
	case key == "ack":
		return "ack_required"
	case fieldOf(key) == nil && kindOf(key) == nil:
		return name
	}
	return key
}

// underscored returns a key in the spelling of a message's keys: in lower case and with underscores.
func underscored(name string) string { return strings.ReplaceAll(strings.ToLower(name), "-", "_") }

// kindOf returns a pointer to a new variable of the same type as a draft key's value. The possible types are those of
// field.of. kindOf returns nil for a key that a sender may not set.
func kindOf(key string) any {
	switch f := fieldOf(key); {
	case key == repeatKey:
		return new(string)
	case f != nil && (f.is(given) || key == attachmentsKey):
		return f.of(&Message{})
	}
	return nil
}

// plainKey returns the key in a line of a plain header, and the text after the colon. The key is "" if the line has
// no known key.
func plainKey(line string) (key, value string) {
	name, value, _ := strings.Cut(line, ":")
	if len(name) == len(line) {
		return "", ""
	}
	if key = draftKey(strings.TrimRight(name, " \t")); kindOf(key) == nil {
		return "", ""
	}
	return key, strings.TrimSpace(value)
}

// plainFlag parses word as the value of a boolean key. The result why says what is wrong with the word, or is "" if
// the word is valid.
func plainFlag(key, word string) (yes bool, why string) {
	switch strings.ToLower(word) {
	case "yes", "true":
		return true, ""
	case "no", "false":
		return false, ""
	}
	return false, Quote(key) + " must be yes or no"
}

// isPlain reports whether a file begins with a plain header.
func isPlain(data []byte) bool {
	first, _, _ := bytes.Cut(data, []byte("\n"))
	key, _ := plainKey(string(first))
	return key != "" || isFence(first)
}

// isFence reports whether a line is --- with or without trailing spaces or tabs.
func isFence(line []byte) bool { return string(bytes.TrimRight(line, " \t")) == fenceClose }

// plainHeader collects the members of a plain header, which are then written as a JSON object. In the JSON object, each
// member is on the same line as in the file, so that errors refer to the right line.
type plainHeader struct {
	fenced bool // the header is between --- lines
	lines  []plainLine
	keys   []string
	list   *[]string // the value to which the next lines may add items; nil if the last key's value is complete
}

// plainLine is a key and a pointer to its value, as in field.of. The key is "" if the line has none.
type plainLine struct {
	key   string
	value any
}

// parsePlain parses the plain header of a file and returns it with the body. The error is a
// *tree.FormatError.
func parsePlain(data []byte) (header *object, body string, err error) {
	rest, base := data, 0
	first, below, _ := bytes.Cut(data, []byte("\n"))
	fenced := isFence(first)
	if fenced {
		rest, base = below, 1
	}
	h := &plainHeader{fenced: fenced}
	for size := len(rest); ; {
		fault := func(reason string) (*object, string, error) {
			return nil, "", &tree.FormatError{Line: base + len(h.lines) + 1, Reason: reason}
		}
		if len(rest) == 0 && fenced {
			return fault("the header has no closing line " + fenceClose + ": add it before the text")
		}
		line, after, _ := bytes.Cut(rest, []byte("\n"))
		rest = after
		if fenced && isFence(line) || !fenced && len(bytes.TrimSpace(line)) == 0 {
			break
		}
		switch {
		case size-len(rest) > MaxHeader:
			return fault("the header is too large: shorten it")
		case !utf8.Valid(line):
			return fault("the text is not valid UTF-8: save the file as UTF-8")
		case bytes.HasSuffix(line, []byte("\r")):
			return fault("the header has CRLF line endings: save the file with LF line endings")
		}
		if why := h.add(string(line)); why != "" {
			return fault(why)
		}
	}
	if fenced {
		rest = bytes.TrimPrefix(rest, []byte("\n"))
	}
	header, err = parseObject(h.json(), base)
	return header, string(bytes.TrimSuffix(rest, []byte("\n"))), err
}

// add parses the next line. It returns what is wrong with the line, or "" if the line is valid.
func (h *plainHeader) add(text string) (why string) {
	trimmed := strings.TrimSpace(text)
	if item, ok := strings.CutPrefix(trimmed+" ", "- "); ok && h.list != nil {
		*h.list = append(*h.list, unquotePlain(strings.TrimSpace(item)))
		h.lines = append(h.lines, plainLine{})
		return ""
	}
	key, value := plainKey(text)
	line := plainLine{key: key}
	switch {
	case trimmed == "" || h.fenced && trimmed[0] == '#':
		h.lines = append(h.lines, plainLine{})
		return ""
	case key == "":
		return notPlain(text)
	case slices.Contains(h.keys, key):
		return "the key " + Quote(key) + " appears twice: keep one"
	}
	h.list = nil
	switch kindOf(key).(type) {
	case *string:
		value = unquotePlain(value)
		line.value = &value
	case *bool:
		yes, why := plainFlag(key, unquotePlain(value))
		if why != "" {
			return why
		}
		line.value = &yes
	default:
		items := plainItems(value)
		if line.value = &items; len(items) == 0 {
			h.list = &items
		}
	}
	h.keys, h.lines = append(h.keys, key), append(h.lines, line)
	return ""
}

// notPlain describes what is wrong with a line without a known key. It quotes only the word before a colon.
func notPlain(line string) string {
	const leave = "Put an empty line before the text"
	const knows = "write a key such as to, cc, bcc, subject, importance or ack, then a colon and a value. " + leave
	name, _, found := strings.Cut(line, ":")
	key := underscored(strings.TrimSpace(name))
	if !found || !PlainName(key) || strings.TrimLeft(line, " \t") != line {
		return "this is not a header line: " + knows
	}
	if near := Near(key, draftKeys()); len(near) > 0 {
		return "the key " + Quote(strings.TrimSpace(name)) + " is unknown: did you mean " + near[0] + "? " + leave
	}
	return "the key " + Quote(strings.TrimSpace(name)) + " is unknown: " + knows
}

// json returns the header as a JSON object.
func (h *plainHeader) json() []byte {
	var b linedObject
	for i, l := range h.lines {
		if l.key != "" {
			b.put(i+1, l.key, compact(l.value))
		}
	}
	return b.object()
}

// linedObject writes a JSON object in which each member is on the same line as in a header, so that errors refer to the
// right line of the header.
type linedObject struct {
	text  []byte
	line  int // line number at the end of text
	parts int
}

// put adds a member on the given line, or on the previous member's line if that is later.
func (l *linedObject) put(line int, key string, value []byte) {
	if l.parts++; l.parts > 1 {
		l.text = append(l.text, ',')
	}
	for l.line = max(1, l.line); l.line < line; l.line++ {
		l.text = append(l.text, '\n')
	}
	l.text = append(append(append(l.text, compact(key)...), ": "...), value...)
}

// object returns the JSON object.
func (l *linedObject) object() []byte { return slices.Concat([]byte("{"), l.text, []byte("}")) }

// plainItems returns the items of a comma-separated list on one line. The list may be enclosed in brackets.
func plainItems(value string) []string {
	if inner, ok := strings.CutPrefix(value, "["); ok && strings.HasSuffix(inner, "]") {
		value = strings.TrimSuffix(inner, "]")
	}
	items := []string{}
	var quote rune
	for _, part := range strings.FieldsFunc(value, func(r rune) bool {
		switch {
		case quote == 0 && (r == '"' || r == '\''):
			quote = r
		case r == quote:
			quote = 0
		}
		return r == ',' && quote == 0
	}) {
		if item := unquotePlain(strings.TrimSpace(part)); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// unquotePlain removes the quotation marks from s if they enclose the whole text.
func unquotePlain(s string) string {
	var text string
	switch {
	case len(s) >= 2 && s[0] == '\'' && s[len(s)-1] == '\'':
		inner := s[1 : len(s)-1]
		if strings.Contains(strings.ReplaceAll(inner, "''", ""), "'") { // these are two quoted strings, not one
			return s
		}
		return strings.ReplaceAll(inner, "''", "'")
	case strings.HasPrefix(s, `"`) && json.Unmarshal([]byte(s), &text) == nil:
		return text
	}
	return s
}
