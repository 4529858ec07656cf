package edit

import (
	"errors"
	"reflect"
	"slices"
	"testing"
)

// FuzzJSON checks that an entry can be added to any file that parses, and removed again, without changing anything
// else. It skips files whose entry cannot be edited, so an ErrByHand from Put or Cut means that the edit was wrong.
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

// blocked reports whether the entry at path, or one of its parents, exists and is not an object.
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

// FuzzHandlers checks that handlers can be added to any file that parses, and removed again.
func FuzzHandlers(f *testing.F) {
	for _, s := range []string{
		``, `{}`, `{"h":{}}`, `{"h":{"a":[]}}`, "{\n  \"h\": {\n    \"a\": [ // c\n    ]\n  }\n}",
		`{"h":{"a":[{"hooks":[{"c":"x"},{"c":"o"}]}]}}`,
		`{"h":{"a":[{"c":"x"},{"c":"x"},1,{"hooks":[]}],"b":{},"c":[{"c":"y"}]}}`,
		"{\r\n\t\"h\": {\"b\": [{\"m\":1,\"hooks\":[{\"c\":\"x\"},],},],},\r\n}",
		`{"h":{"a":[{"hooks":[/*1*/{"c":"x"}/*2*/]}]}}`, `{"v":2,"h":{"a":[{"c":"x","hooks":[{"c":"x"}]}]}}`,
	} {
		f.Add([]byte(s))
	}
	form := JSON{Comments: true, Commas: true}
	h := Handlers{
		Path: []string{"h"},
		Known: func(m map[string]any) string {
			name, _ := m["c"].(string)
			if name != "x" && name != "y" {
				return ""
			}
			return name
		},
		Want: []Handler{
			{List: "a", Group: []Key{{"m", "t"}}, Keys: []Key{{"c", "x"}}},
			{List: "b", Keys: []Key{{"c", "x"}, {"n", 1}}},
			{List: "b", Flat: true, Keys: []Key{{"c", "y"}}},
		},
		Root: []Key{{"v", 1}},
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		root, err := form.Get(data, nil)
		if err != nil {
			return
		}
		put, err := form.PutHandlers(data, h)
		var twice *TwiceError
		var syntax *SyntaxError
		if errors.As(err, &twice) || errors.As(err, &syntax) {
			return
		}
		if err != nil {
			t.Fatalf("%q: put: %v", data, err)
		}
		if again, err := form.PutHandlers(put, h); err != nil || string(again) != string(put) {
			t.Fatalf("%q: put again: %q, %v", put, again, err)
		}
		if held, err := form.GetHandlers(put, h); held.Wanted != len(h.Want) || len(held.All) == 0 || err != nil {
			t.Fatalf("%q: %+v, %v", put, held, err)
		}
		cut, err := form.CutHandlers(put, h)
		if err != nil {
			t.Fatalf("%q: cut: %v", put, err)
		}
		if now, err := form.Get(cut, nil); err != nil || !reflect.DeepEqual(h.others(root), h.others(now)) {
			t.Fatalf("%q became %q, %v", data, cut, err)
		}
		if held, err := form.GetHandlers(cut, h); len(held.All) > 0 || err != nil {
			t.Fatalf("%q: some handlers remain, %v", cut, err)
		}
	})
}

// others returns the content of a decoded file without our handlers, without empty lists and without the keys that are
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
