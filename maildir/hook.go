package maildir

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/registry"
	"mailtree/maildir/tree"
)

// Hook is a command that runs when a message comes into a mailbox or was sent from it. Hooks stand in the store's
// hooks.json, never in a tree that a `git pull` could change.
// See docs/email.md, "Hooks".
type Hook struct {
	Project         string    `json:"project"` // slug
	Mailbox         string    `json:"mailbox"`
	Name            string    `json:"name"`
	Event           string    `json:"event"` // OnReceive or AfterSend
	Cmd             []string  `json:"cmd"`   // run as it stands, without a shell; the first is an absolute path
	Timeout         int       `json:"timeout_secs"`
	FireOnUntrusted bool      `json:"fire_on_untrusted"`
	Owner           *int      `json:"owner_uid,omitempty"`    // whose the mailbox was; the hook does not run for another owner. Absent where a person wrote it: whose it is
	Created         time.Time `json:"created"`                // only mail that was sent later is for it; absent: since the file was last changed
	After           int64     `json:"after_change,omitempty"` // the newest change then: only later ones are for it. Absent: those since Created
}

// Events that hooks run for.
const (
	OnReceive = "on_receive" // a copy appeared in the mailbox's inbox
	AfterSend = "after_send" // a copy appeared in its outbox
)

// Bounds of a hook.
const (
	DefaultHookTimeout = 60  // seconds
	maxHookTimeout     = 600 // seconds
	maxHookCmd         = 32 << 10
	maxHooks           = 64  // of one mailbox
	maxHookName        = 128 // bytes
)

// CreateHook adds a hook to the mailbox; h says Event, Cmd, Name ("" for one derived from the rest), Timeout and
// FireOnUntrusted. The same again changes nothing. It returns the hook as it stands.
// Errors: ErrInvalid, ErrExist when the owner has another hook of that name, ErrUnavailable where the server cannot run
// commands as the mailbox's owner.
func (b *Box) CreateHook(ctx context.Context, h Hook) (*Hook, error) {
	named := h.Name != ""
	if !named {
		h.Name = h.derivedName()
	}
	if err := h.check(); err != nil {
		return nil, err
	}
	if !b.p.store.runsAs(b.Owner) {
		return nil, &Error{What: refusal.HookNotRunnable, Counts: []int{b.Owner, b.p.store.cfg.User()}}
	}
	last, err := b.p.store.LastChange(ctx)
	if err != nil {
		return nil, err
	}
	h.Project, h.Mailbox, h.Owner, h.Created, h.After = b.p.slug, b.Name, &b.Owner, b.p.store.stamp.time(), last
	owners, err := b.p.store.owners.loadOwners()
	if err != nil {
		return nil, err
	}
	err = b.p.store.hooks.change(func(all []Hook) ([]Hook, error) {
		own := slices.DeleteFunc(slices.Clone(all), func(o Hook) bool {
			return o.Project != h.Project || b.p.owner(owners, o.Mailbox) != b.Owner
		})
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
			return nil, &Error{What: refusal.TooManyHooks, Name: h.Mailbox, Limit: maxHooks}
		}
		return append(all, h), nil
	})
	return &h, err
}

// check refuses what cannot be a hook. See docs/email.md, "Texts".
func (h *Hook) check() error {
	switch cmd := strings.Join(h.Cmd, "\x00"); {
	case h.Event != OnReceive && h.Event != AfterSend:
		return &Error{What: refusal.HookEventUnknown, Field: refusal.HookEvent, Name: h.Event}
	case len(h.Cmd) == 0 || !filepath.IsAbs(h.Cmd[0]):
		return &Error{What: refusal.HookProgramRelative, Field: refusal.HookCommand, Name: strings.Join(h.Cmd[:min(1, len(h.Cmd))], "")}
	case strings.Count(cmd, "\x00") != len(h.Cmd)-1 || !utf8.ValidString(cmd):
		return &Error{What: refusal.HookCommandUnusable, Field: refusal.HookCommand}
	case len(cmd) > maxHookCmd:
		return over(refusal.HookCommandTooLong, refusal.HookCommand, len(cmd), maxHookCmd)
	case h.FireOnUntrusted && h.Event != OnReceive:
		return &Error{What: refusal.HookTrustMisplaced, Field: refusal.HookTrust}
	case h.Timeout < 1 || h.Timeout > maxHookTimeout:
		return &Error{
			What:   refusal.HookTimeoutOutOfRange,
			Field:  refusal.HookTimeout,
			Counts: []int{h.Timeout},
			Limit:  maxHookTimeout,
		}
	case len(h.Name) > maxHookName || !format.PlainName(h.Name):
		return &Error{
			What:  refusal.HookNameUnusable,
			Field: refusal.HookName,
			Name:  h.Name,
			Limit: maxHookName,
		}
	}
	return nil
}

