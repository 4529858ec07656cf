package format

import (
	"bytes"
	"slices"
	"strings"

	"mailtree/maildir/tree"
)

// Keys that a sender gives beside the fields of a message.
const (
	attachmentsKey = "attachments"
	repeatKey      = "repeat"
)

// daily is the only value of repeatKey.
const daily = "daily"

// Unsent is a message that a person or agent saved in an outbox and that is still to be sent. From is "" if
// the file does not say; the folder then names the sender. Only Body and the fields that a sender gives are
// set; the server fills in the rest. See docs/tree.md, "Sending by saving".
type Unsent struct {
	Message
	Attach []string // paths of the files to attach
	Daily  bool     // the same text may be sent once a day
}

// ParseUnsent parses the file of an unsent message, whose header is JSON or plain (see plain.go). The error
// is a *tree.FormatError. ParseUnsent accepts messages that Send would refuse.
func ParseUnsent(data []byte) (*Unsent, error) {
	parse := parseHeader
	if isPlain(data) {
		parse = parsePlain
	} else if !begins(data, fenceClose, "+++", "\xef\xbb\xbf") {
		return nil, &tree.FormatError{Line: 1, Reason: `there is no header: begin with a line such as "to: BlueLake", and leave a line ` +
			`empty before the text`}
	}
	o, body, err := parse(data)
	if err != nil {
		return nil, err
	}
	u := &Unsent{Message: Message{Body: body}}
	u.readHeader(o, given)
	o.read(attachmentsKey, &u.Attach)
	switch repeat := o.text(repeatKey); {
	case strings.EqualFold(repeat, daily):
		u.Daily = true
	case o.has(repeatKey) && o.err == nil:
		return nil, o.bad(repeatKey, Quote(repeat)+" is not how a message can repeat: write "+daily+", or take it out")
	}
	if o.err != nil {
		return nil, o.err
	}
	return u, nil
}

// begins reports whether data begins with one of the prefixes.
func begins(data []byte, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return bytes.HasPrefix(data, []byte(p)) })
}

// FormatDraft returns an empty draft to the given recipients, in the form that ParseUnsent reads.
func FormatDraft(to []string) []byte {
	return []byte(fenceOpen + "\n{\n  \"to\": " + string(compact(&to)) + "\n}\n" + fenceClose + "\n\n")
}
