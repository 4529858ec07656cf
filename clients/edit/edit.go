// Package edit changes one entry of a configuration file that belongs to another program and to the
// person who wrote it. It works on the bytes of a file and touches no disk.
//
// An edit replaces only the bytes of the entry: all other keys, their order, comments, white space,
// line ends and a byte-order mark stay as they are. Every edit is checked before it is returned:
// the result is parsed, and must say the same as before but for the entry. What cannot be edited
// under that rule is an error and leaves the file to its owner.
//
//	JSON    with or without comments and trailing commas; also lists of hooks' handlers
//	TOML    a table of its own, [a.b], with the tables below it
//	Block   lines of text between two markers in a markdown file
package edit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Key is a key of an entry. Value is a string, a bool, an int or a []string.
type Key struct {
	Name  string
	Value any
}

// Entry is what shall stand at Path.
type Entry struct {
	Path []string // names from the root of the file down to the entry
	Keys []Key    // set on every edit, in this order
	New  []Key    // set where the entry is new: its owner may change them
	Drop []string // keys that do not go with Keys
}

// Format is a kind of file.
type Format interface {
	// Get returns what stands at path: nil where nothing does. Errors: *SyntaxError, *TwiceError.
	Get(data []byte, path []string) (any, error)
	// Put returns data with the entry in it, and data itself where the entry says all that already.
	// Errors: as of Get; ErrByHand.
	Put(data []byte, e Entry) ([]byte, error)
	// Cut returns data without what stands at path, and without the parents that this leaves empty.
	// Errors: as of Put.
	Cut(data []byte, path []string) ([]byte, error)
	// Empty reports whether data says nothing and holds no comment.
	Empty(data []byte) bool
}

// SyntaxError says where a file does not parse.
type SyntaxError struct {
	Line int // from 1
	Why  string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Why) }

// TwiceError says that a name stands twice in one object, so that nobody knows which one counts.
type TwiceError struct {
	Line int // of the second
	Name string
}

func (e *TwiceError) Error() string {
	return fmt.Sprintf("line %d: %q stands here a second time", e.Line, e.Name)
}

// ErrByHand means that the entry is written in a way that is not edited here.
var ErrByHand = errors.New("the entry is written in a way that cannot be edited safely")

const bom = "\ufeff"

// line returns the number of the line that an offset lies in.
func line(data []byte, offset int) int {
	return 1 + bytes.Count(data[:min(max(offset, 0), len(data))], []byte("\n"))
}

// newline returns the line end of a file: that of its first line.
func newline(data []byte) string {
	if i := bytes.IndexByte(data, '\n'); i > 0 && data[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// checked returns after if it differs from before in nothing but the entry at path, which must hold
// want (nil: nothing).
func checked(f Format, before, after []byte, path []string, want map[string]any) ([]byte, error) {
	got, err := f.Get(after, path)
	if err != nil || want == nil && got != nil || want != nil && !reflect.DeepEqual(got, any(want)) {
		return nil, ErrByHand
	}
	if !sameElse(f, before, after, path) {
		return nil, ErrByHand
	}
	return after, nil
}

// sameElse reports whether two files say the same but for the entry at path.
func sameElse(f Format, before, after []byte, path []string) bool {
	was, errWas := f.Get(before, nil)
	is, errIs := f.Get(after, nil)
	return errWas == nil && errIs == nil && reflect.DeepEqual(without(was, path), without(is, path))
}

// without returns a copy of v with nothing at path, and without the parents that are empty then.
func without(v any, path []string) map[string]any {
	m, _ := v.(map[string]any)
	m = maps.Clone(m)
	if len(path) == 0 || m == nil {
		return m
	}
	if _, deeper := m[path[0]].(map[string]any); !deeper || len(path) == 1 {
		delete(m, path[0])
		return m
	}
	if rest := without(m[path[0]], path[1:]); len(rest) > 0 {
		m[path[0]] = rest
	} else {
		delete(m, path[0])
	}
	return m
}

// wanted returns what an entry holds after e was put where old stood.
func wanted(old map[string]any, e Entry) map[string]any {
	m := maps.Clone(old)
	if m == nil {
		m = map[string]any{}
	}
	for _, name := range e.Drop {
		delete(m, name)
	}
	maps.Copy(m, object(e.all(old == nil)))
	return m
}

// all returns the keys that an edit sets.
func (e Entry) all(isNew bool) []Key {
	if !isNew {
		return e.Keys
	}
	return append(append([]Key{}, e.Keys...), e.New...)
}

// decoded returns a Key's value as a parser does.
func decoded(v any) any {
	switch v := v.(type) {
	case int:
		return json.Number(strconv.Itoa(v))
	case []string:
		out := make([]any, len(v))
		for i, s := range v {
			out[i] = s
		}
		return out
	}
	return v
}

// object returns an object of keys as a parser does.
func object(keys []Key) map[string]any {
	m := map[string]any{}
	for _, k := range keys {
		m[k.Name] = decoded(k.Value)
	}
	return m
}

// names returns the names of keys.
func names(all ...[]Key) (out []string) {
	for _, k := range slices.Concat(all...) {
		out = append(out, k.Name)
	}
	return out
}

// descend returns what stands at path below v, nil where nothing does.
func descend(v any, path []string) any {
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

func blank(b []byte) bool { return len(bytes.TrimSpace(b)) == 0 }

// indentation returns the white space that the line of an offset begins with.
func indentation(data []byte, offset int) string {
	from := bytes.LastIndexByte(data[:offset], '\n') + 1
	text := string(data[from:offset])
	return text[:len(text)-len(strings.TrimLeft(text, " \t"))]
}
