package edit

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/tailscale/hujson"
)

// match edits v to change its decoded content from was to want. The argument indent is the indentation of the line on
// which v begins. If v is empty after the change, match returns true. The caller must then remove v, and delete want
// from the wanted content of v's parent.
func (d *document) match(v *hujson.Value, was, want any, indent string) (emptied bool, err error) {
	switch now := want.(type) {
	case map[string]any:
		if before, ok := was.(map[string]any); ok {
			return d.matchObject(v, before, now, indent)
		}
	case []any:
		if before, ok := was.([]any); ok && len(before) <= len(now) {
			return d.matchList(v, before, now, indent)
		}
	}
	v.Value = d.style(v, indent).value(want, indent)
	return false, nil
}

func (d *document) matchObject(v *hujson.Value, was, want map[string]any, indent string) (emptied bool, err error) {
	o := v.Value.(*hujson.Object)
	cut := false
	for i := len(o.Members) - 1; i >= 0; i-- {
		m := &o.Members[i]
		name := m.Name.Value.(hujson.Literal).String()
		now, stays := want[name]
		if stays && reflect.DeepEqual(was[name], now) {
			continue
		}
		if _, err := d.member(o, name); err != nil {
			return false, err
		}
		if stays {
			emptied, err := d.match(&m.Value, was[name], now, lineOf(m.Name.BeforeExtra, indent))
			if err != nil {
				return false, err
			}
			if !emptied {
				continue
			}
			delete(want, name)
		}
		if excise(v, i); d.group != "" && name == d.group {
			return true, nil
		}
		cut = true
	}
	for _, name := range d.sorted(want) {
		if _, ok := was[name]; !ok {
			d.attach(v, name, want[name], indent)
		}
	}
	return cut && hollow(v), nil
}

func (d *document) matchList(v *hujson.Value, was, want []any, indent string) (emptied bool, err error) {
	elements := v.Value.(*hujson.Array).Elements
	cut := false
	for i := len(was) - 1; i >= 0; i-- {
		if reflect.DeepEqual(was[i], want[i]) {
			continue
		}
		if want[i] != (gone{}) {
			emptied, err := d.match(&elements[i], was[i], want[i], lineOf(elements[i].BeforeExtra, indent))
			if err != nil {
				return false, err
			}
			if !emptied {
				continue
			}
			want[i] = gone{}
		}
		excise(v, i)
		cut = true
	}
	for _, value := range want[len(was):] {
		d.attach(v, "", value, indent)
	}
	return cut && hollow(v), nil
}

// item contains the white space and the comments around a member of an object or an element of a list.
type item struct {
	before *hujson.Extra
	after  *hujson.Extra // up to the comma; nil if the last item has no trailing comma
}

// contents returns the items of an object or a list, and the text after the last item.
func contents(v *hujson.Value) (all []item, tail *hujson.Extra) {
	switch c := v.Value.(type) {
	case *hujson.Object:
		for i := range c.Members {
			all = append(all, item{&c.Members[i].Name.BeforeExtra, &c.Members[i].Value.AfterExtra})
		}
		tail = &c.AfterExtra
	case *hujson.Array:
		for i := range c.Elements {
			all = append(all, item{&c.Elements[i].BeforeExtra, &c.Elements[i].AfterExtra})
		}
		tail = &c.AfterExtra
	}
	return all, tail
}

// hollow reports whether an object or a list contains neither members nor comments.
func hollow(v *hujson.Value) bool {
	inside, tail := contents(v)
	return len(inside) == 0 && blank(*tail)
}

// excise removes the i-th member or element of v together with its line and comma. Comments around it stay.
func excise(v *hujson.Value, i int) {
	inside, tail := contents(v)
	m, last := inside[i], i == len(inside)-1
	rest := slices.Concat(withoutLine(*m.before), *m.after)
	if last && i > 0 { // the previous item is now the last one, and keeps its comma only if this item had one
		before := inside[i-1].after
		if *m.after == nil {
			rest = slices.Concat(*before, rest)
			*before = nil
		} else if *before == nil {
			*before = hujson.Extra{}
		}
	}
	next := tail
	if !last {
		next = inside[i+1].before
	}
	*next = append(rest, *next...)
	if len(inside) == 1 && blank(*tail) {
		*tail = nil
	}
	switch c := v.Value.(type) {
	case *hujson.Object:
		c.Members = slices.Delete(c.Members, i, i+1)
	case *hujson.Array:
		c.Elements = slices.Delete(c.Elements, i, i+1)
	}
}

// withoutLine removes the last line ending, and the white space after it, from the text before a member.
func withoutLine(before hujson.Extra) hujson.Extra {
	before = bytes.TrimRight(before, " \t")
	return bytes.TrimSuffix(bytes.TrimSuffix(before, []byte("\n")), []byte("\r"))
}

