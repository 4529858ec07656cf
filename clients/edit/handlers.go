package edit

import (
	"maps"
	"slices"
	"strconv"
)

// Handlers describes our handlers. A handler is a command that a client runs on an event. Handlers are stored in a JSON
// file, which may also contain handlers of other programs:
//
//	{"hooks": {"Stop": [{"matcher": "", "hooks": [HANDLER, HANDLER]}, HANDLER]}}
//
// Each element of a list is a handler or a group. A group has a list "hooks" that contains handlers.
type Handlers struct {
	Path []string // the path from the root to the object that contains the lists
	// Known returns the name of a handler if it is ours, and "" otherwise. Handlers with the same name do the same
	// thing.
	Known func(handler map[string]any) string
	Want  []Handler
	Root  []Key // added to the root if they are missing
}

// Handler is a handler that a list must contain.
type Handler struct {
	List  string
	Group []Key // the keys of the handler's own group, except "hooks"
	Flat  bool  // the handler is not in a group
	Keys  []Key
}

// element returns the handler as an element of its list.
func (w Handler) element() map[string]any {
	keys := object(w.Keys)
	if w.Flat {
		return keys
	}
	group := object(w.Group)
	group[groupList] = []any{keys}
	return group
}

// groupList is the key of the list of handlers in a group.
const groupList = "hooks"

// slot identifies a handler by its list and its name.
type slot struct{ list, name string }

// wanted returns the slots that must be filled.
func (h Handlers) wanted() (all []slot) {
	for _, w := range h.Want {
		all = append(all, slot{w.List, h.Known(object(w.Keys))})
	}
	return all
}

// wants reports whether a list must contain one of our handlers.
func (h Handlers) wants(list string) bool {
	return slices.ContainsFunc(h.Want, func(w Handler) bool { return w.List == list })
}

// Held lists the handlers in a file that are ours.
type Held struct {
	Wanted int      // the number of wanted handlers in the file
	All    []string // the names of all our handlers in the file, as Handlers.Known returns them
}

// GetHandlers finds our handlers in data. It returns the same errors as Format.Get.
func (f JSON) GetHandlers(data []byte, h Handlers) (held Held, err error) {
	d, err := f.parse(data)
	if err != nil {
		return held, err
	}
	root, err := d.decode()
	if err != nil {
		return held, err
	}
	there := map[slot]bool{}
	err = h.keepSlots(d, root, func(s slot) (stays bool) {
		held.All = append(held.All, s.name)
		there[s] = true
		return true
	})
	for _, s := range h.wanted() {
		if there[s] {
			held.Wanted++
		}
	}
	return held, err
}

// PutHandlers returns data with each wanted handler exactly once. It leaves existing handlers as they are, adds new
// handlers at the end of their lists, and removes handlers of ours that are not wanted. It returns the same errors as
// Format.Put.
func (f JSON) PutHandlers(data []byte, h Handlers) ([]byte, error) {
	return f.edit(data, func(d *document, root map[string]any) error {
		d.group = groupList
		d.follow(append(names(h.Root), h.Path...)...)
		for name, value := range object(h.Root) {
			if _, err := d.find(name); err != nil {
				return err
			}
			if root[name] == nil {
				root[name] = value
			}
		}
		want, there := h.wanted(), map[slot]bool{}
		err := h.keepSlots(d, root, func(s slot) (stays bool) {
			stays = !there[s] && slices.Contains(want, s)
			there[s] = true
			return stays
		})
		lists, ok := within(root, h.Path)
		if err != nil || !ok {
			return err
		}
		var order []string
		for i, s := range want {
			w := h.Want[i]
			order = append(order, w.List)
			if d.follow(names(w.Keys)...); !w.Flat {
				d.follow(append(names(w.Group), groupList)...)
			}
			if there[s] {
				continue
			}
			there[s] = true
			list, _ := lists[w.List].([]any)
			lists[w.List] = append(list, any(w.element()))
		}
		d.follow(order...)
		return nil
	})
}

// CutHandlers returns data without our handlers, and without groups, lists and parents that would become empty. It
// returns the same errors as Format.Put.
func (f JSON) CutHandlers(data []byte, h Handlers) ([]byte, error) {
	h.Want = nil
	return f.edit(data, func(d *document, root map[string]any) error {
		d.group = groupList
		return h.keepSlots(d, root, func(slot) (stays bool) { return false })
	})
}

// keepSlots calls visit for each of our handlers, and replaces a handler with gone{} if visit returns false. If a list
// that must contain one of our handlers has an unexpected form, keepSlots returns an error. It ignores the form of
// other lists.
func (h Handlers) keepSlots(d *document, root map[string]any, visit func(slot) (stays bool)) error {
	if _, err := d.find(h.Path...); err != nil {
		return err
	}
	lists, ok := descend(root, h.Path).(map[string]any)
	if !ok && descend(root, h.Path) != nil {
		return d.unlike("a JSON object", h.Path...)
	}
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		at := append(slices.Clone(h.Path), name)
		list, ok := lists[name].([]any)
		if !ok && h.wants(name) {
			return d.unlike("a JSON array", at...)
		}
		for i := range list {
			if err := h.element(d, list, i, slot{list: name}, append(at, strconv.Itoa(i)), visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// element visits the handlers in element i of list. The element is at path, and is either a handler or a group of
// handlers.
func (h Handlers) element(d *document, list []any, i int, s slot, path []string, visit func(slot) (stays bool)) error {
	m, ok := list[i].(map[string]any)
	if !ok && h.wants(s.list) {
		return d.unlike("a JSON object", path...)
	}
	if s.name = h.Known(m); s.name != "" {
		if !visit(s) {
			list[i] = gone{}
		}
		return nil
	}
	handlers, isGroup := m[groupList].([]any)
	if !isGroup && m[groupList] != nil && h.wants(s.list) {
		return d.unlike("a JSON array", append(path, groupList)...)
	}
	for j := range handlers {
		handler, _ := handlers[j].(map[string]any)
		if s.name = h.Known(handler); s.name != "" && !visit(s) {
			handlers[j] = gone{}
		}
	}
	return nil
}

// unlike returns a SyntaxError with the line of the value at path, or nil if there is no such value. It returns any
// error from find. The argument what is the expected kind of value, such as "a JSON array".
func (d *document) unlike(what string, path ...string) error {
	v, err := d.find(path...)
	if err != nil || v == nil {
		return err
	}
	return &SyntaxError{Line: line(d.text, v.StartOffset), Why: "expected " + what}
}
