package maildir

import (
	"cmp"
	"context"
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
	Importance    string // "": normal
	AckRequired   bool
	ThreadID      string
	InReplyTo     string
	Attachments   []string          // paths of files: see package attachment
	Files         []attachment.File // further files, in memory
	WorkDir       string            // absolute folder that the sender works in, which tells the work tree; "" or any other: the main work tree
	Key           string            // idempotency key
	Bounded       bool              // refuse if a recipient has Config.MailboxDepth unread messages
	Variants
	Images *attachment.Images // how to handle images in the body; nil: send it unchanged

	References []string // ids before InReplyTo, oldest first, if the sender names them
	Extra      string   // further keys of the header: see format.Message

	from   string
	origin format.Origin
	by     *Caller // the caller whose rights apply to attached files; nil: the store's own rights
	saved  *saved  // the file that the draft was read from, which is removed when it is sent; nil: none
}

// Variants say in which formats a body is sent. The zero value is markdown only.
type Variants struct {
	TextOnly bool   // the body is plain text, not markdown
	HTML     string // the same text in HTML, stored unchanged beside the body; "": none
}

// MailboxDepth is the default limit of unread messages in a mailbox for bounded drafts, so that a reader
// who is away is not flooded. See docs/tools.md, "postal".
const MailboxDepth = 10_000

// MaxFanout is the default limit of what one message may write into inboxes: the bytes of its file times
// its recipients. The canonical file, the sender's copy, and attachments, which are stored once, do not
// count. So a message that tree.MaxFile allows can always go to one recipient.
const MaxFanout = 64 << 20

// Sent is a delivered message; with Again, a message that was delivered earlier with the same key.
type Sent struct {
	format.Message
	Again bool
	Acked bool     // it acknowledges the message that it answers
	Notes []*Error // what was done differently from the request
}

// Send delivers to every recipient or to none. When it returns, the files are durable and indexed. It
// returns ErrNotFound for an unknown sender or unknown recipients (all are named, with similar names),
// ErrInvalid, ErrTooLarge, ErrConflict if the key was used for other content, and ErrUnavailable (disk
// full, read-only …, or a mailbox that is full for a Bounded draft, unless the same key delivered the
// message before). See docs/tools.md, "Sending".
func (b *Box) Send(ctx context.Context, d Draft) (*Sent, error) {
	d.from, d.origin = b.agent, b.origin
	return b.p.send(ctx, "send", d)
}

func (p *Project) send(ctx context.Context, verb string, d Draft) (*Sent, error) {
	brought, err := p.readDraft(ctx, &d)
	if err != nil {
		return nil, err
	}
	var sent *Sent
	tx := &writer.Tx{Op: writer.Op{Verb: verb, Agent: d.from}}
	if d.Key != "" {
		tx.Facts, tx.Sure = []string{core.KeyFact(d.from, d.Key)}, true // the key may be in a file that cannot be read now
	}
	if d.InReplyTo != "" {
		tx.Facts = append(tx.Facts, core.MarkFact(d.from))
	}
	counted := 0 // emails to other domains, once however often it is planned
	tx.Plan = func(g *writer.Group) error {
		sent, tx.Marks = &Sent{Notes: brought.Notes}, ""
		if err := p.needParties(g.Ctx, &d); err != nil {
			return err
		}
		if err := p.refuseAutomatic(g.Ctx, &d); err != nil {
			return err
		}
		sent.Message = d.message(p.mail.Name(), brought.Files)
		if d.Key != "" {
			first, err := p.sentBefore(g.Ctx, &sent.Message)
			if err != nil || first != nil {
				sent.Again = true
				if first != nil {
					sent.Message = *first
				}
				return err
			}
		}
		if d.Bounded {
			if err := p.mail.NeedRoom(g.Ctx, g.Coming, sent.Recipients()); err != nil {
				return err
			}
		}
		outside := slices.DeleteFunc(sent.Recipients(), core.IsAgent)
		if len(outside) > counted {
			if err := p.Post.Count(d.from, len(outside), g.Now); err != nil {
				return err
			}
			counted = len(outside)
		}
		if len(outside) > 0 {
			note, err := p.Post.Unanswerable(g.Ctx, d.from)
			if err != nil {
				return err
			}
			if note != nil {
				sent.Notes = append(slices.Clone(sent.Notes), note)
			}
		}
		if err := p.outbox.planTaking(g, tx, d.saved); err != nil {
			return err
		}
		if err := p.mail.PlanMessage(g, tx, &sent.Message, brought.Files); err != nil {
			return err
		}
		if sent.Acked, err = p.planSettling(g, tx, &sent.Message); err != nil {
			return err
		}
		return p.Post.PlanQueue(g, tx, &sent.Message)
	}
	defer p.mail.NoteSeen(ctx, d.from)
	if err := p.mail.Act(ctx, tx); err != nil {
		return nil, err
	}
	return sent, nil
}

