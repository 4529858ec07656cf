package edit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"
)

// JSON is a file that contains one JSON object. An empty file is treated as an empty object.
type JSON struct {
	Comments bool // the program that reads the file accepts comments
	Commas   bool // it also accepts a comma after the last member
}

// document is a parsed file. The offsets of its values always refer to text, the original content.
type document struct {
	mark  string // the file's byte-order mark, or ""
	text  []byte
	root  hujson.Value
	order []string // the names of new members, in the order in which they are written
	group string   // if not "", an object that loses its member with this name is removed too
}

func (f JSON) parse(data []byte) (*document, error) {
	d := &document{text: data}
	if rest, ok := bytes.CutPrefix(data, []byte(bom)); ok {
		d.mark, d.text = bom, rest
	}
	if blank(d.text) {
		d.text = []byte("{}" + newline(d.text))
	}
	var err error
	if d.root, err = hujson.Parse(d.text); err != nil {
		return nil, syntaxError(err)
	}
	if err := f.allows(d); err != nil {
		return nil, err
	}
	if _, ok := d.root.Value.(*hujson.Object); !ok {
		return nil, &SyntaxError{Line: line(d.text, d.root.StartOffset), Why: "expected a JSON object"}
	}
	return d, nil
}

// allows returns an error if the program that reads the file does not accept the file's syntax.
func (f JSON) allows(d *document) error {
	for v := range d.root.All() {
		var members, end hujson.Extra
		switch c := v.Value.(type) {
		case *hujson.Object:
			end = c.AfterExtra
			if n := len(c.Members); n > 0 {
				members = c.Members[n-1].Value.AfterExtra
			}
		case *hujson.Array:
			end = c.AfterExtra
			if n := len(c.Elements); n > 0 {
				members = c.Elements[n-1].AfterExtra
			}
		}
		if members != nil && !f.Commas {
			return &SyntaxError{Line: line(d.text, v.EndOffset-1-len(end)), Refused: "a trailing comma"}
		}
		for _, at := range []struct {
			extra hujson.Extra
			end   int
		}{{v.BeforeExtra, v.StartOffset}, {end, v.EndOffset - 1}, {v.AfterExtra, v.EndOffset + len(v.AfterExtra)}} {
			if !blank(at.extra) && !f.Comments {
				from := at.end - len(bytes.TrimLeft(at.extra, " \t\r\n"))
				return &SyntaxError{Line: line(d.text, from), Refused: "comments"}
			}
		}
	}
	return nil
}

// syntaxError converts an error from hujson to a SyntaxError, and extracts the line number.
func syntaxError(err error) error {
	e := &SyntaxError{Line: 1, Why: strings.TrimPrefix(err.Error(), "hujson: ")}
	var column int
	if _, scan := fmt.Sscanf(e.Why, "line %d, column %d:", &e.Line, &column); scan == nil {
		_, e.Why, _ = strings.Cut(e.Why, ": ")
	}
	return e
}

func (d *document) bytes() []byte { return append([]byte(d.mark), d.root.Pack()...) }

// decode returns the file's content, with numbers as json.Number.
func (d *document) decode() (root map[string]any, err error) {
	v := d.root.Clone()
	v.Standardize()
	decoder := json.NewDecoder(bytes.NewReader(v.Pack()))
	decoder.UseNumber()
	if err := decoder.Decode(&root); err != nil {
		return nil, &SyntaxError{Line: 1, Why: err.Error()}
	}
	return root, nil
}

// find returns the value at path, or nil if there is none. In a path, an element of a list is identified by its index.
// It returns *TwiceError if a name along the path appears twice.
func (d *document) find(path ...string) (*hujson.Value, error) {
	at := &d.root
	for _, name := range path {
		switch c := at.Value.(type) {
		case *hujson.Object:
			i, err := d.member(c, name)
			if err != nil || i < 0 {
				return nil, err
			}
			at = &c.Members[i].Value
		case *hujson.Array:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(c.Elements) {
				return nil, nil
			}
			at = &c.Elements[i]
		default:
			return nil, nil
		}
	}
	return at, nil
}

