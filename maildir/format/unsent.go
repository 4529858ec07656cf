package format

// Unsent is a message that somebody wrote into an outbox and that is still to be sent: what its
// header and body say. From is "" where the folder tells it. Only ID, From, To, CC, BCC, Subject,
// Importance, AckRequired, ThreadID, InReplyTo, References, Key, MediaType and Body are read; the
// server makes the rest anew. See docs/tree.md, "Sending by saving".
type Unsent struct {
	Message
	Attach []string // paths of the files that are to go along
}

// ParseUnsent reads the file of a message that is to be sent. An error is a *tree.FormatError. What
// Send refuses it lets pass.
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

// FormatDraft writes a message that is still to be written, to those: see ParseUnsent.
func FormatDraft(to []string) []byte {
	return []byte(fenceOpen + "\n{\n  \"to\": " + string(compact(list(to))) + "\n}\n" + fenceClose + "\n\n")
}
