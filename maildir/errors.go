package maildir

import "mailtree/maildir/refusal"

// Error is a refusal: what was wrong, as data. refusal.Words make a sentence of it.
type Error = refusal.Error

// The closed set of kinds. Every error that a verb returns wraps exactly one of them, or is an
// internal fault. A verb whose comment names no error returns faults alone: the index's, the end of
// its context, and ErrUnavailable for the machine's.
var (
	ErrNotFound    = refusal.ErrNotFound
	ErrExist       = refusal.ErrExist
	ErrInvalid     = refusal.ErrInvalid
	ErrConflict    = refusal.ErrConflict
	ErrDenied      = refusal.ErrDenied
	ErrTooLarge    = refusal.ErrTooLarge
	ErrUnavailable = refusal.ErrUnavailable
)
