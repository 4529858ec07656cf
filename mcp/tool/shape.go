package tool

import (
	"time"

	"mailtree/maildir/format"
)

// Stamp returns a time in the form that answers use. It returns "" for the zero time.
func Stamp(t time.Time) string { return format.At(t).String() }

// Listed returns an empty list for nil, because nil would be null on the wire.
func Listed[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}
