package edit

import (
	"reflect"
	"slices"

	"github.com/tailscale/hujson"
)

// HasItem reports whether the list at a path holds a text. Errors: as of Format.Get.
func (f JSON) HasItem(data []byte, path []string, text string) (bool, error) {
	got, err := f.Get(data, path)
	list, _ := got.([]any)
	return slices.Contains(list, any(text)), err
}

// PutItem returns data with a text at the end of the list at a path, which is made where it is
// missing. One that is there stays. Errors: as of Format.Put.
func (f JSON) PutItem(data []byte, path []string, text string) ([]byte, error) {
	if has, err := f.HasItem(data, path, text); err != nil || has {
		return data, err
	}
	d, err := f.parse(data)
	if err != nil {
		return nil, err
	}
	at, depth, err := d.walk(path[:len(path)-1])
	if err != nil {
		return nil, err
	}
	i := -1
	if o := at.Value.(*hujson.Object); depth == len(path)-1 {
		if i, err = d.member(o, path[depth]); err != nil {
			return nil, err
		}
		if i >= 0 {
			list := &o.Members[i].Value
			if _, err := d.elements(list, true); err != nil {
				return nil, err
			}
			s := d.style(list)
			err = d.attach(list, s, s.render(text, s.indent))
		}
	}
	if i < 0 && err == nil {
		var value any = []string{text}
		for n := len(path) - 1; n > depth; n-- {
			value = []Key{{path[n], value}}
		}
		err = d.insert(at, Key{path[depth], value})
	}
	if err != nil {
		return nil, err
	}
	return f.sameItems(data, d.bytes(), path, text)
}

// CutItem returns data without a text in the list at a path, and without the list and the parents
// that this leaves empty. Errors: as of Format.Put.
func (f JSON) CutItem(data []byte, path []string, text string) ([]byte, error) {
	if has, err := f.HasItem(data, path, text); err != nil || !has {
		return data, err
	}
	d, err := f.parse(data)
	if err != nil {
		return nil, err
	}
	at, _, err := d.walk(path[:len(path)-1])
	if err != nil {
		return nil, err
	}
	o := at.Value.(*hujson.Object)
	n, err := d.member(o, path[len(path)-1])
	if err != nil {
		return nil, err
	}
	list := &o.Members[n].Value
	all, err := d.elements(list, true)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(v hujson.Value) bool {
		l, ok := v.Value.(hujson.Literal)
		return ok && l.Kind() == '"' && l.String() == text
	})
	switch {
	case i < 0:
		return nil, ErrByHand
	case len(all) == 1:
		err = d.removeAll(path)
	default:
		err = d.excise(list, i)
	}
	if err != nil {
		return nil, err
	}
	return f.sameItems(data, d.bytes(), path, text)
}

// sameItems returns after if it says what before says, but for the text in the list at a path.
func (f JSON) sameItems(before, after []byte, path []string, text string) ([]byte, error) {
	was, errWas := f.Get(before, nil)
	is, errIs := f.Get(after, nil)
	if errWas != nil || errIs != nil || !reflect.DeepEqual(withoutItem(was, path, text), withoutItem(is, path, text)) {
		return nil, ErrByHand
	}
	return after, nil
}

// withoutItem returns a decoded file without a text in the list at a path, and without what is empty
// on the way there.
func withoutItem(v any, path []string, text string) any {
	for n := len(path); n > 0; n-- {
		parent, _ := descend(v, path[:n-1]).(map[string]any)
		switch of := parent[path[n-1]].(type) {
		case []any:
			if of = slices.DeleteFunc(of, func(x any) bool { return x == any(text) }); len(of) == 0 {
				delete(parent, path[n-1])
			} else {
				parent[path[n-1]] = of
			}
		case map[string]any:
			if len(of) == 0 {
				delete(parent, path[n-1])
			}
		}
	}
	return v
}
