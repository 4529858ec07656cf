package format

import (
	"strings"
	"unicode/utf8"

	"mailtree/maildir/tree"
)

// Amendable returns the part of a sent message that a user may edit: a header with a few keys, and the body.
func Amendable(m *Message) []byte {
	return message(m.header(func(f *field, _ bool) bool { return f.is(mutable) }), m.Body)
}

// Amend applies the edited text to m. The text must have the form that Amendable returns. Amend does not change keys
// that are missing from the text. The error is a *tree.FormatError.
func Amend(m *Message, text []byte) error {
	o, body, err := parseHeader(text)
	if err != nil {
		return err
	}
	for _, k := range o.keys {
		f := fieldOf(k.key)
		if f == nil || !f.is(mutable) {
			return o.fault(k.at, Quote(k.key)+" cannot be changed in a sent message: remove it")
		}
		o.read(k.key, f.of(m))
	}
	if low := strings.ToLower(m.Importance); ValidImportance(low) {
		m.Importance = low
	}
	switch {
	case o.err != nil:
		return o.err
	case !ValidImportance(m.Importance):
		return o.bad("importance", Quote(m.Importance)+" is not a valid importance: write low, normal, high or urgent")
	case len(m.Subject) > MaxSubject || strings.ContainsFunc(m.Subject, Misleading):
		return o.bad("subject", "the subject is longer than 998 bytes, or contains a line break or control "+
			"character: shorten the subject, or remove the character")
	case strings.TrimSpace(body) == "":
		return &tree.FormatError{Line: 1, Reason: "there is no text: write the text below the header"}
	case !utf8.ValidString(body) || strings.ContainsRune(body, 0):
		return &tree.FormatError{Line: 1, Reason: "the text is not valid UTF-8 or contains a NUL character: save it as UTF-8"}
	}
	if body != m.Body {
		m.HTML = "" // the HTML contains the old body
	}
	if m.Body = body; m.Subject == "" {
		m.Subject = SubjectOf(body)
	}
	return nil
}

// Rewrite returns the new content of a message file: m's content without a seal, plus the unknown keys of the old
// content. The argument old must be a valid file of the same message.
func Rewrite(old []byte, m *Message) ([]byte, error) {
	o, _, err := parseHeader(old)
	if err != nil {
		return nil, err
	}
	return withUnknown(FormatMessage(m), o), nil
}
