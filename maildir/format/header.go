package format

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"mailtree/maildir/tree"
)

// object is a JSON object from a file in the tree. Such an object is decoded strictly. Key names must match exactly, no
// key may occur twice, the depth is limited, and the values of known keys must have the right type. The field err
// contains the first fault. Unknown keys are kept unchanged.
type object struct {
	raw  []byte
	keys []member
	base int // number of lines before raw in the file
	err  error
}

// member is a key of an object, with the raw text of its value.
type member struct {
	key string
	at  int // the key's offset in raw
	val json.RawMessage
}

// parseObject decodes raw. The argument base is the number of lines before raw in the file.
func parseObject(raw []byte, base int) (*object, error) {
	o := &object{raw: raw, base: base}
	if i := tree.InvalidUTF8(raw); i < len(raw) {
		return nil, o.fault(i, "the text is not valid UTF-8: save the file as UTF-8")
	}
	start := skipSpace(raw, 0)
	switch {
	case start == len(raw):
		return nil, o.fault(start, "there is no JSON object: begin the header with { and end it with }")
	case raw[start] != '{':
		return nil, o.fault(start, "the header is not a JSON object: begin it with { and end it with }")
	case !json.Valid(raw):
		var any json.RawMessage
		err := json.Unmarshal(raw, &any)
		at := min(max(jsonOffset(err)-1, 0), len(bytes.TrimRight(raw, " \t\r\n")))
		return nil, o.fault(at, cmp.Or(jsonSlip(raw, at, err), plainJSON(err)))
	}
	_, err := o.scan(start, 1)
	if err != nil {
		return nil, err
	}
	return o, nil
}

// scan reads the object or list at offset i of valid JSON, and returns the offset after its end. It stores the
// members of the outermost object in o.keys.
func (o *object) scan(i, depth int) (int, error) {
	if depth > maxDepth {
		return 0, o.fault(i, fmt.Sprintf("the JSON is nested more than %d levels deep: flatten it", maxDepth))
	}
	inObject := o.raw[i] == '{'
	var seen []string
	for i = skipSpace(o.raw, i+1); o.raw[i] != '}' && o.raw[i] != ']'; {
		var m member
		if inObject {
			m.at = i
			end := skipString(o.raw, i)
			m.key = unquote(o.raw[i:end])
			if slices.Contains(seen, m.key) {
				return 0, o.fault(i, "the key "+Quote(Cut(m.key, 80))+" appears twice: keep one")
			}
			if seen = append(seen, m.key); len(seen) > maxKeys {
				return 0, o.fault(i, fmt.Sprintf("an object has more than %d keys: remove some", maxKeys))
			}
			i = skipSpace(o.raw, skipSpace(o.raw, end)+1) // skip the colon
		}
		start := i
		var err error
		switch o.raw[i] {
		case '{', '[':
			if i, err = o.scan(i, depth+1); err != nil {
				return 0, err
			}
		case '"':
			i = skipString(o.raw, i)
		default:
			for !bytes.ContainsRune([]byte(",]} \t\r\n"), rune(o.raw[i])) {
				i++
			}
		}
		if depth == 1 {
			m.val = o.raw[start:i]
			o.keys = append(o.keys, m)
		}
		if i = skipSpace(o.raw, i); o.raw[i] == ',' {
			i = skipSpace(o.raw, i+1)
		}
	}
	return i + 1, nil
}

