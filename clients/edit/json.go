package edit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/tailscale/hujson"
)

// JSON is a file that holds one JSON object. An empty file counts as an empty object.
type JSON struct {
	Comments bool // the file's reader allows comments
	Commas   bool // and a comma behind the last member
}

// document is a parsed file. Offsets of its values count in text.
type document struct {
	mark string // the byte-order mark, or ""
	text []byte
	root hujson.Value
}

func (f JSON) parse(data []byte) (*document, error) {
	d := &document{text: data}
	if rest, ok := bytes.CutPrefix(data, []byte(bom)); ok {
		d.mark, d.text = bom, rest
	}
	if blank(d.text) {
		d.text = []byte("{}" + newline(d.text))
	}
	if err := d.reparse(); err != nil {
		return nil, err
	}
	if err := f.allows(d); err != nil {
		return nil, err
	}
	if _, ok := d.root.Value.(*hujson.Object); !ok {
		return nil, &SyntaxError{line(d.text, d.root.StartOffset), "an object is expected here"}
	}
	return d, nil
}

// allows returns an error for what the file's reader does not understand.
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
			return &SyntaxError{line(d.text, v.EndOffset-1-len(end)), "a comma stands behind the last member, which its reader refuses"}
		}
		for _, at := range []struct {
			extra hujson.Extra
			end   int
		}{{v.BeforeExtra, v.StartOffset}, {end, v.EndOffset - 1}, {v.AfterExtra, v.EndOffset + len(v.AfterExtra)}} {
			if !blank(at.extra) && !f.Comments {
				from := at.end - len(bytes.TrimLeft(at.extra, " \t\r\n"))
				return &SyntaxError{line(d.text, from), "a comment stands here, which its reader refuses"}
			}
		}
	}
	return nil
}

func (d *document) reparse() (err error) {
	if d.root, err = hujson.Parse(d.text); err == nil {
		return nil
	}
	e := &SyntaxError{Line: 1, Why: strings.TrimPrefix(err.Error(), "hujson: ")}
	var column int
	if _, scan := fmt.Sscanf(e.Why, "line %d, column %d:", &e.Line, &column); scan == nil {
		_, e.Why, _ = strings.Cut(e.Why, ": ")
	}
	return e
}

// splice replaces the text between two offsets.
func (d *document) splice(from, to int, with string) error {
	d.text = []byte(string(d.text[:from]) + with + string(d.text[to:]))
	return d.reparse()
}

func (d *document) bytes() []byte { return append([]byte(d.mark), d.text...) }

// member returns the place of a name in an object: -1 where it is missing.
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

// walk follows path as far as objects go. It returns the last one and how many names led to it.
func (d *document) walk(path []string) (at *hujson.Value, depth int, err error) {
	at = &d.root
	for depth < len(path) {
		o := at.Value.(*hujson.Object)
		i, err := d.member(o, path[depth])
		if err != nil || i < 0 {
			return at, depth, err
		}
		if _, ok := o.Members[i].Value.Value.(*hujson.Object); !ok {
			return at, depth, nil
		}
		at = &o.Members[i].Value
		depth++
	}
	return at, depth, nil
}

// Get implements Format.
func (f JSON) Get(data []byte, path []string) (any, error) {
	d, err := f.parse(data)
	if err != nil {
		return nil, err
	}
	if _, _, err := d.walk(path); err != nil {
		return nil, err
	}
	v := d.root.Clone()
	v.Standardize()
	var out any
	decoder := json.NewDecoder(bytes.NewReader(v.Pack()))
	decoder.UseNumber()
	if err := decoder.Decode(&out); err != nil {
		return nil, &SyntaxError{1, err.Error()}
	}
	return descend(out, path), nil
}

// Put implements Format.
func (f JSON) Put(data []byte, e Entry) ([]byte, error) {
	got, err := f.Get(data, e.Path)
	if err != nil {
		return nil, err
	}
	old, isObject := got.(map[string]any)
	if got != nil && !isObject {
		return nil, ErrByHand
	}
	want := wanted(old, e)
	if old != nil && reflect.DeepEqual(old, want) {
		return data, nil
	}
	d, err := f.parse(data)
	if err != nil {
		return nil, err
	}
	if old == nil {
		err = d.create(e)
	} else {
		err = d.update(e, old)
	}
	if err != nil {
		return nil, err
	}
	return checked(f, data, d.bytes(), e.Path, want)
}

