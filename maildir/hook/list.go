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

// ListFile is the file of the hooks in the store's folder.
const ListFile = "hooks.json"

// List is the store's hooks.json. Every method returns refusal.ErrUnavailable while the file cannot
// be used, and then knows of no hook. Safe for concurrent use.
type List struct {
	file *registry.File[content]
}

// content is what hooks.json holds.
type content struct {
	all    []Hook
	filled bool // some fields were missing in the file and have been filled in
}

// NewList is the list of the store at root. It reads nothing yet.
func NewList(root string) *List {
	file := registry.JSONFile{
		Name: ListFile,
		Wrong: refusal.Unavailable("The store's hooks.json is {why}: put the right file there, or remove this one; until then no " +
			"hook runs."),
		Damaged: refusal.Unavailable("The store's hooks.json is damaged ({why}): mend it; until then no hook runs."),
		TooLarge: refusal.TooLarge("The store's hooks.json would have {count} bytes, over the limit of {limit}: delete hooks that are " +
			"no longer needed."),
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

// fill fills in what a person may leave out.
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

// Load returns the hooks; the caller may change the list, but not the commands.
func (l *List) Load() ([]Hook, error) {
	c, err := l.file.Load()
	if err != nil {
		return nil, err
	}
	return slices.Clone(c.all), nil
}

// Select lists the hooks that keep accepts, by mailbox and name.
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

// change replaces the hooks by what edit makes of them, durably; not where they are the same then.
// edit may change the list that it is given.
func (l *List) change(edit func([]Hook) ([]Hook, error)) error {
	return l.file.Change(func(c content) (content, error) {
		all, err := edit(slices.Clone(c.all))
		return content{all: all}, err
	})
}

// Create adds a hook that CheckDraft accepts, and returns it as it stands; the same again changes
// nothing. A hook without a name gets one that is derived from the rest. owned reports which hooks
// have the owner of the new one: no two of them share a name. Errors: ErrExist where another hook
// of the owner has the name, ErrTooLarge where the list may grow no further.
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
				What:  refusal.TooLarge("The mailbox {name} has {limit} hooks, which is the limit: delete one that is no longer needed."),
				Name:  h.Mailbox,
				Limit: maxHooks,
			}
		}
		return append(all, h), nil
	})
	return &h, err
}

// Delete removes the hook of that name among those that mayDelete accepts. Where several are, it is
// the first that prefer accepts. Errors: ErrNotFound; ErrConflict where prefer accepts none of
// several.
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
			What:   refusal.Conflict("{count} hooks of several users have the name {name}: take the right one out of hooks.json."),
			Name:   name,
			Counts: []int{len(found)},
		}
	})
}

// DeleteMailbox removes the hooks of a mailbox that is no more.
func (l *List) DeleteMailbox(project, mailbox string) error {
	return l.change(func(all []Hook) ([]Hook, error) {
		return slices.DeleteFunc(all, func(h Hook) bool { return h.Project == project && h.Mailbox == mailbox }), nil
	})
}

// Present is where the clock and the feed of changes stand.
type Present struct {
	Now    time.Time
	Opened time.Time // when the server opened the store: before everything that it sends
	Change int64     // the newest change
}

// Redate has hooks count from the present that were made later than it: the clock was set back
// since, or the index was lost. Otherwise they would not run until that time comes again. A hook
// that is later by the clock counts from the opening of the store. Redate asks for the present
// while nobody else changes the list: a hook made meanwhile would look like one from the future. It
// returns the hooks that were later by the clock, as they were.
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

// OldestMark is the change behind which there may be some for a hook; last where there is no hook
// with an older one.
func (l *List) OldestMark(last int64) (int64, error) {
	all, err := l.Load()
	for i := range all {
		last = min(last, all[i].After)
	}
	return last, err
}
