package sending

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"mailtree/maildir/attachment"
	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// Draft is a message to send.
type Draft struct {
	To, CC, BCC   []string
	Subject, Body string
	Importance    string // "" means normal
	AckRequired   bool
	ThreadID      string
	InReplyTo     string
	Attachments   []string          // paths of the files to attach; see package attachment
	Files         []attachment.File // additional files, in memory
	WorkDir       string            // absolute path of the sender's folder; selects a worktree (default: the main one)
	Key           string            // idempotency key
	Bounded       bool              // refuse the draft if a recipient already has Config.MailboxDepth unread messages
	Anywhere      bool              // a bare name may refer to the only agent with that name in another project
	Audience      Audience          // the recipients of a reply, if To is empty
	Variants
	Images *attachment.Images // how to handle images in the body; nil leaves them unchanged

	References []string // ids of messages before InReplyTo, oldest first, if the sender specifies any
	Extra      string   // additional header keys; see format.Message
}

// Order is a draft with its sender.
type Order struct {
	Draft
	Verb   string // the operation's verb: "send" or "reply"
	From   string
	Origin format.Origin
	By     *core.Caller // the caller whose rights apply to attached files; nil means the store's own rights
	// Take plans the removal of the file from which the draft was read. It is nil if there is no such file.
	Take func(g *writer.Group, tx *writer.Tx) error
}

// Variants selects the formats in which a body is sent. The zero value means markdown only.
type Variants struct {
	TextOnly bool   // the body is plain text, not markdown
	HTML     string // the same text in HTML, stored unchanged next to the body; empty if there is none
}

// MailboxDepth is the default maximum number of unread messages in a mailbox for bounded drafts. It protects an
// absent reader from a flood of messages. See docs/reference/tools.md, "postal".
const MailboxDepth = 10_000

// MaxFanout is the default limit, in bytes, on the total size of a message's inbox copies. This is the size of the
// message's file times the number of recipients. The canonical file, the sender's copy, and attachments, which are
// stored once, are not counted. Therefore, a message that tree.MaxFile allows can always be sent to a single recipient.
const MaxFanout = 64 << 20

// Sent is a delivered message. If Again is set, the message was delivered earlier with the same key.
type Sent struct {
	format.Message
	Again bool
	Acked bool             // the message that this reply answers is now acknowledged
	Notes []*refusal.Error // how the server deviated from the request
	// Queued contains the slugs of other projects that do not have the message yet. The server delivers the message to
	// them later.
	Queued []string
}

// distinct removes duplicate recipients and returns the number of remaining recipients. To takes precedence over CC,
// and CC over BCC. The caller's lists are not changed.
func (d *Order) distinct() int {
	seen := map[string]bool{}
	for _, l := range []*[]string{&d.To, &d.CC, &d.BCC} {
		var kept []string
		for _, n := range *l {
			if n = strings.TrimSpace(n); !seen[n] {
				seen[n] = true
				kept = append(kept, n)
			}
		}
		*l = kept
	}
	return len(seen)
}

// tooManyRecipients returns the refusal for a message with n recipients.
func tooManyRecipients(n int) error {
	return refusal.Over(refusal.TooLarge("The message has {count} recipients {arg}, over the limit of {limit}: send it to fewer "+
		"recipients at a time."),
		refusal.Recipients, n, format.MaxRecipients)
}

