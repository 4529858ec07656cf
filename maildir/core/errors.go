package core

import "mailtree/maildir/refusal"

// Error is a refusal as data. refusal.Words turn it into a sentence.
type Error = refusal.Error

// The kinds of refusals. Every error that a verb returns wraps exactly one of them, or is an internal
// fault. A verb whose comment names no error returns only faults: those of the index, the end of its
// context, and ErrUnavailable for the machine's.
var (
	ErrNotFound    = refusal.ErrNotFound
	ErrExist       = refusal.ErrExist
	ErrInvalid     = refusal.ErrInvalid
	ErrConflict    = refusal.ErrConflict
	ErrDenied      = refusal.ErrDenied
	ErrTooLarge    = refusal.ErrTooLarge
	ErrUnavailable = refusal.ErrUnavailable
)
