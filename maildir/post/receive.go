package post

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/attachment"
	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
	"mailtree/maildir/writer"
)

// Incoming is an email from another domain for one or more mailboxes.
type Incoming struct {
	Mailboxes []string // the agents that receive the email

	From         string   // an address
	To, CC       []string // addresses, or names of the project's agents
	Subject      string   // one line; if empty, it is derived from the body
	Body         string
	Plain        bool // the body is not markdown
	MessageID    string
	InReplyTo    string
	References   []string  // oldest first
	Automatic    bool      // written by a program or forwarded by a mailing list
	Date         time.Time // the date in the email's own header; zero if the header has none
	ReplyTo      []string  // the Reply-To addresses, in the same form as To
	Auth         string    // "dmarc:DOMAIN", where DOMAIN vouches for From, or "none"
	Hash         [32]byte  // identical for the same message, no matter which route it took
	HTML         string    // the email's text in HTML; empty if the email has none
	BodyFromHTML bool      // the body was converted from HTML
	Problems     []string  // what is wrong with the message, as sentences without a final period

	Attachments []attachment.File
	Raw         []byte // the message as received
}

// These are limits for the header of a message from another domain. Parts that exceed the limits are kept only in the
// raw message.
const (
	maxForeignParties    = 96 << 10 // maximum total size of To and CC, in bytes
	maxForeignReferences = 32 << 10 // bytes
	maxForeignReplyTo    = 20       // addresses
	maxForeignProblems   = 20
	maxForeignProblem    = 300 // bytes
)

// Receive delivers an email to mailboxes in one operation and returns the message's id. When it returns, the email is
// durable and indexed. errs contains an error for each mailbox, or nil if the mailbox has the email. If a mailbox has
// already received the same email, nothing changes for that mailbox. If only another mailbox in the project has
// received it, the mailbox gets another copy of the same message.
//
// The error for a mailbox is ErrNotFound if the mailbox does not exist, and ErrUnavailable if it cannot accept the
// email now. If the mailbox has no room, the error is refusal.MailboxFull. If something else is at an attachment's
// path, the error is ErrConflict for all mailboxes. See docs/reference/tree.md, "Mail from other domains".
func (p *Post) Receive(ctx context.Context, in Incoming) (id string, errs []error) {
	m, files := in.message(p.mail.Name())
	for i := range files {
		if err := files[i].Look(p.mail.Tree); err != nil {
			return "", slices.Repeat([]error{refusal.Disk(err)}, len(in.Mailboxes))
		}
	}
	// A message with the same idempotency key may be in a file that currently cannot be read. Because Sure is set, the
	// writer then refuses the operation.
	tx := &writer.Tx{Op: writer.Op{Verb: "receive"}, Facts: in.facts(m), Sure: true}
	var received string // valid only if Do succeeds; after an error, a plan that is waiting for the disk may still run
	var refused []error
	tx.Plan = func(g *writer.Group) error {
		first, err := p.receivedBefore(g.Ctx, m)
		if err != nil {
			return err
		}
		var takers []string
		if takers, refused, err = p.takers(g, in.Mailboxes, first); err != nil {
			return err
		}
		if first == nil && len(takers) > 0 {
			first = new(*m)
			if err := p.joinForeign(g.Ctx, first); err != nil {
				return err
			}
			if err := p.planReceived(g, tx, first, files); err != nil {
				return err
			}
		}
		if first != nil {
			received = first.ID
		}
		for _, mailbox := range takers {
			p.planReceivedCopy(tx, first, mailbox)
		}
		return nil
	}
	if err := p.mail.Writer.Do(format.Through(ctx, format.DoorGateway), tx); err != nil {
		return "", slices.Repeat([]error{err}, len(in.Mailboxes))
	}
	return received, refused
}

