package edit

import (
	"errors"
	"reflect"
	"testing"
)

// FuzzJSON puts an entry into any file that parses and takes it out again. ErrByHand would mean that
// an edit was wrong and its check has caught it.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{
		``, `{}`, `{ }`, "{\n}", `{"a":1}`, "{\n  \"a\": 1, // c\n}", `{"s":{}}`, `{"s":{/* c */}}`, `{"s":{"b":{"c":[1,],},},}`,
		"{\r\n\t\"s\": {\r\n\t\t\"m\": {\"x\": \"y\", \"k\": 1}\r\n\t}\r\n}\r\n", `{"s":{"m":{"x":"z"/*1*/,/*2*/},"n":0}}`, "\ufeff{}",
	} {
		f.Add([]byte(s))
	}
	form := JSON{Comments: true, Commas: true}
	e := Entry{
		Path: []string{"s", "m"},
		Keys: []Key{{"x", "y"}, {"list", []string{"1", "2"}}},
		New:  []Key{{"on", true}},
		Drop: []string{"k"},
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		root, err := form.Get(data, nil)
		if err != nil {
			return
		}
		if blocked(root, e.Path) {
			return
		}
		put, err := form.Put(data, e)
		var twice *TwiceError
		if errors.As(err, &twice) {
			return
		}
		if err != nil {
			t.Fatalf("%q: put: %v", data, err)
		}
		if again, err := form.Put(put, e); err != nil || string(again) != string(put) {
			t.Fatalf("%q: put again: %q, %v", put, again, err)
		}
		cut, err := form.Cut(put, e.Path)
		if err != nil {
			t.Fatalf("%q: cut: %v", put, err)
		}
		now, err := form.Get(cut, nil)
		if err != nil || !reflect.DeepEqual(without(root, e.Path), without(now, e.Path)) {
			t.Fatalf("%q became %q, %v", data, cut, err)
		}
	})
}

// blocked reports whether the entry at path, or a parent of it, is there and no object.
func blocked(v any, path []string) bool {
	for _, name := range path {
		m, isObject := v.(map[string]any)
		next, there := m[name]
		if !isObject || !there {
			return !isObject
		}
		v = next
	}
	_, isObject := v.(map[string]any)
	return !isObject
}