// readDraft checks a draft and reads what it brings: recipients, body and attachments.
func (p *Project) readDraft(ctx context.Context, d *Draft) (*attachment.Brought, error) {
	if format.ServerName(d.from) {
		return nil, &Error{
			What: refusal.Invalid("{field} {name} is a name under which the server itself speaks: nothing is sent under it. Use an agent " +
				"of another name."),
			Field: refusal.From,
			Name:  d.from,
		}
	}
	if err := p.resolveOwn(ctx, d); err != nil {
		return nil, err
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	brought, err := p.gather(ctx, d)
	if err != nil {
		return nil, err
	}
	d.Body = brought.Body
	if d.HTML != "" {
		brought.Files = append(brought.Files, attachment.Alternative(d.HTML))
	}
	for i := range brought.Files {
		if err := brought.Files[i].Look(p.mail.Tree); err != nil {
			return nil, refusal.Disk(err)
		}
	}
	return brought, nil
}

// gather reads the draft's attachments and images. It returns the errors of attachment.Intake.Gather.
func (p *Project) gather(ctx context.Context, d *Draft) (*attachment.Brought, error) {
	r := attachment.Request{
		Names:    d.Attachments,
		Files:    d.Files,
		Body:     d.Body,
		TextOnly: d.TextOnly,
		Images:   d.Images,
		Tree:     p.mail.Tree,
		CodeBase: p.mail.HumanKey(),
		WorkDir:  d.WorkDir,
	}
	if d.by != nil && p.mail.Store.Guest(*d.by) {
		r.OwnedBy = &d.by.UID
	}
	return p.mail.Store.Intake.Gather(ctx, r)
}

// resolveOwn puts agents' names in the place of their addresses among the recipients. It first removes
// duplicates and refuses too many recipients, so that it looks up each name once, and few of them.
func (p *Project) resolveOwn(ctx context.Context, d *Draft) error {
	if n := d.distinct(); n > format.MaxRecipients {
		return tooManyRecipients(n)
	}
	for _, list := range []*[]string{&d.To, &d.CC, &d.BCC} {
		for i, party := range *list {
			name := p.mail.Store.Domains.Named(party)
			ok, err := p.mail.HasAgent(ctx, name)
			if err != nil {
				return err
			}
			if ok || strings.Contains(name, "@") {
				(*list)[i] = name
			}
		}
	}
	return nil
}

// distinct removes duplicate recipients, and returns the number of those that are left: to wins over cc,
// and cc over bcc. The caller's lists stay as they are.
func (d *Draft) distinct() int {
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

// tooManyRecipients refuses n recipients.
func tooManyRecipients(n int) error {
	return refusal.Over(refusal.TooLarge("{count} recipients {arg}, over the limit of {limit}: send it in parts."),
		refusal.Recipients, n, format.MaxRecipients)
}

// check applies the limits to the draft and removes duplicate recipients.
func (d *Draft) check() error {
	recipients := d.distinct()
	d.Subject = strings.TrimSpace(d.Subject)
	if low := strings.ToLower(strings.TrimSpace(d.Importance)); format.ValidImportance(low) {
		d.Importance = low
	}
	switch {
	case recipients == 0:
		return &Error{What: refusal.Invalid("The message has no recipient {arg}: name at least one agent."), Field: refusal.Recipients}
	case recipients > format.MaxRecipients:
		return tooManyRecipients(recipients)
	case len(d.Subject) > format.MaxSubject:
		return refusal.Over(refusal.TooLarge("{field} has {count} bytes, over the limit of {limit}: put the rest into the body."),
			refusal.Subject, len(d.Subject), format.MaxSubject)
	case d.Importance != "" && !format.ValidImportance(d.Importance):
		return &Error{What: refusal.ImportanceUnknown, Field: refusal.Importance, Name: d.Importance}
	case d.TextOnly && d.HTML != "":
		return &Error{What: refusal.Invalid("A message cannot be text only and have HTML {arg}: choose one."), Field: refusal.HTML}
	case len(d.HTML) > tree.MaxFile:
		return refusal.Over(refusal.TextTooLong, refusal.HTML, len(d.HTML), tree.MaxFile)
	case len(d.References) > format.MaxReferences:
		return refusal.Over(refusal.TooLarge("{count} references {arg}, over the limit of {limit}: name the newest."),
			refusal.References, len(d.References), format.MaxReferences)
	case !utf8.ValidString(d.Body) || strings.ContainsRune(d.Body, 0):
		return &Error{
			What:  refusal.Invalid("{field} is not valid UTF-8 text or holds a NUL character: send text, and files as attachments."),
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
		{refusal.From, d.from, 256},
		{refusal.InReplyTo, d.InReplyTo, format.MaxReference},
		{refusal.References, strings.Join(d.References, " "), format.MaxReference * format.MaxReferences},
	} {
		if err := core.CheckText(f.field, f.text, f.limit); err != nil {
			return err
		}
	}
	return nil
}

// fillFrom takes over what the sender of m says: the fields that both types have. message does the reverse.
func (d *Draft) fillFrom(m *format.Message) {
	d.To, d.CC, d.BCC = m.To, m.CC, m.BCC
	d.Subject, d.Body = m.Subject, m.Body
	d.Importance, d.AckRequired = m.Importance, m.AckRequired
	d.ThreadID, d.InReplyTo, d.References = m.ThreadID, m.InReplyTo, m.References
	d.Key, d.Extra = m.Key, m.Extra
}

// message returns the draft as a message without id and time.
func (d *Draft) message(project string, files []attachment.File) format.Message {
	m := format.Message{
		Project:     project,
		From:        d.from,
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
		Origin:      d.origin,
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

// sentBefore looks for a message of the same sender to the same recipients with the same key. It returns
// that message if the content is the same, ErrConflict if it differs, and nil if there is none. See
// docs/tools.md, "Sending".
func (p *Project) sentBefore(ctx context.Context, m *format.Message) (*format.Message, error) {
	rows, err := p.mail.Store.Index.Keyed(ctx, p.mail.Slug, m.From, m.Key)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		old := &rows[i].Message
		if !sameNames(old.Recipients(), m.Recipients()) {
			continue
		}
		if string(contentOf(old)) != string(contentOf(m)) {
			return nil, &Error{
				What: refusal.Conflict("{field} {name} was used by {=other} for other content to the same recipients (message {id}): use a " +
					"new one for a new message."),
				Field: refusal.Key,
				Name:  m.Key,
				Other: m.From,
				ID:    old.ID,
			}
		}
		return old, nil
	}
	return nil, nil
}

// contentOf returns everything that two messages with one key must share: all but id, time, seal, origin, and
// keys without a meaning.
func contentOf(m *format.Message) []byte {
	c := *m
	c.ID, c.Seal, c.Origin, c.Created, c.Extra = "", "", format.Origin{}, time.Time{}, ""
	c.To, c.CC, c.BCC = sorted(m.To), sorted(m.CC), sorted(m.BCC)
	return format.FormatMessage(&c)
}

func sorted(l []string) []string { return slices.Sorted(slices.Values(l)) }

func sameNames(a, b []string) bool { return slices.Equal(sorted(a), sorted(b)) }