// maxKeys is the maximum number of keys in one object.
const maxKeys = 1000

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the offset after the end of the string at offset i of valid JSON.
func skipString(b []byte, i int) int {
	for i++; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// unquote decodes a valid JSON string.
func unquote(b []byte) (s string) {
	if bytes.IndexByte(b, '\\') < 0 {
		return string(b[1 : len(b)-1])
	}
	_ = json.Unmarshal(b, &s) // cannot fail, because b is valid
	return s
}

// member returns the member with the given key, or nil if there is none.
func (o *object) member(key string) *member {
	for i := range o.keys {
		if o.keys[i].key == key {
			return &o.keys[i]
		}
	}
	return nil
}

func (o *object) has(key string) bool { return o.member(key) != nil }

func (o *object) fault(offset int, reason string) *tree.FormatError {
	offset = min(max(offset, 0), len(o.raw))
	return &tree.FormatError{Line: o.base + 1 + bytes.Count(o.raw[:offset], []byte("\n")), Reason: reason}
}

// bad returns a fault that refers to the line of the given key.
func (o *object) bad(key, reason string) *tree.FormatError {
	if m := o.member(key); m != nil {
		return o.fault(m.at, reason)
	}
	return o.fault(0, reason)
}

// value returns the raw text of a known key's value. It returns nil if the key is missing or a fault has already
// occurred.
func (o *object) value(key string) json.RawMessage {
	m := o.member(key)
	if m == nil || o.err != nil {
		return nil
	}
	if string(m.val) == "null" {
		o.err = o.bad(key, Quote(key)+" is null: omit it, or write a value")
		return nil
	}
	return m.val
}

func (o *object) wrong(key string, err error) {
	o.err = o.bad(key, Quote(key)+" has the wrong type: "+plainJSON(err))
}

func (o *object) decode(key string, v any) {
	if raw := o.value(key); raw != nil {
		if err := json.Unmarshal(raw, v); err != nil {
			o.wrong(key, err)
		}
	}
}

func (o *object) text(key string) (s string) {
	raw := o.value(key)
	if raw == nil {
		return ""
	}
	if raw[0] != '"' {
		o.wrong(key, json.Unmarshal(raw, &s))
		return ""
	}
	if s = unquote(raw); strings.IndexByte(s, 0) >= 0 {
		o.err = o.bad(key, Quote(key)+" contains a NUL character: remove it")
	}
	return s
}

func (o *object) flag(key string) (b bool) { o.decode(key, &b); return b }

func (o *object) time(key string) time.Time {
	s := o.text(key)
	if s == "" || o.err != nil {
		return time.Time{}
	}
	t, err := ParseTime(s)
	if err != nil {
		o.err = o.bad(key, Quote(key)+": "+err.Error())
	}
	return t
}

func (o *object) names(key string) []string {
	var l []*string
	o.decode(key, &l)
	if l == nil || o.err != nil {
		return nil
	}
	out := make([]string, len(l))
	for i, s := range l {
		if s == nil {
			o.err = o.bad(key, Quote(key)+" contains null: remove it")
			return nil
		}
		out[i] = *s
	}
	return out
}

// readHeader sets the fields of m that have the given use to their values in the header o. The first fault is stored in
// o.err.
func (m *Message) readHeader(o *object, use uses) {
	for i := range fields {
		if f := &fields[i]; f.is(use) && o.has(f.key) {
			o.read(f.key, f.of(m))
		}
	}
}

// read reads a key's value into the variable that v points to.
func (o *object) read(key string, v any) {
	switch v := v.(type) {
	case *string:
		*v = o.text(key)
	case *[]string:
		*v = o.names(key)
	case *bool:
		*v = o.flag(key)
	case *time.Time:
		*v = o.time(key)
	default:
		o.decode(key, v)
	}
}

// jsonSlip describes a syntax error if it is a common mistake in hand-written JSON, and returns "" otherwise. The
// argument at is the offset of the first invalid byte, the only byte that jsonSlip quotes.
func jsonSlip(raw []byte, at int, err error) string {
	if at >= len(raw) || raw[at] >= utf8.RuneSelf {
		return ""
	}
	is, before := string(raw[at]), ""
	if left := bytes.TrimRight(raw[:at], " \t\r\n"); len(left) > 0 {
		before = string(left[len(left)-1])
	}
	text := err.Error()
	has := func(part string) bool { return strings.Contains(text, part) }
	value := has("beginning of value")
	key := has("beginning of object key string") || has("string for object key")
	switch {
	case has("in string literal") && is != "\n":
		return `a string contains a control character: remove it, or write \t for a tab`
	case has("in string literal"):
		return "a string is not closed on its line: add the missing quotation mark, or write \\n for a line break"
	case has("in string escape code") || has("hexadecimal character escape"):
		return `a string contains an invalid \ escape: write \\ for a \`
	case has("after object key:value pair") || has("after array element"):
		return "a comma is missing before " + is + `: add the comma, or write a quotation mark inside a string as \"`
	case has("after object key"):
		return "a colon is missing after the key: add it"
	case (value || key) && before == "," && (is == "}" || is == "]" || is == ","):
		return "there is an extra comma before " + is + ": remove it"
	case (value || key) && is == "'":
		return `JSON uses double quotation marks: write " instead of '`
	case (value || key) && (is == "/" || is == "#"):
		return "JSON has no comments: remove the comment"
	case value && before == ":" && (is == "}" || is == ","):
		return "a value is missing after the colon: add it"
	case value && (is == "," || is == "]"):
		return "there is an extra comma or bracket: remove " + is
	case value:
		return `a string has no quotation marks: write " around it`
	case key:
		return `a key has no quotation marks: write " around it`
	}
	return ""
}

func jsonOffset(err error) int {
	var s *json.SyntaxError
	if errors.As(err, &s) {
		return int(s.Offset)
	}
	return 0
}

// plainJSON describes an error from encoding/json without Go's type names.
func plainJSON(err error) string {
	var t *json.UnmarshalTypeError
	if errors.As(err, &t) {
		return "found a JSON " + t.Value + " instead of " + expected(t.Type)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(err.Error(), "unexpected end of JSON input") {
		return "the JSON ends too early: a quotation mark, ] or } is missing"
	}
	if strings.Contains(err.Error(), "max depth") {
		return fmt.Sprintf("the JSON is nested more than %d levels deep: flatten it", maxDepth)
	}
	if strings.Contains(err.Error(), "after top-level value") {
		return "there is text after the JSON object: remove it, or move it into the object"
	}
	return strings.TrimPrefix(err.Error(), "json: ") + ": fix the JSON here"
}

// expected says what kind of value to write for the Go type t.
func expected(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "text in quotes"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list in [ ]"
	case reflect.Struct:
		return "an object in { }"
	}
	return "a whole number"
}

// Cut shortens s to at most n bytes, at a rune boundary.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
