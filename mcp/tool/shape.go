package tool

import (
	"time"

	"mailtree/maildir/format"
)

// Stamp returns a time in the form used in responses, or "" for the zero time.
func Stamp(t time.Time) string { return format.At(t).String() }

// Listed returns l, or an empty list if l is nil, because nil would become null on the wire.
func Listed[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}