// Check applies the limits to the draft and removes duplicate recipients.
func (d *Order) Check() error {
	recipients := d.distinct()
	d.Subject = strings.TrimSpace(d.Subject)
	if low := strings.ToLower(strings.TrimSpace(d.Importance)); format.ValidImportance(low) {
		d.Importance = low
	}
	switch {
	case recipients == 0:
		return &refusal.Error{What: refusal.Invalid("The message has no recipient {arg}: specify at least one " +
			"agent."), Field: refusal.Recipients}
	case recipients > format.MaxRecipients:
		return tooManyRecipients(recipients)
	case len(d.Subject) > format.MaxSubject:
		return refusal.Over(refusal.TooLarge("{field} is {count} bytes long, over the limit of {limit}: move text into "+
			"the body."),
			refusal.Subject, len(d.Subject), format.MaxSubject)
	case d.Importance != "" && !format.ValidImportance(d.Importance):
		return &refusal.Error{What: refusal.ImportanceUnknown, Field: refusal.Importance, Name: d.Importance}
	case d.TextOnly && d.HTML != "":
		return &refusal.Error{What: refusal.Invalid("A message cannot be text-only and also have HTML {arg}: " +
			"choose one."), Field: refusal.HTML}
	case len(d.HTML) > tree.MaxFile:
		return refusal.Over(refusal.TextTooLong, refusal.HTML, len(d.HTML), tree.MaxFile)
	case len(d.References) > format.MaxReferences:
		return refusal.Over(refusal.TooLarge("The message has {count} references {arg}, over the limit of {limit}: keep only "+
			"the newest."),
			refusal.References, len(d.References), format.MaxReferences)
	case !utf8.ValidString(d.Body) || strings.ContainsRune(d.Body, 0):
		return &refusal.Error{
			What: refusal.Invalid("{field} is not valid UTF-8 text or contains a NUL character: send text, and " +
				"send files as attachments."),
			Field: refusal.Body,
		}
	}
	for _, f := range []struct {
		field refusal.Field
		text  string
		limit int
	}{
		{refusal.Subject, d.Subject, format.MaxSubject},
		{refusal.Thread, d.ThreadID, format.MaxThread},
		{refusal.Key, d.Key, 256},
		{refusal.From, d.From, 256},
		{refusal.InReplyTo, d.InReplyTo, format.MaxReference},
		{refusal.References, strings.Join(d.References, " "), format.MaxReference * format.MaxReferences},
	} {
		if err := core.CheckText(f.field, f.text, f.limit); err != nil {
			return err
		}
	}
	return nil
}

// FillFrom copies from m to d all fields that a sender can set and that both types have. Order.Message does the
// reverse.
func (d *Draft) FillFrom(m *format.Message) {
	d.To, d.CC, d.BCC = m.To, m.CC, m.BCC
	d.Subject, d.Body = m.Subject, m.Body
	d.Importance, d.AckRequired = m.Importance, m.AckRequired
	d.ThreadID, d.InReplyTo, d.References = m.ThreadID, m.InReplyTo, m.References
	d.Key, d.Extra = m.Key, m.Extra
}

// Message returns the draft as a message that has no id and no time yet.
func (d *Order) Message(project string, files []attachment.File) format.Message {
	m := format.Message{
		Project:     project,
		From:        d.From,
		To:          d.To,
		CC:          d.CC,
		BCC:         d.BCC,
		Subject:     d.Subject,
		Body:        d.Body,
		Importance:  cmp.Or(d.Importance, format.Normal),
		AckRequired: d.AckRequired,
		ThreadID:    d.ThreadID,
		InReplyTo:   d.InReplyTo,
		References:  d.References,
		Key:         d.Key,
		Extra:       d.Extra,
		Origin:      d.Origin,
	}
	if m.Subject == "" {
		m.Subject = format.SubjectOf(m.Body)
	}
	if m.Auth == "" {
		m.Auth = "none"
	}
	if d.TextOnly {
		m.MediaType = format.PlainText
	}
	for _, f := range files {
		m.Attachments = append(m.Attachments, f.Attachment)
	}
	return m
}

// contentOf returns everything that must be the same in two messages with the same key. This excludes the id, time,
// seal, origin, and unknown header keys.
func contentOf(m *format.Message) []byte {
	c := *m
	c.ID, c.Seal, c.Origin, c.Created, c.Extra = "", "", format.Origin{}, time.Time{}, ""
	c.To, c.CC, c.BCC = sorted(m.To), sorted(m.CC), sorted(m.BCC)
	return format.FormatMessage(&c)
}

func sorted(l []string) []string { return slices.Sorted(slices.Values(l)) }

func SameNames(a, b []string) bool { return slices.Equal(sorted(a), sorted(b)) }