// takers returns the mailboxes that get a copy of an email now, and the error for each mailbox that cannot get one.
// If the same email was received before, first is the message created then; otherwise it is nil. takers also returns
// errors from the index.
func (p *Post) takers(g *writer.Group, mailboxes []string, first *format.Message) (takers []string, errs []error, err error) {
	errs = make([]error, len(mailboxes))
	for i, mailbox := range mailboxes {
		if slices.Contains(takers, mailbox) {
			continue
		}
		if errs[i] = p.mail.NeedAgent(g.Ctx, refusal.Mailbox, mailbox); errs[i] != nil {
			continue
		}
		if first != nil {
			had, err := p.mail.Store.Index.Delivery(g.Ctx, p.mail.Slug, mailbox, first.ID, index.WithoutBody, nil)
			if err != nil {
				return nil, nil, fmt.Errorf("cannot look up message %s in mailbox %s: %w", first.ID, format.Printable(mailbox), err)
			}
			if had != nil {
				continue
			}
		}
		if errs[i] = p.mail.NeedRoom(g.Ctx, g.Coming, []string{mailbox}); errs[i] == nil {
			takers = append(takers, mailbox)
		}
	}
	return takers, errs, nil
}

// message returns the email as a message that has no id, time or thread yet, together with its attachments.
func (in *Incoming) message(project string) (*format.Message, []attachment.File) {
	files := slices.Clone(in.Attachments)
	m := &format.Message{
		Project:    project,
		From:       in.From,
		Subject:    in.Subject,
		Importance: format.Normal,
		InReplyTo:  in.InReplyTo,
		References: newest(in.References, format.MaxReferences, maxForeignReferences),
		MessageID:  in.MessageID,
		Automatic:  in.Automatic,
		Date:       in.Date.Truncate(time.Microsecond),
		ReplyTo:    in.ReplyTo[:min(len(in.ReplyTo), maxForeignReplyTo)],
		Problems:   in.faults(),
		Key:        "smtp " + in.Auth + " " + hex.EncodeToString(in.Hash[:]),
		Origin:     format.Origin{Auth: in.Auth, Door: format.DoorGateway},
		Body:       in.Body,
	}
	m.To, m.CC = parties(in.To, in.CC)
	if m.Subject == "" {
		m.Subject = format.SubjectOf(m.Body)
	}
	if in.Plain {
		m.MediaType = format.PlainText
	}
	if in.HTML != "" {
		html := attachment.Alternative(in.HTML)
		if files = append(files, html); in.BodyFromHTML {
			m.HTML = html.Path
		}
	}
	files = append(files, attachment.Email(in.Raw))
	for i := range files {
		m.Attachments = append(m.Attachments, files[i].Attachment)
	}
	return m, files
}

// faults returns the first maxForeignProblems problems, each truncated to maxForeignProblem bytes.
func (in *Incoming) faults() (kept []string) {
	for _, problem := range in.Problems[:min(len(in.Problems), maxForeignProblems)] {
		kept = append(kept, format.Cut(problem, maxForeignProblem))
	}
	return kept
}

// newest returns the last elements of a list, up to the given limits on their number and on their total size in bytes.
func newest(list []string, most, bytes int) []string {
	from := len(list)
	for from > 0 && len(list)-from < most && len(list[from-1]) <= bytes {
		from--
		bytes -= len(list[from])
	}
	return list[from:]
}

// parties returns the first addresses of To and CC, as many as a message may have. It leaves room for the message's bcc
// recipient.
func parties(to, cc []string) (keptTo, keptCC []string) {
	most, bytes := format.MaxRecipients-1, maxForeignParties
	for i, n := range slices.Concat(to, cc) {
		if bytes -= len(n); i >= most || bytes < 0 {
			break
		}
		if i < len(to) {
			keptTo = append(keptTo, n)
		} else {
			keptCC = append(keptCC, n)
		}
	}
	return keptTo, keptCC
}

// facts returns the facts that the delivery depends on (writer.Tx.Facts): the key, the message's own Message-ID, and
// the Message-IDs of the messages that it refers to.
func (in *Incoming) facts(m *format.Message) []string {
	facts := []string{core.KeyFact(m.From, m.Key)}
	for _, id := range append([]string{m.MessageID, m.InReplyTo}, m.References...) {
		if id != "" {
			facts = append(facts, "message "+id)
		}
	}
	return facts
}

// receivedBefore returns the message that this server created earlier from the same email, or nil if there is none.
func (p *Post) receivedBefore(ctx context.Context, m *format.Message) (*format.Message, error) {
	rows, err := p.mail.Store.Index.Keyed(ctx, p.mail.Slug, m.From, m.Key)
	for i := range rows {
		if _, ok := p.mail.Store.VerifiedHere(&rows[i].Message); ok && rows[i].Door == format.DoorGateway {
			return &rows[i].Message, err
		}
	}
	return nil, err
}

