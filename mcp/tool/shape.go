package tool

import (
	"time"

	"mailtree/maildir/format"
)

// Stamp shows a time, "" where there is none.
func Stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return format.FormatTime(t)
}

// Strs makes a nil list an empty one, which is [] on the wire.
func Strs(l []string) []string {
	if l == nil {
		return []string{}
	}
	return l
}