// member returns the index of a name in an object, or -1 if it is missing.
func (d *document) member(o *hujson.Object, name string) (int, error) {
	at := -1
	for i, m := range o.Members {
		if m.Name.Value.(hujson.Literal).String() != name {
			continue
		}
		if at >= 0 {
			return -1, &TwiceError{line(d.text, m.Name.StartOffset), name}
		}
		at = i
	}
	return at, nil
}

// Get implements Format.
func (f JSON) Get(data []byte, path []string) (any, error) {
	d, err := f.parse(data)
	if err != nil {
		return nil, err
	}
	if _, err := d.find(path...); err != nil {
		return nil, err
	}
	root, err := d.decode()
	return descend(root, path), err
}

// Put implements Format.
func (f JSON) Put(data []byte, e Entry) ([]byte, error) {
	return f.edit(data, func(d *document, root map[string]any) error {
		for _, k := range e.Keys {
			if _, err := d.find(append(slices.Clone(e.Path), k.Name)...); err != nil {
				return err
			}
		}
		last := len(e.Path) - 1
		parent, ok := within(root, e.Path[:last])
		old, isObject := parent[e.Path[last]].(map[string]any)
		if !ok || parent[e.Path[last]] != nil && !isObject {
			return ErrByHand
		}
		d.follow(names(e.Keys, e.New)...)
		parent[e.Path[last]] = wanted(old, e)
		return nil
	})
}

// Cut implements Format.
func (f JSON) Cut(data []byte, path []string) ([]byte, error) {
	if got, err := f.Get(data, path); err != nil || got == nil {
		return data, err
	}
	return f.edit(data, func(_ *document, root map[string]any) error {
		last := len(path) - 1
		delete(descend(root, path[:last]).(map[string]any), path[last])
		return nil
	})
}

// Empty implements Format.
func (f JSON) Empty(data []byte) bool {
	d, err := f.parse(data)
	return err == nil && hollow(&d.root) && blank(d.root.BeforeExtra) && blank(d.root.AfterExtra)
}

// edit decodes the file, lets change modify the decoded content, and returns data with the same changes. If nothing
// changes, it returns data itself. The function change deletes a member to remove it, and sets a list element to gone{}
// to remove the element. It must append new elements at the end. Containers that are left without members and comments
// are removed too.
func (f JSON) edit(data []byte, change func(d *document, root map[string]any) error) ([]byte, error) {
	d, err := f.parse(data)
	if err != nil {
		return nil, err
	}
	was, err := d.decode()
	if err != nil {
		return nil, err
	}
	want, _ := d.decode()
	if err := change(d, want); err != nil {
		return nil, err
	}
	if reflect.DeepEqual(was, want) {
		return data, nil
	}
	if _, err := d.match(&d.root, was, want, indentation(d.text, d.root.StartOffset)); err != nil {
		return nil, err
	}
	after := d.bytes()
	if got, err := f.Get(after, nil); err != nil || !reflect.DeepEqual(got, left(want)) {
		return nil, ErrByHand
	}
	return after, nil
}

// gone replaces a list element that is to be removed.
type gone struct{}

// left returns the decoded value v without the list elements that are gone{}.
func left(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = left(member)
		}
	case []any:
		all := make([]any, 0, len(v))
		for _, element := range v {
			if element != (gone{}) {
				all = append(all, left(element))
			}
		}
		return all
	}
	return v
}

// within returns the object at path in a decoded file. It creates the object and its parents if they are missing. If a
// value along the path is not an object, ok is false.
func within(root map[string]any, path []string) (m map[string]any, ok bool) {
	for _, name := range path {
		if root[name] == nil {
			root[name] = map[string]any{}
		}
		if root, ok = root[name].(map[string]any); !ok {
			return nil, false
		}
	}
	return root, true
}

// follow makes edit write new members in the order of names. Names from earlier calls keep their places.
func (d *document) follow(names ...string) {
	at := 0
	for _, name := range names {
		i := slices.Index(d.order, name)
		if i < 0 {
			d.order = slices.Insert(d.order, at, name)
			i = at
		}
		at = i + 1
	}
}

// sorted returns the names of m's members, in the order in which they are written.
func (d *document) sorted(m map[string]any) []string {
	names := slices.Sorted(maps.Keys(m))
	slices.SortStableFunc(names, func(a, b string) int {
		return slices.Index(d.order, a) - slices.Index(d.order, b)
	})
	return names
}
