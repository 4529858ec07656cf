package edit

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/tailscale/hujson"
)

// Handlers are what one program runs at the events of another, in a JSON file in which others'
// handlers stand too:
//
//	{"hooks": {"Stop": [{"matcher": "", "hooks": [HANDLER, HANDLER]}, HANDLER]}}
//
// A list holds groups with a list "hooks" of their own, or handlers themselves.
type Handlers struct {
	Path []string // from the root to the object of the lists
	// Known names a handler that is the program's: two of one name do the same. Others' are "".
	Known func(handler map[string]any) string
	Want  []Handler
	Root  []Key // set at the root where they are missing
}

// Handler is one that shall stand in a list.
type Handler struct {
	List  string
	Group []Key // what the group of its own holds beside "hooks"
	Flat  bool  // it has no group
	Keys  []Key
}

// element is what a handler adds to its list.
func (w Handler) element() []Key {
	if w.Flat {
		return w.Keys
	}
	return append(slices.Clone(w.Group), Key{"hooks", [][]Key{w.Keys}})
}

// slot is a list and the name of a handler in it.
type slot struct{ list, name string }

// wanted returns the slots that shall be filled.
func (h Handlers) wanted() (all []slot) {
	for _, w := range h.Want {
		m := map[string]any{}
		for _, k := range w.Keys {
			m[k.Name] = decoded(k.Value)
		}
		all = append(all, slot{w.List, h.Known(m)})
	}
	return all
}

// lists reports whether a list shall hold something.
func (h Handlers) lists(name string) bool {
	return slices.ContainsFunc(h.Want, func(w Handler) bool { return w.List == name })
}

// Held is what a file holds of the program's handlers.
type Held struct {
	Wanted int      // how many of the wanted ones
	All    []string // the names of all, as Handlers.Known gives them
}

// GetHandlers returns what data holds of the program's handlers. Errors: as of Format.Get.
func (f JSON) GetHandlers(data []byte, h Handlers) (held Held, err error) {
	d, err := f.parse(data)
	if err != nil {
		return held, err
	}
	all, err := d.handlers(h)
	for _, s := range h.wanted() {
		if slices.ContainsFunc(all, func(at found) bool { return at.slot == s }) {
			held.Wanted++
		}
	}
	for _, at := range all {
		held.All = append(held.All, at.name)
	}
	return held, err
}

// PutHandlers returns data with each of the wanted handlers once. One that is there stays where and
// as it is; others are added at the end of their lists. Those of the program that are not wanted
// go. Errors: as of Format.Put.
func (f JSON) PutHandlers(data []byte, h Handlers) ([]byte, error) {
	d, err := f.parse(data)
	if err != nil {
		return nil, err
	}
	root := d.root.Value.(*hujson.Object)
	for _, k := range h.Root {
		i, err := d.member(root, k.Name)
		if err == nil && i < 0 {
			err = d.insert(&d.root, k)
		}
		if err != nil {
			return nil, err
		}
	}
	want := h.wanted()
	if err := d.cutHandlers(h, want); err != nil {
		return nil, err
	}
	for i, s := range want {
		all, err := d.handlers(h)
		if err == nil && !slices.ContainsFunc(all, func(at found) bool { return at.slot == s }) {
			err = d.addHandler(h.Path, h.Want[i])
		}
		if err != nil {
			return nil, err
		}
	}
	return f.sameHandlers(data, d.bytes(), h, len(want))
}

// CutHandlers returns data without the program's handlers, and without the groups, lists and
// parents that this leaves empty. Errors: as of Format.Put.
func (f JSON) CutHandlers(data []byte, h Handlers) ([]byte, error) {
	h.Want = nil
	d, err := f.parse(data)
	if err != nil {
		return nil, err
	}
	if all, err := d.handlers(h); err != nil || len(all) == 0 {
		return data, err
	}
	if err := d.cutHandlers(h, nil); err != nil {
		return nil, err
	}
	return f.sameHandlers(data, d.bytes(), h, 0)
}

// sameHandlers returns after if it holds as many of the program's handlers as it shall, and says
// else what before says.
func (f JSON) sameHandlers(before, after []byte, h Handlers, count int) ([]byte, error) {
	d, err := f.parse(after)
	if err != nil {
		return nil, ErrByHand
	}
	if all, err := d.handlers(h); err != nil || len(all) != count {
		return nil, ErrByHand
	}
	was, errWas := f.Get(before, nil)
	is, errIs := f.Get(after, nil)
	if errWas != nil || errIs != nil || !reflect.DeepEqual(h.others(was), h.others(is)) {
		return nil, ErrByHand
	}
	return after, nil
}

// others returns what a decoded file says without the program's handlers, empty lists and what is
// set at the root.
func (h Handlers) others(v any) any {
	root, _ := v.(map[string]any)
	for _, k := range h.Root {
		delete(root, k.Name)
	}
	lists, _ := descend(v, h.Path).(map[string]any)
	for name, list := range lists {
		elements, ok := list.([]any)
		if !ok {
			continue
		}
		elements = slices.DeleteFunc(elements, func(element any) bool {
			m, _ := element.(map[string]any)
			inner, isGroup := m["hooks"].([]any)
			if isGroup && h.Known(m) == "" {
				m["hooks"] = slices.DeleteFunc(inner, func(handler any) bool {
					m, _ := handler.(map[string]any)
					return h.Known(m) != ""
				})
			}
			return h.Known(m) != "" || isGroup && len(m["hooks"].([]any)) == 0
		})
		if lists[name] = elements; len(elements) == 0 {
			delete(lists, name)
		}
	}
	if len(lists) == 0 {
		return without(v, h.Path)
	}
	return v
}

