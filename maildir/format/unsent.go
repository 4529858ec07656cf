package format

// Unsent is a message that a person or agent saved in an outbox and that is still to be sent. From is "" if
// the file does not say; the folder then names the sender. Only Body and the fields that a sender gives are
// set; the server fills in the rest. See docs/tree.md, "Sending by saving".
type Unsent struct {
	Message
	Attach []string // paths of the files to attach
}

// ParseUnsent parses the file of an unsent message. The error is a *tree.FormatError. ParseUnsent accepts
// messages that Send would refuse.
func ParseUnsent(data []byte) (*Unsent, error) {
	o, body, err := parseHeader(data)
	if err != nil {
		return nil, err
	}
	u := &Unsent{Message: Message{Body: body}}
	u.readHeader(o, given)
	o.read("attachments", &u.Attach)
	if o.err != nil {
		return nil, o.err
	}
	return u, nil
}

// FormatDraft returns an empty draft to the given recipients, in the form that ParseUnsent reads.
func FormatDraft(to []string) []byte {
	return []byte(fenceOpen + "\n{\n  \"to\": " + string(compact(&to)) + "\n}\n" + fenceClose + "\n\n")
}
