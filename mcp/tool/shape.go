package tool

import (
	"time"

	"mailtree/maildir/format"
)

// Stamp shows a time, "" where there is none.
func Stamp(t time.Time) string { return format.At(t).String() }

// Listed makes a nil list an empty one, which is [] on the wire.
func Listed[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}