// found is where one of the program's handlers stands: a place in the lists' object, one in a list,
// and, where a group holds it, one in the group's list.
type found struct {
	slot
	where []place
}

// place is a member of an object, or an element of a list.
type place struct {
	in *hujson.Value
	at int
}

// handlers returns the program's handlers in the order of the file. In a list that shall hold
// something, what has another shape than Handlers says is an error; elsewhere it is nobody's here.
func (d *document) handlers(h Handlers) (all []found, err error) {
	lists, depth, err := d.walk(h.Path)
	if err != nil {
		return nil, err
	}
	o := lists.Value.(*hujson.Object)
	if depth < len(h.Path) {
		if i, err := d.member(o, h.Path[depth]); err != nil || i < 0 {
			return nil, err
		} else {
			return nil, d.unlike(&o.Members[i].Value, "an object")
		}
	}
	for i := range o.Members {
		name := o.Members[i].Name.Value.(hujson.Literal).String()
		strict := h.lists(name)
		if _, err := d.member(o, name); err != nil && strict {
			return nil, err
		}
		list := &o.Members[i].Value
		elements, err := d.elements(list, strict)
		if err != nil {
			return nil, err
		}
		for j := range elements {
			outer := []place{{lists, i}, {list, j}}
			if handler := h.Known(d.decode(&elements[j])); handler != "" {
				all = append(all, found{slot{name, handler}, outer})
				continue
			}
			inner, err := d.group(&elements[j], strict)
			if err != nil {
				return nil, err
			}
			handlers, err := d.elements(inner, strict)
			if err != nil {
				return nil, err
			}
			for k := range handlers {
				if handler := h.Known(d.decode(&handlers[k])); handler != "" {
					all = append(all, found{slot{name, handler}, append(slices.Clone(outer), place{inner, k})})
				}
			}
		}
	}
	return all, nil
}

// elements returns what a list holds: nothing where v is no list, or an error if that is strict.
func (d *document) elements(v *hujson.Value, strict bool) ([]hujson.Value, error) {
	if v == nil {
		return nil, nil
	}
	if list, ok := v.Value.(*hujson.Array); ok {
		return list.Elements, nil
	}
	if strict {
		return nil, d.unlike(v, "a list")
	}
	return nil, nil
}

// group returns the list of a group: nil where v is none, or an error if that is strict.
func (d *document) group(v *hujson.Value, strict bool) (*hujson.Value, error) {
	o, ok := v.Value.(*hujson.Object)
	if !ok && strict {
		return nil, d.unlike(v, "an object")
	}
	if !ok {
		return nil, nil
	}
	i, err := d.member(o, "hooks")
	if err != nil || i < 0 {
		return nil, err
	}
	return &o.Members[i].Value, nil
}

func (d *document) unlike(v *hujson.Value, what string) error {
	return &SyntaxError{line(d.text, v.StartOffset), what + " is expected here"}
}

// decode returns an object as encoding/json does, nil for anything else.
func (d *document) decode(v *hujson.Value) (m map[string]any) {
	if _, ok := v.Value.(*hujson.Object); !ok {
		return nil
	}
	plain := v.Clone()
	plain.Standardize()
	_ = json.Unmarshal(plain.Pack(), &m)
	return m
}

// cutHandlers takes the program's handlers away, and what that leaves empty. One for each slot to
// keep stays: the first.
func (d *document) cutHandlers(h Handlers, keep []slot) error {
	for {
		all, err := d.handlers(h)
		if err != nil {
			return err
		}
		kept := map[slot]bool{}
		i := slices.IndexFunc(all, func(at found) bool {
			again := kept[at.slot]
			kept[at.slot] = true
			return again || !slices.Contains(keep, at.slot)
		})
		if i < 0 {
			return nil
		}
		if err := d.cutHandler(all[i].where, h.Path); err != nil {
			return err
		}
	}
}

// cutHandler takes one handler away with what held nothing else.
func (d *document) cutHandler(where []place, path []string) error {
	for i := len(where) - 1; i >= 0; i-- {
		inside, tail := contents(where[i].in)
		only := inside[where[i].at]
		if len(inside) > 1 || !blank(only.before) || !blank(only.after) || !blank(tail) {
			return d.excise(where[i].in, where[i].at)
		}
	}
	return d.removeAll(path)
}

// addHandler adds one at the end of its list, with the list and its parents where they are missing.
func (d *document) addHandler(path []string, w Handler) error {
	at, depth, err := d.walk(path)
	if err != nil {
		return err
	}
	if depth == len(path) {
		o := at.Value.(*hujson.Object)
		i, err := d.member(o, w.List)
		if err != nil {
			return err
		}
		if i >= 0 {
			list := &o.Members[i].Value
			s := d.style(list)
			return d.attach(list, s, s.render(w.element(), s.indent))
		}
		return d.insert(at, Key{w.List, [][]Key{w.element()}})
	}
	var value any = []Key{{w.List, [][]Key{w.element()}}}
	for i := len(path) - 1; i > depth; i-- {
		value = []Key{{path[i], value}}
	}
	return d.insert(at, Key{path[depth], value})
}
