package core

import (
	"strings"
	"unicode/utf8"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
)

// CheckText returns an error if s is longer than the limit or contains characters that are illegal in the field. Only a
// task may have line breaks.
func CheckText(field refusal.Field, s string, limit int) error {
	e := &refusal.Error{Field: field, Name: s}
	switch {
	case len(s) > limit:
		return refusal.Over(refusal.TextTooLong, field, len(s), limit)
	case !utf8.ValidString(s):
		e.What = refusal.Invalid("{field} {name} is not valid UTF-8: send text.")
	case strings.ContainsFunc(s, format.Misleading) && field != refusal.Task:
		e.What = refusal.Invalid("{field} {name} contains a line break or control character: write it on one line.")
	case strings.ContainsRune(s, 0):
		e.What = refusal.Invalid("{field} {name} contains a NUL character: send plain text without it.")
	default:
		return nil
	}
	return e
}
