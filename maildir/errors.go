package maildir

import (
	"errors"
	"fmt"
)

// The closed set of error kinds. Every error that a verb returns wraps exactly one of them, or is an
// internal fault. errors.Is tells which; Code gives the name that goes over the wire (Spec: 8).
var (
	ErrNotFound    = errors.New("not found")
	ErrExist       = errors.New("already exists")
	ErrInvalid     = errors.New("invalid")
	ErrConflict    = errors.New("conflict")
	ErrDenied      = errors.New("denied")
	ErrTooLarge    = errors.New("too large")
	ErrUnavailable = errors.New("unavailable")
)

// Error is a refusal: a sentence for the person or model that asked, saying what was wrong, with the
// offending value, and what to do next. It never holds SQL, a stack or a path outside the store.
type Error struct {
	Kind error    // one of the sentinels above
	Text string   // the whole sentence
	Near []string // names close to the one that was not found, nearest first; may be empty
	Err  error    // the cause, for the log only; may be nil
}

// Error returns the sentence.
func (e *Error) Error() string { return e.Text }

// Unwrap lets errors.Is see the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// errorf makes an Error of the given kind.
func errorf(kind error, format string, args ...any) *Error {
	return &Error{Kind: kind, Text: fmt.Sprintf(format, args...)}
}

// Code names the kind of err as it goes over the wire: not_found, exists, invalid, conflict, denied,
// too_large, unavailable; "internal" for anything else, "" for nil. Spec: 8.
func Code(err error) string {
	if err == nil {
		return ""
	}
	for _, k := range []struct {
		kind error
		code string
	}{
		{ErrNotFound, "not_found"}, {ErrExist, "exists"}, {ErrInvalid, "invalid"}, {ErrConflict, "conflict"},
		{ErrDenied, "denied"}, {ErrTooLarge, "too_large"}, {ErrUnavailable, "unavailable"},
	} {
		if errors.Is(err, k.kind) {
			return k.code
		}
	}
	return "internal"
}
