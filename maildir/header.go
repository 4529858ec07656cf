package maildir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// FormatError says why a file of the tree is not valid: it becomes a row of problems. Spec: 4.
type FormatError struct {
	Line   int // 1-based line of the file; 0 where a line makes no sense
	Reason string
}

// Error returns "line N: reason".
func (e *FormatError) Error() string {
	if e.Line == 0 {
		return e.Reason
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Reason)
}

// object is a JSON object of the tree, decoded strictly: exact key names, no duplicates, bounded depth, no
// null and no wrong type in a key that we know. The first fault sticks in err; keys that we do not know are
// left alone.
type object struct {
	raw  []byte
	at   map[string]int // offset of each key in raw
	val  map[string]json.RawMessage
	base int // line of the file that raw starts after
	err  error
}

// parseObject decodes raw, which starts behind line number base of its file.
func parseObject(raw []byte, base int) (*object, error) {
	o := &object{raw: raw, at: map[string]int{}, val: map[string]json.RawMessage{}, base: base}
	if !utf8.Valid(raw) {
		return nil, o.fault(invalidUTF8At(raw), "invalid UTF-8")
	}
	if err := o.walk(); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &o.val); err != nil {
		return nil, o.fault(0, plainJSON(err))
	}
	return o, nil
}

// walk reads every token once: duplicate keys at any level, depth, that it is one object and nothing after it.
func (o *object) walk() error {
	d := json.NewDecoder(bytes.NewReader(o.raw))
	d.UseNumber()
	type level struct {
		keys map[string]bool // nil for an array
		key  bool            // the next token is a key
	}
	var stack []level
	for {
		t, err := d.Token()
		at := int(d.InputOffset())
		if err == io.EOF && len(stack) == 0 {
			return o.fault(at, "there is no JSON object")
		}
		if err != nil {
			return o.fault(max(at, jsonOffset(err)), plainJSON(err))
		}
		if len(stack) == 0 && t != json.Delim('{') {
			return o.fault(0, "the header is not a JSON object")
		}
		if n := len(stack); n > 0 && stack[n-1].keys != nil && stack[n-1].key {
			if k, ok := t.(string); ok {
				if stack[n-1].keys[k] {
					return o.fault(at, "the key "+quote(cut(k, 80))+" stands twice")
				}
				stack[n-1].keys[k], stack[n-1].key = true, false
				if n == 1 {
					o.at[k] = at
				}
				continue
			}
		}
		switch t {
		case json.Delim('{'):
			stack = append(stack, level{keys: map[string]bool{}, key: true})
		case json.Delim('['):
			stack = append(stack, level{})
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:len(stack)-1]
		}
		if len(stack) > MaxDepth {
			return o.fault(at, fmt.Sprintf("nested deeper than %d levels", MaxDepth))
		}
		if n := len(stack); n > 0 && t != json.Delim('{') && t != json.Delim('[') {
			stack[n-1].key = stack[n-1].keys != nil
		}
		if len(stack) == 0 {
			if rest := bytes.TrimSpace(o.raw[d.InputOffset():]); len(rest) > 0 {
				return o.fault(int(d.InputOffset()), "text after the JSON object")
			}
			return nil
		}
	}
}

func (o *object) fault(offset int, reason string) *FormatError {
	offset = min(max(offset, 0), len(o.raw))
	return &FormatError{o.base + 1 + bytes.Count(o.raw[:offset], []byte("\n")), reason}
}

// bad is a fault at a key.
func (o *object) bad(key, reason string) *FormatError { return o.fault(o.at[key], reason) }

func (o *object) decode(key string, v any) bool {
	raw, ok := o.val[key]
	if !ok || o.err != nil {
		return false
	}
	if string(raw) == "null" {
		o.err = o.bad(key, quote(key)+" is null: leave it out or write a value")
		return false
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if err := d.Decode(v); err != nil {
		o.err = o.bad(key, quote(key)+" has the wrong type: "+plainJSON(err))
		return false
	}
	return true
}

func (o *object) text(key string) (s string) {
	if o.decode(key, &s) && strings.ContainsRune(s, 0) {
		o.err = o.bad(key, quote(key)+" holds a NUL character")
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
		o.err = o.bad(key, quote(key)+": "+err.Error())
	}
	return t
}

func (o *object) names(key string) []string {
	var l []*string
	if !o.decode(key, &l) {
		return nil
	}
	out := make([]string, len(l))
	for i, s := range l {
		if s == nil {
			o.err = o.bad(key, quote(key)+" holds null")
			return nil
		}
		out[i] = *s
	}
	return out
}

func jsonOffset(err error) int {
	var s *json.SyntaxError
	if errors.As(err, &s) {
		return int(s.Offset)
	}
	return 0
}

// plainJSON words an error of encoding/json without Go's type names.
func plainJSON(err error) string {
	var t *json.UnmarshalTypeError
	if errors.As(err, &t) {
		return "found a JSON " + t.Value
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return "the JSON ends too early"
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

func invalidUTF8At(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(b)
}

// quote shows an untrusted string in a sentence: escaped and cut.
func quote(s string) string { return fmt.Sprintf("%q", cut(s, 120)) }

// cut shortens s to at most n bytes at a rune boundary.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
