package core

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"mailtree/maildir/attachment"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// PlanMessage plans the files of a message in this project: the canonical file, the outbox copy, the inbox copies and
// the attachments. See docs/reference/tree.md, "Copies".
func (c *Mail) PlanMessage(g *writer.Group, tx *writer.Tx, m *format.Message, files []attachment.File) error {
	var err error
	if m.ID, m.Created, err = c.Store.Clock.Stamp(); err != nil {
		return err
	}
	plain, full := c.sealed(m)
	if err := c.CheckSize(full); err != nil {
		return err
	}
	if err := c.checkFanout(m, len(full)); err != nil {
		return err
	}
	for i := range files {
		if err := files[i].Plan(tx, g, c.Tree); err != nil {
			return err
		}
	}
	takers := slices.DeleteFunc(m.Recipients(), func(n string) bool { return !IsAgent(n) })
	c.planCopies(tx, m, plain, full, takers)
	return nil
}

// PlanDelivered plans the files of a message from another project: the canonical file, and copies in the inboxes of
// the agents in takers. The message's id must be set, and takers must be among its recipients.
func (c *Mail) PlanDelivered(tx *writer.Tx, m *format.Message, takers []string) {
	plain, full := c.sealed(m)
	c.planCopies(tx, m, plain, full, takers)
}

// sealed returns two sealed files of a message: one without bcc recipients, and one that lists all of them.
func (c *Mail) sealed(m *format.Message) (plain, full []byte) {
	open := *m
	open.BCC = nil
	plain = format.Seal(c.Store.Key, format.FormatMessage(&open))
	if len(m.BCC) == 0 {
		return plain, plain
	}
	return plain, format.Seal(c.Store.Key, format.FormatMessage(m))
}

// planCopies plans the canonical file of a message and the inbox copies of the agents in takers. If the sender is an
// agent of this project, planCopies also plans the outbox copy. In all cases, it sets the operation's data for the
// history. A bcc recipient is named only in the sender's copy and in that recipient's own copy (Invariant I7).
func (c *Mail) planCopies(tx *writer.Tx, m *format.Message, plain, full []byte, takers []string) {
	sum := tree.SHA256(plain)
	add := func(path string, data []byte) {
		w := &tree.Write{Path: c.Place(path), Data: data, Sum: sum}
		if len(m.BCC) > 0 {
			w.Sum = tree.SHA256(data)
		}
		tx.Writes = append(tx.Writes, w)
	}
	add(format.CanonicalPath(m.ID, m.Created), plain)
	if IsAgent(m.From) && m.From != format.Postmaster { // Postmaster is not an agent and has no folder
		add(format.OutboxPath(m.From, m.ID, m.Created), full)
	}
	for _, n := range takers {
		file := plain
		if slices.Contains(m.BCC, n) {
			own := *m
			own.BCC = []string{n}
			file = format.Seal(c.Store.Key, format.FormatMessage(&own))
		}
		add(format.InboxPath(n, m.ID, m.Created), file)
	}
	tx.ID = m.ID
	tx.Summary = SummaryOf(m)
}

// SummaryOf returns the line that the history shows for a message. The line never names a bcc recipient (Invariant
// I7).
func SummaryOf(m *format.Message) string {
	if len(m.To)+len(m.CC) == 0 {
		return fmt.Sprintf("%s: %s", m.From, m.Subject)
	}
	return fmt.Sprintf("%s -> %s: %s", m.From, strings.Join(slices.Concat(m.To, m.CC), ", "), m.Subject)
}

// CheckSize returns an error if a message's file or header is too large.
func (c *Mail) CheckSize(file []byte) error {
	if int64(len(file)) > c.Tree.MaxFile() {
		return &refusal.Error{
			What: refusal.TooLarge("The message is {count} bytes long, over the limit of {limit}: send large text as " +
				"an attachment or in several messages."),
			Counts: []int{len(file)},
			Limit:  int(c.Tree.MaxFile()),
		}
	}
	header, _, err := format.SplitMessage(file)
	if err != nil {
		return &refusal.Error{
			What: refusal.TooLarge("The message's header is too large ({count} bytes): use fewer recipients or " +
				"attachments."),
			Counts: []int{len(header)},
		}
	}
	return nil
}

// checkFanout returns an error if writing a message's file of size bytes to the inbox of every recipient would exceed
// Config.MaxFanout.
func (c *Mail) checkFanout(m *format.Message, size int) error {
	n, most := len(m.Recipients()), c.Store.MaxFanout
	if int64(n)*int64(size) <= most {
		return nil
	}
	return &refusal.Error{
		What: refusal.TooLarge("The message would add {count 3} bytes to inboxes (body: {count} bytes, recipients: {count 2}), over the " +
			"limit of {limit} ({limit of fan-out}). Send the text as an attachment, which is stored once, or send the message " +
			"to fewer recipients at a time."),
		Counts: []int{len(m.Body), n, n * size},
		Limit:  int(most),
	}
}

// ReadMessage reads and parses a message file. It returns any error from os.Open, and a *tree.FormatError if the file
// is invalid.
func (c *Mail) ReadMessage(path, id string) (*format.Message, []byte, error) {
	data, _, err := c.Tree.Read(path, c.Tree.MaxFile())
	if err != nil {
		return nil, nil, err
	}
	m, err := format.ParseMessage(id, data)
	return m, data, err
}

// NeedRoom returns refusal.MailboxFull if one of the named mailboxes has no room for another unread message. The
// callback coming returns the number of messages that the current group is about to write to a folder. NeedRoom does
// not count these messages for agents of other projects.
func (c *Mail) NeedRoom(ctx context.Context, coming func(folder string) int, names []string) error {
	for _, n := range names {
		p := c.Store.PartyOf(n)
		if p.Email {
			continue
		}
		slug := cmp.Or(p.Project, c.Slug)
		counts, err := c.Store.Index.Counts(ctx, slug, p.Name)
		if err != nil {
			return err
		}
		unread, most := counts.Unread, c.Store.MailboxDepth
		if slug == c.Slug && unread+writer.MaxGroup >= most { // otherwise, even a full group fits
			unread += coming(format.AgentsDir + "/" + n + "/" + format.InboxDir)
		}
		if unread >= most {
			return &refusal.Error{
				What:   refusal.MailboxFull,
				Name:   n,
				Counts: []int{unread},
				Limit:  most,
			}
		}
	}
	return nil
}

// Delivery returns the agent's copy of a message, after checking that the copy exists on disk. It returns ErrNotFound
// if there is no such copy, and Group.Behind's error if the index is out of date.
func (c *Mail) Delivery(g *writer.Group, agent, id string) (*index.Delivery, error) {
	if err := c.NeedAgent(g.Ctx, refusal.Agent, agent); err != nil {
		return nil, err
	}
	d, err := c.Store.Index.Delivery(g.Ctx, c.Slug, agent, id, index.WithoutBody, nil)
	if err != nil {
		return nil, err
	}
	if d == nil {
		return nil, c.NoDelivery(g.Ctx, agent, id)
	}
	return d, g.Present(d.CopyPath)
}

// ContentNow returns the content of a file on disk, or nil if the file does not exist.
func (c *Mail) ContentNow(path string) ([]byte, error) {
	data, _, err := c.Tree.Read(path, c.Tree.MaxFile()+format.MaxHeader)
	switch {
	case tree.FaultOf(err) == tree.FaultGone:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return append([]byte{}, data...), nil // not nil, even for an empty file
}