// derivedName is the name of a hook that was given none: the same for the same event, command and flag.
func (h *Hook) derivedName() string { return hashName(h.Event, h.Cmd, h.FireOnUntrusted) }

// freeName is the derived name, or where a hook on another mailbox has it one that is derived from the mailbox too. A hook that
// is on the mailbox under either keeps it, whatever became of the other mailbox's. own are all hooks of the owner.
func (h *Hook) freeName(own []Hook) string {
	short, long := h.derivedName(), hashName(h.Mailbox, h.Event, h.Cmd, h.FireOnUntrusted)
	name := short
	for i := range own {
		switch o := &own[i]; {
		case o.Mailbox == h.Mailbox && (o.Name == short || o.Name == long):
			return o.Name
		case o.Name == short:
			name = long
		}
	}
	return name
}

// hashName is 12 hex digits of SHA-256 over strings, lists of them and flags.
func hashName(of ...any) string {
	b, err := json.Marshal(of)
	if err != nil {
		panic(err) // nothing else comes here
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6])
}

// taken refuses a hook because another has its name.
func (h *Hook) taken(old *Hook, named bool) error {
	if !named && old.Mailbox == h.Mailbox && old.derivedName() == h.derivedName() {
		return &Error{What: refusal.HookExists, Name: old.Name, Counts: []int{old.Timeout}}
	}
	return &Error{
		What:  refusal.HookNameTaken,
		Field: refusal.HookName,
		Name:  h.Name,
		Other: old.Mailbox,
	}
}

// same reports whether two hooks do the same.
func (h *Hook) same(o *Hook) bool {
	return h.Event == o.Event && slices.Equal(h.Cmd, o.Cmd) && h.Timeout == o.Timeout && h.FireOnUntrusted == o.FireOnUntrusted
}

// follows reports whether a change came after the hook was made. The clock may have been set back since; the feed goes on.
func (h *Hook) follows(c *Change) bool {
	if h.After > 0 {
		return c.Seq > h.After
	}
	return !c.At.Before(h.Created)
}

// outdates reports whether the hook was made after the message was sent. The dates do not tell
// while the hook's is yet to come: then the clock was set back since it was made, and mail that
// came later has earlier dates.
func (h *Hook) outdates(m *format.Message, now time.Time) bool {
	return m.Created.Before(h.Created) && !h.Created.After(now)
}

// key names a hook in hooks.log.
func (h *Hook) key() string { return h.Project + "/" + h.Mailbox + "/" + h.Name }

// runsAs reports whether this server can run commands as that user.
func (s *Store) runsAs(uid int) bool { return uid >= 0 && (s.cfg.User() == 0 || s.cfg.User() == uid) }

// Hooks lists the hooks on one mailbox, or with "" on all that the caller owns, by mailbox and name. Errors: as Mailbox.
func (p *Project) Hooks(ctx context.Context, mailbox string, by Caller) ([]Hook, error) {
	if mailbox != "" {
		if _, err := p.Mailbox(ctx, mailbox, by); err != nil {
			return nil, err
		}
	}
	owners, err := p.store.owners.loadOwners()
	if err != nil {
		return nil, err
	}
	all, err := p.store.hooks.loadHooks()
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(h Hook) bool {
		return h.Project != p.slug || mailbox != "" && h.Mailbox != mailbox || !by.owns(p.owner(owners, h.Mailbox))
	})
	slices.SortFunc(all, func(a, b Hook) int { return cmp.Or(cmp.Compare(a.Mailbox, b.Mailbox), cmp.Compare(a.Name, b.Name)) })
	return all, nil
}

// DeleteHook removes a hook of the caller's by its name; a run under way goes on. Errors: ErrNotFound, also for another's
// hook; ErrConflict where root means one of several users' hooks and has none of that name.
func (p *Project) DeleteHook(_ context.Context, name string, by Caller) error {
	owners, err := p.store.owners.loadOwners()
	if err != nil {
		return err
	}
	return p.store.hooks.change(func(all []Hook) ([]Hook, error) {
		var found, own []int
		for i, h := range all {
			owner := p.owner(owners, h.Mailbox)
			if h.Project == p.slug && h.Name == name && by.owns(owner) {
				found = append(found, i)
				if owner == by.UID {
					own = append(own, i)
				}
			}
		}
		if len(own) > 0 {
			found = own[:1]
		}
		switch len(found) {
		case 0:
			return nil, &Error{What: refusal.UnknownHook, Field: refusal.HookName, Name: name}
		case 1:
			return slices.Delete(all, found[0], found[0]+1), nil
		}
		return nil, &Error{What: refusal.HookAmbiguous, Name: name, Counts: []int{len(found)}}
	})
}

