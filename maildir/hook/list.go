package hook

import (
	"cmp"
	"path/filepath"
	"slices"
	"time"

	"mailtree/maildir/refusal"
	"mailtree/maildir/registry"
	"mailtree/maildir/tree"
)

// ListFile is the name of the file in the store's folder that lists the hooks.
const ListFile = "hooks.json"

// List is the store's list of hooks in hooks.json. While the file is unusable, every method returns
// refusal.ErrUnavailable and no hook runs. List is safe for concurrent use.
type List struct {
	file *registry.File[content]
}

type content struct {
	all    []Hook
	filled bool // fields missing from the file have been filled in
}

// NewList returns the list for the store at root. It does not read the file yet.
func NewList(root string) *List {
	file := registry.JSONFile{
		Name: ListFile,
		Wrong: refusal.Unavailable("The store's hooks.json is {why}. Replace it with a valid file, or remove it; " +
			"until then, no hooks run."),
		Damaged: refusal.Unavailable("The store's hooks.json is damaged ({why}). Fix it; until then, no hooks run."),
		TooLarge: refusal.TooLarge("The store's hooks.json would be {count} bytes, over the limit of {limit}: " +
			"delete hooks that you no longer need."),
	}
	return &List{registry.New(filepath.Join(root, ListFile), registry.Format[content]{
		Limit: registry.MaxJSON,
		Parse: func(data []byte, stamp tree.FileStat) (c content, err error) {
			err = file.Decode(data, &c.all)
			c.fill(stamp)
			return c, err
		},
		Print:  func(c content) ([]byte, error) { return file.Encode(c.all) },
		Refuse: file.Refuse,
	})}
}

// fill sets the fields that the user omitted.
func (c *content) fill(stamp tree.FileStat) {
	for i := range c.all {
		h := &c.all[i]
		if h.Created.IsZero() {
			h.Created, c.filled = time.Unix(0, stamp.MTime).UTC().Truncate(time.Microsecond), true
		}
		if h.Timeout == 0 {
			h.Timeout, c.filled = DefaultTimeout, true
		}
	}
}

// Load returns the hooks. The caller may change the slice but not the commands.
func (l *List) Load() ([]Hook, error) {
	c, err := l.file.Load()
	if err != nil {
		return nil, err
	}
	return slices.Clone(c.all), nil
}

