package hook

import (
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
)

// Hook is a command that runs when a message comes into a mailbox or was sent from it.
type Hook struct {
	Project         string   `json:"project"` // slug
	Mailbox         string   `json:"mailbox"`
	Name            string   `json:"name"`
	Event           string   `json:"event"` // OnReceive or AfterSend
	Cmd             []string `json:"cmd"`   // run as it stands, without a shell; the first is an absolute path
	Timeout         int      `json:"timeout_secs"`
	FireOnUntrusted bool     `json:"fire_on_untrusted"`

	// Owner is whose the mailbox was: the hook does not run for another owner. Where a person wrote
	// the hook and gave none, it runs for whoever owns the mailbox.
	Owner *int `json:"owner_uid,omitempty"`

	// Created is when the hook was made: it runs only for mail that was sent later. Where a person
	// gave none, it is when the file was last changed.
	Created time.Time `json:"created"`

	// After is the newest change when the hook was made: it runs only for later ones. 0: Created
	// decides.
	After int64 `json:"after_change,omitempty"`
}

// Events that hooks run for.
const (
	OnReceive = "on_receive" // a copy appeared in the mailbox's inbox
	AfterSend = "after_send" // a copy appeared in its outbox
)

// Bounds of a hook.
const (
	DefaultTimeout = 60  // seconds
	maxTimeout     = 600 // seconds
	maxCmd         = 32 << 10
	maxHooks       = 64  // of one mailbox
	maxName        = 128 // bytes
)

// EventOf is the event that a new file of that kind is; "" for none.
func EventOf(k format.Kind) string {
	switch k {
	case format.KindInbox:
		return OnReceive
	case format.KindOutbox:
		return AfterSend
	}
	return ""
}

// CheckDraft refuses what cannot be a hook. It may still be without a name.
func (h Hook) CheckDraft() error {
	if h.Name == "" {
		h.Name = h.derivedName()
	}
	return h.check()
}

// check is CheckDraft for a hook that has its name. See docs/email.md, "Texts".
func (h *Hook) check() error {
	switch cmd := strings.Join(h.Cmd, "\x00"); {
	case h.Event != OnReceive && h.Event != AfterSend:
		return &refusal.Error{
			What:  refusal.Invalid("{field} {name} is none of on_receive, after_send: use one of them."),
			Field: refusal.HookEvent,
			Name:  h.Event,
		}
	case len(h.Cmd) == 0 || !filepath.IsAbs(h.Cmd[0]):
		return &refusal.Error{
			What:  refusal.HookProgramRelative,
			Field: refusal.HookCommand,
			Name:  strings.Join(h.Cmd[:min(1, len(h.Cmd))], ""),
		}
	case strings.Count(cmd, "\x00") != len(h.Cmd)-1 || !utf8.ValidString(cmd):
		return &refusal.Error{What: refusal.Invalid("{field} holds a NUL character or invalid UTF-8: send text."), Field: refusal.HookCommand}
	case len(cmd) > maxCmd:
		return &refusal.Error{
			What:   refusal.TooLarge("{field} has {count} bytes, over the limit of {limit}: put it into a script."),
			Field:  refusal.HookCommand,
			Counts: []int{len(cmd)},
			Limit:  maxCmd,
		}
	case h.FireOnUntrusted && h.Event != OnReceive:
		return &refusal.Error{What: refusal.HookTrustMisplaced, Field: refusal.HookTrust}
	case h.Timeout < 1 || h.Timeout > maxTimeout:
		return &refusal.Error{
			What:   refusal.Invalid("{field} is {count}: it must be from 1 to {limit}."),
			Field:  refusal.HookTimeout,
			Counts: []int{h.Timeout},
			Limit:  maxTimeout,
		}
	case len(h.Name) > maxName || !format.PlainName(h.Name):
		return &refusal.Error{
			What: refusal.Invalid("The hook name {name} {arg} cannot be used: letters, digits, '.', '_' and '-', at most {limit}, the " +
				"first a letter or digit."),
			Field: refusal.HookName,
			Name:  h.Name,
			Limit: maxName,
		}
	}
	return nil
}

// derivedName is the name of a hook that was given none: the same for the same event, command and
// flag.
func (h *Hook) derivedName() string { return hashName(h.Event, h.Cmd, h.FireOnUntrusted) }

// freeName is the derived name, or where a hook on another mailbox has that, one that is derived
// from the mailbox too. A hook that is on the mailbox under either name keeps it, whatever became
// of the hook on the other mailbox. own are all hooks of the owner.
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
		panic(err) // only for other types
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6])
}

// taken refuses a hook because another has its name.
func (h *Hook) taken(old *Hook, named bool) error {
	if !named && old.Mailbox == h.Mailbox && old.derivedName() == h.derivedName() {
		return &refusal.Error{What: refusal.HookExists, Name: old.Name, Counts: []int{old.Timeout}}
	}
	return &refusal.Error{
		What: refusal.Exists("The hook name {name} {arg} is taken by another hook, on mailbox {other}: pass another name, or delete " +
			"that hook first."),
		Field: refusal.HookName,
		Name:  h.Name,
		Other: old.Mailbox,
	}
}

// same reports whether two hooks do the same.
func (h *Hook) same(o *Hook) bool {
	return h.Event == o.Event && slices.Equal(h.Cmd, o.Cmd) && h.Timeout == o.Timeout && h.FireOnUntrusted == o.FireOnUntrusted
}

// Key names the hook in hooks.log.
func (h *Hook) Key() string { return h.Project + "/" + h.Mailbox + "/" + h.Name }
