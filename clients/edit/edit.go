// Package edit changes a single entry of a configuration file that belongs to another program and its user. It works on
// a file's bytes, and neither reads nor writes files.
//
// An edit replaces only the bytes of the entry. Everything else stays unchanged: all other keys, their order, comments,
// white space, line endings and a byte-order mark. Before an edit returns its result, it parses the result, and checks
// that the content equals the old content except for the entry. If the check fails, the edit returns an error.
//
//	JSON    with or without comments and trailing commas; also lists of hook handlers
//	TOML    the entry is a separate table, [a.b], with the tables below it
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

// Key is a key of an entry, with its value. Value is a string, a bool, an int or a []string.
type Key struct {
	Name  string
	Value any
}

// Entry is the desired content at Path.
type Entry struct {
	Path []string // keys that lead from the root of the file to the entry
	Keys []Key    // set by every edit, in this order
	New  []Key    // set only when the entry is created, because the user may change them later
	Drop []string // keys to remove, because they conflict with Keys
}

// Format is a file format.
type Format interface {
	// Get returns the value at path, or nil if there is none. Its errors are *SyntaxError and *TwiceError.
	Get(data []byte, path []string) (any, error)
	// Put returns data with the entry, or data itself if the entry is already complete. It returns ErrByHand or the
	// same errors as Get.
	Put(data []byte, e Entry) ([]byte, error)
	// Cut returns data without the value at path and without parents that would become empty. It returns the same
	// errors as Put.
	Cut(data []byte, path []string) ([]byte, error)
	// Empty reports whether data contains no values and no comments.
	Empty(data []byte) bool
}

// SyntaxError is a syntax error in a file.
type SyntaxError struct {
	Line int // line number, starting at 1
	Why  string

	// Refused is set if the syntax is valid, but is not accepted by the program that reads the file. Refused then names
	// that syntax, and Why is "".
	Refused string
}

func (e *SyntaxError) Error() string {
	if e.Refused != "" {
		return fmt.Sprintf("line %d: the client does not accept %s", e.Line, e.Refused)
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Why)
}

// TwiceError reports that a name appears twice in the same object, so it is unclear which value applies.
type TwiceError struct {
	Line int // line of the second occurrence
	Name string
}

func (e *TwiceError) Error() string {
	return fmt.Sprintf("line %d: %q appears twice", e.Line, e.Name)
}

// ErrByHand means that the file has a form that this package cannot edit.
var ErrByHand = errors.New("the file is in a form that mailtree cannot edit")

const bom = "\ufeff"

// line returns the line number of an offset.
func line(data []byte, offset int) int {
	return 1 + bytes.Count(data[:min(max(offset, 0), len(data))], []byte("\n"))
}

// newline returns the line ending of a file's first line.
func newline(data []byte) string {
	if i := bytes.IndexByte(data, '\n'); i > 0 && data[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// checked checks after, which is the result of an edit. It returns after if the result is correct, and ErrByHand
// otherwise. The result may differ from before only in the entry at path, and that entry must equal want. If want is
// nil, there must be no entry.
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

// sameElse reports whether two versions of a file have the same content except at path.
func sameElse(f Format, before, after []byte, path []string) bool {
	was, errWas := f.Get(before, nil)
	is, errIs := f.Get(after, nil)
	return errWas == nil && errIs == nil && reflect.DeepEqual(without(was, path), without(is, path))
}

// without returns a copy of v without the value at path and without parents that would become empty.
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

// wanted returns the content of an entry after e has been applied to its old content.
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

// decoded returns a Key's value as a parser would return it.
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

// object returns an object with the keys, as a parser would return it.
func object(keys []Key) map[string]any {
	m := map[string]any{}
	for _, k := range keys {
		m[k.Name] = decoded(k.Value)
	}
	return m
}

// names returns the keys' names.
func names(all ...[]Key) (out []string) {
	for _, k := range slices.Concat(all...) {
		out = append(out, k.Name)
	}
	return out
}

// descend returns the value at path below v, or nil if there is none.
func descend(v any, path []string) any {
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

func blank(b []byte) bool { return len(bytes.TrimSpace(b)) == 0 }

// indentation returns the white space at the beginning of the line that contains an offset.
func indentation(data []byte, offset int) string {
	from := bytes.LastIndexByte(data[:offset], '\n') + 1
	text := string(data[from:offset])
	return text[:len(text)-len(strings.TrimLeft(text, " \t"))]
}