// Select returns the hooks that keep accepts, sorted by mailbox and name.
func (l *List) Select(keep func(h *Hook) bool) ([]Hook, error) {
	all, err := l.Load()
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(h Hook) bool { return !keep(&h) })
	slices.SortFunc(all, func(a, b Hook) int {
		return cmp.Or(cmp.Compare(a.Mailbox, b.Mailbox), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

// change durably replaces the hooks with the result of edit. If edit changes nothing, change writes nothing. edit may
// modify the slice that it receives.
func (l *List) change(edit func([]Hook) ([]Hook, error)) error {
	return l.file.Change(func(c content) (content, error) {
		all, err := edit(slices.Clone(c.all))
		return content{all: all}, err
	})
}

// Create adds a hook that CheckDraft accepts, and returns it as stored. If the same hook already exists, Create changes
// nothing. A hook without a name gets a derived name. The caller passes owned, which reports whether a hook belongs to
// the new hook's owner. The names of an owner's hooks must be unique. Create returns ErrExist if another of the owner's
// hooks has the name, and ErrTooLarge if the list is full.
func (l *List) Create(h Hook, owned func(h *Hook) bool) (*Hook, error) {
	named := h.Name != ""
	err := l.change(func(all []Hook) ([]Hook, error) {
		own := slices.DeleteFunc(slices.Clone(all), func(o Hook) bool { return !owned(&o) })
		if !named {
			h.Name = h.freeName(own)
		}
		if i := slices.IndexFunc(own, func(o Hook) bool { return o.Name == h.Name }); i >= 0 {
			old := own[i]
			if old.Mailbox != h.Mailbox || !old.same(&h) {
				return nil, h.taken(&old, named)
			}
			h = old
			return all, nil
		}
		mine := 0
		for i := range own {
			if own[i].Mailbox == h.Mailbox {
				mine++
			}
		}
		if mine >= maxHooks {
			return nil, &refusal.Error{
				What: refusal.TooLarge("The mailbox {name} has {limit} hooks, which is the limit: delete a hook " +
					"that you no longer need."),
				Name:  h.Mailbox,
				Limit: maxHooks,
			}
		}
		return append(all, h), nil
	})
	return &h, err
}

// Delete deletes the hook with the given name, considering only hooks that mayDelete accepts. If there are several, it
// deletes the first one that prefer accepts. It returns ErrNotFound if there is no such hook, and ErrConflict if there
// are several such hooks and prefer accepts none of them.
func (l *List) Delete(name string, mayDelete, prefer func(h *Hook) bool) error {
	return l.change(func(all []Hook) ([]Hook, error) {
		var found, preferred []int
		for i := range all {
			if h := &all[i]; h.Name == name && mayDelete(h) {
				found = append(found, i)
				if prefer(h) {
					preferred = append(preferred, i)
				}
			}
		}
		if len(preferred) > 0 {
			found = preferred[:1]
		}
		switch len(found) {
		case 0:
			return nil, &refusal.Error{What: refusal.UnknownHook, Field: refusal.HookName, Name: name}
		case 1:
			return slices.Delete(all, found[0], found[0]+1), nil
		}
		return nil, &refusal.Error{
			What: refusal.Conflict("Several users have a hook named {name} ({count} in total): remove the one " +
				"that you mean from the store's hooks.json."),
			Name:   name,
			Counts: []int{len(found)},
		}
	})
}

// DeleteMailbox deletes the hooks of a deleted mailbox.
func (l *List) DeleteMailbox(project, mailbox string) error {
	return l.change(func(all []Hook) ([]Hook, error) {
		return slices.DeleteFunc(all, func(h Hook) bool { return h.Project == project && h.Mailbox == mailbox }), nil
	})
}

// Move moves a mailbox's hooks to another mailbox. The moved hooks do not run for anything older than now.
func (l *List) Move(project, from, to string, now time.Time) error {
	return l.change(func(all []Hook) ([]Hook, error) {
		for i := range all {
			if h := &all[i]; h.Project == project && h.Mailbox == from {
				h.Mailbox, h.Created = to, now
			}
		}
		return all, nil
	})
}

// Restart prevents all hooks from running for anything older than now, regardless of their change numbers.
func (l *List) Restart(now time.Time) error {
	return l.change(func(all []Hook) ([]Hook, error) {
		for i := range all {
			all[i].Created, all[i].After = now, 0
		}
		return all, nil
	})
}

// Present is the current state of the clock and of the feed of changes.
type Present struct {
	Now    time.Time
	Opened time.Time // when the server opened the store, before it sent anything
	Change int64     // number of the newest change
}

// Redate resets hooks whose creation time or change number is in the future. This happens after the clock is set back
// or the index is lost. Without the reset, they would not run until the clock or the change number catches up.
//
// If a hook's creation time is in the future, Redate sets it to the time at which the store was opened. Redate
// returns these hooks as they were before the reset. Redate calls ask while the list is locked, because a hook
// created after ask would seem to come from the future.
func (l *List) Redate(ask func() (Present, error)) (future []Hook, err error) {
	err = l.change(func(all []Hook) ([]Hook, error) {
		at, err := ask()
		if err != nil {
			return nil, err
		}
		for i := range all {
			if all[i].Created.After(at.Now) {
				future = append(future, all[i])
				all[i].Created = at.Opened
			}
			all[i].After = min(all[i].After, at.Change)
		}
		return all, nil
	})
	return future, err
}

// OldestMark returns the smallest After of any hook, or last if that is smaller. Only changes with a higher number
// may concern a hook.
func (l *List) OldestMark(last int64) (int64, error) {
	all, err := l.Load()
	for i := range all {
		last = min(last, all[i].After)
	}
	return last, err
}
