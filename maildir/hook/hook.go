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

// Hook is a command that runs when a message arrives in a mailbox or has been sent from it.
type Hook struct {
	Project         string   `json:"project"` // slug
	Mailbox         string   `json:"mailbox"`
	Name            string   `json:"name"`
	Event           string   `json:"event"` // OnReceive or AfterSend
	Cmd             []string `json:"cmd"`   // run without a shell; the first element is an absolute path
	Timeout         int      `json:"timeout_secs"`
	FireOnUntrusted bool     `json:"fire_on_untrusted"`

	// Owner is the uid of the mailbox's owner at the time the hook was created. The hook does not run for any other
	// owner. If a user added the hook without setting Owner, it runs for any owner.
	Owner *int `json:"owner_uid,omitempty"`

	// Created is when the hook was created. The hook runs only for mail sent later. If the user omitted Created, it is
	// set to the time when the file was last changed.
	Created time.Time `json:"created"`

	// After is the number of the newest change at the time the hook was created. The hook runs only for later changes.
	// If After is 0, Created is used instead.
	After int64 `json:"after_change,omitempty"`
}

// The events that hooks run for.
const (
	OnReceive = "on_receive" // a copy appeared in the mailbox's inbox
	AfterSend = "after_send" // a copy appeared in the mailbox's outbox
)

// These are the limits for hooks.
const (
	DefaultTimeout = 60  // seconds
	maxTimeout     = 600 // seconds
	maxCmd         = 32 << 10
	maxHooks       = 64  // per mailbox
	maxName        = 128 // bytes
)

// EventOf returns the event for a new file of kind k, or "" if there is none.
func EventOf(k format.Kind) string {
	switch k {
	case format.KindInbox:
		return OnReceive
	case format.KindOutbox:
		return AfterSend
	}
	return ""
}

// CheckDraft returns an error if the hook is invalid. A missing name is allowed.
func (h Hook) CheckDraft() error {
	if h.Name == "" {
		h.Name = h.derivedName()
	}
	return h.check()
}

// check is like CheckDraft, but for a hook that has a name. See docs/reference/email.md, "Wording of refusals".
func (h *Hook) check() error {
	switch cmd := strings.Join(h.Cmd, "\x00"); {
	case h.Event != OnReceive && h.Event != AfterSend:
		return &refusal.Error{
			What:  refusal.Invalid("{field} {name} is neither on_receive nor after_send."),
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
		return &refusal.Error{What: refusal.Invalid("{field} contains a NUL character or invalid UTF-8: send " +
			"text."), Field: refusal.HookCommand}
	case len(cmd) > maxCmd:
		return &refusal.Error{
			What: refusal.TooLarge("{field} is {count} bytes long, over the limit of {limit}: put the command into a " +
				"script."),
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
			What: refusal.Invalid("The hook name {name} {arg} cannot be used: use at most {limit} letters, " +
				"digits, '.', '_' and '-', beginning with a letter or digit."),
			Field: refusal.HookName,
			Name:  h.Name,
			Limit: maxName,
		}
	}
	return nil
}

// derivedName returns the name for a hook that was created without one. Hooks with the same event, command and flag get
// the same derived name.
func (h *Hook) derivedName() string { return hashName(h.Event, h.Cmd, h.FireOnUntrusted) }

// freeName returns a name for a hook that was created without one. This is the derived name or, if a hook on another
// mailbox has that name, a name that is also derived from the mailbox. If a hook on this mailbox already has one of
// these names, freeName returns that hook's name. own contains all of the owner's hooks.
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

// hashName returns the first 12 hex digits of a SHA-256 over strings, lists of strings and flags.
func hashName(of ...any) string {
	b, err := json.Marshal(of)
	if err != nil {
		panic(err) // happens only for unsupported types
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6])
}

// taken returns the error for a new hook whose name already belongs to the hook old.
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

// same reports whether two hooks do the same thing.
func (h *Hook) same(o *Hook) bool {
	return h.Event == o.Event && slices.Equal(h.Cmd, o.Cmd) && h.Timeout == o.Timeout && h.FireOnUntrusted == o.FireOnUntrusted
}

// Key returns the hook's name in the log.
func (h *Hook) Key() string { return h.Project + "/" + h.Mailbox + "/" + h.Name }