// planReceived plans an email's canonical file and its attachments, but not the copies for mailboxes. If the body is
// too long for the file, it is truncated.
func (p *Post) planReceived(g *writer.Group, tx *writer.Tx, m *format.Message, files []attachment.File) (err error) {
	if m.ID, m.Created, err = p.mail.Store.Clock.Stamp(); err != nil {
		return err
	}
	const more = 1 << 10 // room for the seal and the bcc recipient
	if over := int64(len(format.FormatMessage(m))) + more - p.mail.Tree.MaxFile(); over > 0 {
		m.Body = format.Cut(m.Body, max(len(m.Body)-int(over), 0))
	}
	data := format.Seal(p.mail.Store.Key, format.FormatMessage(m))
	if err := p.mail.CheckSize(data); err != nil {
		return err
	}
	if _, err := format.ParseMessage(m.ID, data); err != nil { // do not write an invalid file
		return err
	}
	for i := range files {
		if err := files[i].Plan(tx, g, p.mail.Tree); err != nil {
			return err
		}
	}
	tx.Create(p.mail.Place(format.CanonicalPath(m.ID, m.Created)), data)
	return nil
}

// planReceivedCopy plans a mailbox's copy of an email. If neither To nor CC contains the mailbox, the mailbox is a bcc
// recipient in this copy (Invariant I7).
func (p *Post) planReceivedCopy(tx *writer.Tx, m *format.Message, mailbox string) {
	own := *m
	own.BCC = nil
	if !slices.Contains(m.To, mailbox) && !slices.Contains(m.CC, mailbox) {
		own.BCC = []string{mailbox}
	}
	data := format.Seal(p.mail.Store.Key, format.FormatMessage(&own))
	tx.Create(p.mail.Place(format.InboxPath(mailbox, m.ID, m.Created)), data)
	tx.ID, tx.Summary = m.ID, core.SummaryOf(m)
}

// joinForeign assigns an email to a thread, and replaces the Message-IDs of messages in the project with their ids. The
// email joins the thread of the newest of these messages. If there is none, it joins a thread that an earlier reply to
// the email started. Otherwise, it starts a new thread named after the oldest id. An id without an @ is not used as a
// thread, because agents choose thread names freely.
func (p *Post) joinForeign(ctx context.Context, m *format.Message) error {
	named := m.References
	if m.InReplyTo != "" {
		named = append(slices.Clone(named), m.InReplyTo)
	}
	known := map[string]*index.MessageRow{}
	var newest *index.MessageRow
	oldest := ""
	for _, id := range named {
		if !strings.Contains(id, "@") {
			continue
		}
		row, err := p.mail.Foreign(ctx, id)
		if err != nil {
			return err
		}
		if row != nil {
			known[id], newest = row, row
		}
		oldest = cmp.Or(oldest, id)
	}
	if row := known[m.InReplyTo]; row != nil {
		m.InReplyTo = row.ID
	}
	m.References = slices.Clone(m.References)
	for i, id := range m.References {
		if row := known[id]; row != nil {
			m.References[i] = row.ID
		}
	}
	if newest != nil {
		m.ThreadID = cmp.Or(newest.ThreadID, newest.ID)
		return nil
	}
	m.ThreadID = format.Cut(oldest, format.MaxThread)
	if begun := format.Cut(m.MessageID, format.MaxThread); strings.Contains(begun, "@") {
		rows, err := p.mail.Store.Index.Thread(ctx, index.ThreadQuery{Project: p.mail.Slug, Thread: begun, Limit: 1})
		if err != nil {
			return err
		}
		if len(rows) > 0 {
			m.ThreadID = begun
		}
	}
	return nil
}

// HasRoom returns refusal.MailboxFull, which is an ErrUnavailable, if a mailbox is too full to accept more mail.
func (p *Post) HasRoom(ctx context.Context, agent string) error {
	return p.mail.NeedRoom(ctx, func(string) int { return 0 }, []string{agent})
}
