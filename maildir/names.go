package maildir

import (
	"context"

	"mailtree/maildir/access"
	"mailtree/maildir/agents"
	"mailtree/maildir/claims"
	"mailtree/maildir/core"
	"mailtree/maildir/holds"
	"mailtree/maildir/peers"
	"mailtree/maildir/post"
	"mailtree/maildir/refusal"
	"mailtree/maildir/sending"
	"mailtree/maildir/tree"
	"mailtree/maildir/waiting"
	"mailtree/maildir/wake"
)

// These types are part of this package's API, but are defined in packages below it.
type (
	Config  = core.Config
	Outside = core.Outside
	Caller  = core.Caller
	Error   = refusal.Error
	Stop    = claims.Stop
	Held    = holds.Held
	Holding = holds.Request

	Registration = agents.Registration
	Registered   = agents.Registered
	AgentInfo    = agents.AgentInfo
	AgentsQuery  = agents.AgentsQuery

	SessionKey   = wake.SessionKey
	SessionState = wake.SessionState
	SessionEvent = wake.SessionEvent
	Pane         = wake.Pane
	IdleSeat     = wake.IdleSeat
	IdleQuery    = wake.IdleQuery
	WakeStatus   = wake.WakeStatus
	Unwoken      = wake.Unwoken
	Prompt       = wake.Prompt

	SyncState = peers.SyncState

	Draft    = sending.Draft
	Variants = sending.Variants
	Sent     = sending.Sent
	Audience = sending.Audience

	Waits         = waiting.List
	WaitsQuery    = waiting.Query
	WaitGroup     = waiting.Group
	WaitingThread = waiting.Thread
	Dismissed     = waiting.Dismissed

	Incoming = post.Incoming

	View       = access.View
	Mailbox    = access.Mailbox
	UserBox    = access.Box
	RawMessage = access.RawMessage
	RawQuery   = access.RawQuery
)

// These values determine the recipients of a reply whose draft lists none. See package sending.
const (
	Everyone       = sending.Everyone
	EveryoneInside = sending.EveryoneInside
)

// ReservedMailbox reports whether a name is reserved for mail that does not belong to any mailbox.
func ReservedMailbox(name string) bool { return post.ReservedMailbox(name) }

// HasMailbox reports whether the address with the given local part has a mailbox in a store. The store's folder is
// root, and trees contains the store's trees. HasMailbox reads only owners.json and these trees. See Store.MailboxAt.
// It returns ErrUnavailable and errors from reading the trees.
func HasMailbox(ctx context.Context, root string, trees map[string]*tree.Tree, local string) (bool, error) {
	return post.HasMailbox(ctx, root, trees, local)
}

// PersonName returns the name of a user's agent: name without the characters that are illegal in agents' names.
func PersonName(name string) string { return agents.PersonName(name) }

// CheckPresence returns ErrInvalid unless status is exactly ready, work or offline.
func CheckPresence(status string) error { return agents.CheckPresence(status) }

// The kinds of refusals. Every error that a method returns either wraps exactly one of these errors or is an internal
// fault. A method whose comment mentions no error returns only index faults, the error of its context, and
// ErrUnavailable for machine faults.
var (
	ErrNotFound    = refusal.ErrNotFound
	ErrExist       = refusal.ErrExist
	ErrInvalid     = refusal.ErrInvalid
	ErrConflict    = refusal.ErrConflict
	ErrDenied      = refusal.ErrDenied
	ErrTooLarge    = refusal.ErrTooLarge
	ErrUnavailable = refusal.ErrUnavailable
)

// These names are documented in packages below this one.
const (
	Delivered         = access.Delivered
	Pending           = access.Pending
	Trusted           = core.Trusted
	Untrusted         = core.Untrusted
	Unproven          = core.Unproven
	NoOwner           = core.NoOwner
	DefaultProject    = core.DefaultProject
	PersonProgram     = core.PersonProgram
	QuietAfter        = agents.QuietAfter
	MaxGuestMailboxes = core.MaxGuestMailboxes
	MinTTL            = claims.MinTTL
	MaxTTL            = claims.MaxTTL
	OutsideRate       = post.OutsideRate
	SyncInterval      = peers.SyncInterval
	MailboxDepth      = sending.MailboxDepth
	MaxFanout         = sending.MaxFanout
	UnknownSender     = sending.UnknownSender
	OwedGroup         = waiting.OwedID
	HiddenGroup       = waiting.HiddenID
	UnwokenAfter      = wake.UnwokenAfter
	DefaultSettle     = wake.DefaultSettle
	BeginPatience     = wake.BeginPatience
)
