package format

// Unsent is a message that a person or agent saved in an outbox and that is still to be sent. From is "" if
// the file does not say; the folder then names the sender. Only ID, From, To, CC, BCC, Subject, Importance,
// AckRequired, ThreadID, InReplyTo, References, Key, MediaType and Body are read; the server fills in the
// rest. See docs/tree.md, "Sending by saving".
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
	u := &Unsent{Message: Message{
		ID:          o.text("id"),
		ThreadID:    o.text("thread_id"),
		From:        o.text("from"),
		To:          o.names("to"),
		CC:          o.names("cc"),
		BCC:         o.names("bcc"),
		Subject:     o.text("subject"),
		Importance:  o.text("importance"),
		AckRequired: o.flag("ack_required"),
		InReplyTo:   o.text("in_reply_to"),
		References:  o.names("references"),
		Key:         o.text("key"),
		MediaType:   o.text("media_type"),
		Body:        body,
	}, Attach: o.names("attachments")}
	if o.err != nil {
		return nil, o.err
	}
	return u, nil
}

// FormatDraft returns an empty draft to the given recipients, in the form that ParseUnsent reads.
func FormatDraft(to []string) []byte {
	return []byte(fenceOpen + "\n{\n  \"to\": " + string(compact(list(to))) + "\n}\n" + fenceClose + "\n\n")
}