// dropHooks removes the hooks of a mailbox that is no more.
func (p *Project) dropHooks(mailbox string) error {
	return p.store.hooks.change(func(all []Hook) ([]Hook, error) {
		return slices.DeleteFunc(all, func(h Hook) bool { return h.Project == p.slug && h.Mailbox == mailbox }), nil
	})
}

// SettleHooks has hooks count from the opening of the store that, by the clock or by the feed, are of later: the clock was
// set back since, or the index lost. They were there then, and would else not run until that time comes again.
// Errors: ErrUnavailable.
func (s *Store) SettleHooks(ctx context.Context) error {
	return s.hooks.change(func(all []Hook) ([]Hook, error) {
		// Only now that nobody else adds one: a hook made meanwhile would look like one of later.
		last, err := s.LastChange(ctx)
		if err != nil {
			return nil, err
		}
		now := s.stamp.time()
		for i := range all {
			if all[i].Created.After(now) {
				s.cfg.Log.Warn("a hook is from a time that is yet to come: from now on it counts from the start of this server", "hook", all[i].key(), "created", all[i].Created)
				all[i].Created = s.opened
			}
			all[i].After = min(all[i].After, last)
		}
		return all, nil
	})
}

// HooksFrom is the mark behind which changes may be for a hook: last, the newest, where there is none. Errors: ErrUnavailable.
func (s *Store) HooksFrom(last int64) (int64, error) {
	all, err := s.hooks.loadHooks()
	for i := range all {
		last = min(last, all[i].After)
	}
	return last, err
}

const hooksFile = "hooks.json"

// hooks is the store's hooks.json: a list. A person may edit it while a server runs.
type hooks struct {
	file *registry.File[hookList]
}

// hookList is what hooks.json holds.
type hookList struct {
	all    []Hook
	filled bool // some fields were missing in the file and have been filled in
}

func newHooks(root string) hooks {
	file := registry.JSONFile{
		Name:     hooksFile,
		Wrong:    refusal.HooksFileWrong,
		Damaged:  refusal.HooksDamaged,
		TooLarge: refusal.HooksTooLarge,
	}
	return hooks{registry.New(filepath.Join(root, hooksFile), registry.Format[hookList]{
		Limit: registry.MaxJSON,
		Parse: func(data []byte, stamp tree.FileStat) (l hookList, err error) {
			err = file.Decode(data, &l.all)
			l.fill(stamp)
			return l, err
		},
		Print:  func(l hookList) ([]byte, error) { return file.Encode(l.all) },
		Refuse: file.Refuse,
	})}
}

// fill fills in what a person may leave out.
func (l *hookList) fill(stamp tree.FileStat) {
	for i := range l.all {
		h := &l.all[i]
		if h.Created.IsZero() {
			h.Created, l.filled = time.Unix(0, stamp.MTime).UTC().Truncate(time.Microsecond), true
		}
		if h.Timeout == 0 {
			h.Timeout, l.filled = DefaultHookTimeout, true
		}
	}
}

// loadHooks returns the hooks; the caller may change the list, but not the commands. Errors:
// ErrUnavailable; there is none then.
func (h *hooks) loadHooks() ([]Hook, error) {
	l, err := h.file.Load()
	if err != nil {
		return nil, err
	}
	return slices.Clone(l.all), nil
}

// settled is loadHooks, and writes down when hooks that a person wrote were made: else they would
// count as made whenever the file is changed. Where that cannot be written, the next call tries
// again.
func (h *hooks) settled() ([]Hook, error) {
	if l, err := h.file.Load(); err == nil && l.filled {
		_ = h.change(func(all []Hook) ([]Hook, error) { return all, nil })
	}
	return h.loadHooks()
}

// change replaces the hooks by what edit makes of them, durably; not where they are the same then.
// edit may change the list that it is given.
func (h *hooks) change(edit func([]Hook) ([]Hook, error)) error {
	return h.file.Change(func(l hookList) (hookList, error) {
		all, err := edit(slices.Clone(l.all))
		return hookList{all: all}, err
	})
}