// create adds an entry, with those of its parents that are missing.
func (d *document) create(e Entry) error {
	at, depth, err := d.walk(e.Path)
	if err != nil {
		return err
	}
	if i, err := d.member(at.Value.(*hujson.Object), e.Path[depth]); err != nil || i >= 0 {
		return ErrByHand // a parent that is no object
	}
	const isNew = true
	var value any = e.all(isNew)
	for i := len(e.Path) - 1; i > depth; i-- {
		value = []Key{{e.Path[i], value}}
	}
	return d.insert(at, Key{e.Path[depth], value})
}

// update sets the keys of an entry that is there, and leaves those that it does not know.
func (d *document) update(e Entry, old map[string]any) error {
	for _, name := range e.Drop {
		if _, ok := old[name]; !ok {
			continue
		}
		if err := d.remove(append(append([]string{}, e.Path...), name)); err != nil {
			return err
		}
	}
	for _, k := range e.Keys {
		at, _, err := d.walk(e.Path)
		if err != nil {
			return err
		}
		o := at.Value.(*hujson.Object)
		i, err := d.member(o, k.Name)
		switch {
		case err != nil:
		case i < 0:
			err = d.insert(at, k)
		case !reflect.DeepEqual(old[k.Name], decoded(k.Value)):
			v := o.Members[i].Value
			err = d.splice(v.StartOffset, v.EndOffset, d.style(at).render(k.Value, ""))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// insert adds a member at the end of an object, in the style of those that are there.
func (d *document) insert(at *hujson.Value, k Key) error {
	s := d.style(at)
	return d.attach(at, s, s.render(k.Name, "")+": "+s.render(k.Value, s.indent))
}

// attach adds the text of a member or an element at the end of what at is.
func (d *document) attach(at *hujson.Value, s style, text string) error {
	inside, tail := contents(at)
	brace := at.EndOffset - 1
	end := brace - len(tail) + len(bytes.TrimRight(tail, " \t\r\n")) // behind the last comment
	if len(inside) == 0 {
		return d.splice(end, brace, s.newline+s.indent+text+s.newline+indentation(d.text, at.StartOffset))
	}
	lead := " "
	if !s.oneLine {
		lead = s.newline + s.indent
	}
	text = lead + text
	last := inside[len(inside)-1]
	if last.after != nil { // a trailing comma is there: the new one has one too
		return d.splice(end, end, text+",")
	}
	return d.splice(last.end, end, ","+string(d.text[last.end:end])+text)
}

// item is where a member of an object, or an element of a list, begins and ends.
type item struct {
	start, end    int
	before, after hujson.Extra // after: up to its comma; nil where it has none
}

// contents returns what an object or a list holds, and what stands behind the last of that.
func contents(v *hujson.Value) (all []item, tail hujson.Extra) {
	switch c := v.Value.(type) {
	case *hujson.Object:
		for _, m := range c.Members {
			all = append(all, item{m.Name.StartOffset, m.Value.EndOffset, m.Name.BeforeExtra, m.Value.AfterExtra})
		}
		tail = c.AfterExtra
	case *hujson.Array:
		for _, e := range c.Elements {
			all = append(all, item{e.StartOffset, e.EndOffset, e.BeforeExtra, e.AfterExtra})
		}
		tail = c.AfterExtra
	}
	return all, tail
}

// style is how the members of an object are laid out.
type style struct {
	newline, unit string
	indent        string // of members
	oneLine       bool
}

func (d *document) style(at *hujson.Value) style {
	s := style{newline: newline(d.text), unit: "  "}
	if indent, ok := d.ownLine(&d.root); ok && indent != "" {
		s.unit = indent
	}
	if indent, ok := d.ownLine(at); ok {
		s.indent = indent
	} else {
		s.indent = indentation(d.text, at.StartOffset) + s.unit
	}
	s.oneLine = d.flat(at) || d.flat(&d.root)
	if s.oneLine {
		s.newline, s.unit, s.indent = "", "", ""
	}
	return s
}

// flat reports whether an object or a list holds something, all on one line.
func (d *document) flat(v *hujson.Value) bool {
	inside, _ := contents(v)
	return len(inside) > 0 && !bytes.Contains(d.text[v.StartOffset:v.EndOffset], []byte("\n"))
}

// ownLine returns the indentation of the first member or element where that begins a line.
func (d *document) ownLine(v *hujson.Value) (indent string, ok bool) {
	inside, _ := contents(v)
	if len(inside) == 0 {
		return "", false
	}
	start := inside[0].start
	indent = indentation(d.text, start)
	from := start - len(indent)
	return indent, from > 0 && d.text[from-1] == '\n'
}

// render writes a value. Its own members are indented by one unit more than indent.
func (s style) render(v any, indent string) string {
	switch v := v.(type) {
	case []string:
		all := make([]string, len(v))
		for i, text := range v {
			all[i] = s.render(text, "")
		}
		return "[" + strings.Join(all, ", ") + "]"
	case []Key:
		all := make([]string, len(v))
		for i, k := range v {
			all[i] = s.render(k.Name, "") + ": " + s.render(k.Value, indent+s.unit)
		}
		return "{" + s.join(all, indent) + "}"
	case [][]Key:
		all := make([]string, len(v))
		for i, element := range v {
			all[i] = s.render(element, indent+s.unit)
		}
		return "[" + s.join(all, indent) + "]"
	default:
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(v) // of a string, a bool or a number: it cannot fail
		return strings.TrimSpace(b.String())
	}
}

// join writes what stands between two brackets, each on a line of its own but in a file of one line.
func (s style) join(all []string, indent string) string {
	if s.oneLine {
		return strings.Join(all, ", ")
	}
	inside := s.newline + indent + s.unit
	return inside + strings.Join(all, ","+inside) + s.newline + indent
}

// Cut implements Format.
func (f JSON) Cut(data []byte, path []string) ([]byte, error) {
	got, err := f.Get(data, path)
	if err != nil || got == nil {
		return data, err
	}
	d, err := f.parse(data)
	if err != nil {
		return nil, err
	}
	if err := d.removeAll(path); err != nil {
		return nil, err
	}
	return checked(f, data, d.bytes(), path, nil)
}

// removeAll takes a member away, and the parents that this leaves empty.
func (d *document) removeAll(path []string) error {
	for n := len(path); n > 0; n-- {
		if at, depth, err := d.walk(path[:n]); err != nil {
			return err
		} else if n < len(path) && (depth < n || !hollow(at)) {
			return nil
		}
		if err := d.remove(path[:n]); err != nil {
			return err
		}
	}
	return nil
}

// hollow reports whether an object holds neither a member nor a comment.
func hollow(v *hujson.Value) bool {
	o := v.Value.(*hujson.Object)
	return len(o.Members) == 0 && blank(o.AfterExtra)
}

// remove takes one member away, with its line and its comma. Comments around it stay.
func (d *document) remove(path []string) error {
	at, _, err := d.walk(path[:len(path)-1])
	if err != nil {
		return err
	}
	i, err := d.member(at.Value.(*hujson.Object), path[len(path)-1])
	if err != nil {
		return err
	}
	return d.excise(at, i)
}

// excise takes one member or element of at away, with its line and its comma.
func (d *document) excise(at *hujson.Value, i int) error {
	inside, tail := contents(at)
	m, last := inside[i], i == len(inside)-1
	if len(inside) == 1 && blank(m.before) && blank(m.after) && blank(tail) {
		return d.splice(at.StartOffset+1, at.EndOffset-1, "")
	}
	from, to := d.lineStart(m.start), m.end
	behind := string(m.after) // what stands between the value and its comma stays
	if !last || m.after != nil {
		return d.splice(from, to+len(behind)+1, behind)
	}
	if i == 0 {
		return d.splice(from, to, "")
	}
	// The one before has the comma now that the last must not have.
	before := inside[i-1]
	comma := before.end + len(before.after)
	return d.splice(comma, to, string(d.text[comma+1:from]))
}

// lineStart returns where the white space before an offset begins: with the line end before it,
// where nothing else stands on its line.
func (d *document) lineStart(offset int) int {
	offset -= len(d.text[:offset]) - len(bytes.TrimRight(d.text[:offset], " \t"))
	if offset > 0 && d.text[offset-1] == '\n' {
		offset--
		if offset > 0 && d.text[offset-1] == '\r' {
			offset--
		}
	}
	return offset
}

// Empty implements Format.
func (f JSON) Empty(data []byte) bool {
	d, err := f.parse(data)
	return err == nil && hollow(&d.root) && blank(d.root.BeforeExtra) && blank(d.root.AfterExtra)
}
