package format

import (
	"bytes"
	"slices"
	"strings"

	"mailtree/maildir/foreign"
	"mailtree/maildir/tree"
)

// Keys that a sender may write in addition to the fields of a message.
const (
	attachmentsKey = "attachments"
	repeatKey      = "repeat"
)

// daily is the only value of repeatKey.
const daily = "daily"

// Unsent is a message that a user or agent has saved in an outbox and that has not been sent yet. If the file specifies
// no sender, From is "", and the folder determines the sender. Only Body and the fields that a sender may set are
// filled in. The server sets the other fields when it sends the message. See docs/reference/tree.md, "Sending by
// saving".
type Unsent struct {
	Message
	Attach []string // paths of the files to attach
	Daily  bool     // the same text may be sent once a day
}

// NotYetSent is the reason that is reported for a valid outbox file that has not been sent. Either the server is about
// to send the file, or it has refused to send it.
const NotYetSent = "the file has not been sent yet. If it cannot be sent, a message from " + Postmaster + " in the " +
	"agent's inbox explains why"

// ParseUnsent parses the file of an unsent message, whose header is JSON, plain (see plain.go), YAML or TOML. It does
// not check whether the message could be sent. The error is a *tree.FormatError.
func ParseUnsent(data []byte) (*Unsent, error) {
	o, body, err := parseDraft(data)
	if err != nil {
		return nil, err
	}
	u := &Unsent{Message: Message{Body: body}}
	u.readHeader(o, given)
	var why *tree.FormatError
	if u.Extra, why = o.extra(); why != nil {
		return nil, why
	}
	o.read(attachmentsKey, &u.Attach)
	switch repeat := o.text(repeatKey); {
	case strings.EqualFold(repeat, daily):
		u.Daily = true
	case o.has(repeatKey) && o.err == nil:
		return nil, o.bad(repeatKey, Quote(repeat)+" is not a valid value for repeat: write "+daily+", or remove it")
	}
	if o.err != nil {
		return nil, o.err
	}
	return u, nil
}

// parseDraft parses a file in an outbox and returns its header and body. If a header between --- lines is both a
// plain header and YAML, it is parsed as a plain header, so that the meaning of plain headers never changes.
func parseDraft(data []byte) (header *object, body string, err error) {
	switch {
	case IsForeign(data):
		return parseForeignDraft(data, foreign.TOML)
	case isPlain(data):
		header, body, err = parsePlain(data)
		if err == nil || !foreign.Is(data, foreign.YAML) || bytes.HasPrefix(data, []byte(fenceClose+"\r")) {
			return header, body, err
		}
		again, text, other := parseForeignDraft(data, foreign.YAML)
		if foreign.Missing(other) {
			return nil, "", err
		}
		return again, text, other
	case !begins(data, fenceClose, "\xef\xbb\xbf"):
		return nil, "", &tree.FormatError{Line: 1, Reason: `there is no header: begin with a line such as "to: BlueLake", and put an ` +
			`empty line before the text`}
	}
	header, body, err = parseHeader(data)
	if err != nil {
		return nil, "", err
	}
	for i := range header.keys {
		header.keys[i].key = draftKey(header.keys[i].key)
		for _, before := range header.keys[:i] {
			if before.key == header.keys[i].key {
				return nil, "", header.fault(header.keys[i].at, "the key "+Quote(before.key)+" appears twice: keep one")
			}
		}
	}
	return header, body, nil
}

// begins reports whether data begins with one of the prefixes.
func begins(data []byte, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return bytes.HasPrefix(data, []byte(p)) })
}

// FormatDraft returns an empty draft addressed to the given recipients, in the form that ParseUnsent reads.
func FormatDraft(to []string) []byte {
	return []byte(fenceOpen + "\n{\n  \"to\": " + string(compact(&to)) + "\n}\n" + fenceClose + "\n\n")
}