// attach adds value to v in the style of v's other items. The value becomes the last member, or the last element if
// name is "". It goes after the last comment.
func (d *document) attach(v *hujson.Value, name string, value any, indent string) {
	s := d.style(v, indent)
	inside, tail := contents(v)
	comments := bytes.TrimRight(*tail, " \t\r\n")
	added := hujson.Value{Value: s.value(value, s.indent)}
	lead := s.newline + s.indent
	if len(inside) == 0 {
		*tail = []byte(s.newline + indent)
		if s.oneLine {
			*tail = nil
		}
	} else {
		*tail = bytes.Clone((*tail)[len(comments):])
		if s.oneLine {
			lead = " "
		}
		if *inside[len(inside)-1].after != nil { // keep the trailing comma
			added.AfterExtra = hujson.Extra{}
		}
	}
	before := hujson.Extra(string(comments) + lead)
	switch c := v.Value.(type) {
	case *hujson.Object:
		added.BeforeExtra = hujson.Extra(" ")
		c.Members = append(c.Members, hujson.ObjectMember{
			Name:  hujson.Value{BeforeExtra: before, Value: hujson.String(name)},
			Value: added,
		})
	case *hujson.Array:
		added.BeforeExtra = before
		c.Elements = append(c.Elements, added)
	}
}

// style is the layout of an object's members.
type style struct {
	d             *document
	newline, unit string
	indent        string // the indentation of the members
	oneLine       bool
}

// style returns the layout of v's items. indent is the indentation of the line on which v begins.
func (d *document) style(v *hujson.Value, indent string) style {
	if flat(v) || flat(&d.root) {
		return style{d: d, oneLine: true}
	}
	s := style{d: d, newline: newline(d.text), unit: "  "}
	if unit, ok := ownLine(&d.root); ok && unit != "" {
		s.unit = unit
	}
	var ok bool
	if s.indent, ok = ownLine(v); !ok {
		s.indent = indent + s.unit
	}
	return s
}

// flat reports whether an object or a list has items, all on one line.
func flat(v *hujson.Value) bool {
	inside, _ := contents(v)
	return len(inside) > 0 && !bytes.Contains(hujson.Value{Value: v.Value}.Pack(), []byte("\n"))
}

// ownLine returns the indentation of the first member or element, if that item begins a line.
func ownLine(v *hujson.Value) (indent string, ok bool) {
	inside, _ := contents(v)
	if len(inside) == 0 {
		return "", false
	}
	const none = "no line begins here"
	indent = lineOf(*inside[0].before, none)
	return indent, indent != none
}

// lineOf returns the indentation of the line on which a member begins. The parameter before is the text in front of the
// member. If the member is not the first on its line, lineOf returns container, the indentation of the container's
// line.
func lineOf(before hujson.Extra, container string) string {
	if i := bytes.LastIndexByte(before, '\n'); i >= 0 && blank(before[i:]) {
		return string(before[i+1:])
	}
	return container
}

// value formats a decoded value. A list of strings is written on one line. In any other container, each member is
// written on a separate line, one unit deeper than indent. In a file that consists of one line, everything is written
// on that line.
func (s style) value(v any, indent string) hujson.ValueTrimmed {
	lead := s.newline + indent + s.unit
	switch v := v.(type) {
	case map[string]any:
		o := &hujson.Object{AfterExtra: hujson.Extra(s.newline + indent)}
		for i, name := range s.d.sorted(v) {
			o.Members = append(o.Members, hujson.ObjectMember{
				Name:  hujson.Value{BeforeExtra: s.lead(i, lead), Value: hujson.String(name)},
				Value: hujson.Value{BeforeExtra: hujson.Extra(" "), Value: s.value(v[name], indent+s.unit)},
			})
		}
		return o
	case []any:
		list := &hujson.Array{AfterExtra: hujson.Extra(s.newline + indent)}
		if texts(v) {
			s, lead, list.AfterExtra = style{oneLine: true}, "", nil
		}
		for i, element := range v {
			list.Elements = append(list.Elements, hujson.Value{
				BeforeExtra: s.lead(i, lead),
				Value:       s.value(element, indent+s.unit),
			})
		}
		return list
	case string:
		return hujson.String(v)
	case bool:
		return hujson.Bool(v)
	default:
		return hujson.Literal(v.(json.Number))
	}
}

// lead returns the white space before the i-th member.
func (s style) lead(i int, ownLine string) hujson.Extra {
	if s.oneLine && i > 0 {
		return hujson.Extra(" ")
	}
	return hujson.Extra(ownLine)
}

// texts reports whether a list contains only strings.
func texts(list []any) bool {
	return !slices.ContainsFunc(list, func(v any) bool { _, ok := v.(string); return !ok })
}
