package sending

import (
	"cmp"
	"context"
	"slices"

	"mailtree/maildir/attachment"
	"mailtree/maildir/core"
	"mailtree/maildir/crossing"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/post"
	"mailtree/maildir/refusal"
	"mailtree/maildir/writer"
)

// Sender sends a project's mail. It is safe for concurrent use.
type Sender struct {
	mail    *core.Mail
	post    *post.Post
	carrier *crossing.Carrier
}

// New returns the sender of a project. The carrier delivers messages to the store's other projects.
func New(mail *core.Mail, post *post.Post, carrier *crossing.Carrier) *Sender {
	return &Sender{mail, post, carrier}
}

// Send delivers an order either to all recipients or to none, and updates the order to match the sent message. When
// Send returns, the files are durable and indexed, except for copies in the projects that Sent.Queued lists. The server
// writes these copies later.
//
// It returns ErrNotFound for an unknown sender or for unknown recipients, all of which are listed with similar names.
// It returns ErrInvalid or ErrTooLarge for an invalid draft, and ErrConflict if the key was used for other content. It
// returns ErrUnavailable if, for example, the disk is full or read-only, or if a mailbox is full for a Bounded draft.
// Even then, Send succeeds if the message was already delivered with the same key. See docs/reference/tools.md,
// "Sending".
func (s *Sender) Send(ctx context.Context, d *Order) (*Sent, error) {
	brought, err := s.readDraft(ctx, d)
	if err != nil {
		return nil, err
	}
	var sent *Sent
	passage := s.carrier.Begin(s.mail)
	tx := &writer.Tx{Op: writer.Op{Verb: d.Verb, Agent: d.From}}
	if d.Key != "" {
		// A message with the same idempotency key may be in a file that currently cannot be read. Because Sure is set,
		// the writer then refuses the operation.
		tx.Facts, tx.Sure = []string{core.KeyFact(d.From, d.Key)}, true
	}
	if d.InReplyTo != "" {
		tx.Facts = append(tx.Facts, core.MarkFact(d.From))
	}
	counted := 0 // number of emails to other domains; counted once, even if the plan runs several times
	tx.Plan = func(g *writer.Group) error {
		sent, tx.Marks = &Sent{Notes: brought.Notes}, ""
		if err := passage.Reset(); err != nil {
			return err
		}
		if err := s.NeedParties(g.Ctx, d); err != nil {
			return err
		}
		if err := s.refuseAutomatic(g.Ctx, d); err != nil {
			return err
		}
		sent.Message = d.Message(s.mail.Name(), brought.Files)
		if d.Key != "" {
			first, err := s.sentBefore(g.Ctx, &sent.Message)
			if err != nil || first != nil {
				sent.Again = true
				if first != nil {
					sent.Message = *first
				}
				return err
			}
		}
		if d.Bounded {
			if err := s.mail.NeedRoom(g.Ctx, g.Coming, sent.Recipients()); err != nil {
				return err
			}
		}
		outside := slices.DeleteFunc(sent.Recipients(), func(n string) bool { return !s.mail.Store.PartyOf(n).Email })
		if len(outside) > counted {
			if err := s.post.Count(d.From, len(outside), g.Now); err != nil {
				return err
			}
			counted = len(outside)
		}
		if len(outside) > 0 {
			note, err := s.post.Unanswerable(g.Ctx, d.From)
			if err != nil {
				return err
			}
			if note != nil {
				sent.Notes = append(slices.Clone(sent.Notes), note)
			}
		}
		if d.Take != nil {
			if err := d.Take(g, tx); err != nil {
				return err
			}
		}
		if err := s.mail.PlanMessage(g, tx, &sent.Message, brought.Files); err != nil {
			return err
		}
		if sent.Acked, err = s.PlanAutoAck(g, tx, &sent.Message); err != nil {
			return err
		}
		if err := s.post.PlanQueue(g, tx, &sent.Message); err != nil {
			return err
		}
		return passage.Plan(&sent.Message)
	}
	defer s.mail.NoteSeen(ctx, d.From)
	err = s.mail.Act(ctx, tx)
	queued := passage.Finish(ctx, err)
	if err != nil {
		return nil, err
	}
	sent.Queued = queued
	if sent.Again {
		sent.Queued = s.carrier.Waits(s.mail, &sent.Message)
	}
	return sent, nil
}

// readDraft checks a draft and reads its parts: recipients, body and attachments. The result's notes include notes
// about recipients.
func (s *Sender) readDraft(ctx context.Context, d *Order) (*attachment.Brought, error) {
	if format.ServerName(d.From) {
		return nil, &refusal.Error{
			What: refusal.Invalid("{field} {name} is reserved for the server's own messages. Send as an agent with " +
				"another name."),
			Field: refusal.From,
			Name:  d.From,
		}
	}
	notes, err := s.Resolve(ctx, d)
	if err != nil {
		return nil, err
	}
	if err := d.Check(); err != nil {
		return nil, err
	}
	brought, err := s.gather(ctx, d)
	if err != nil {
		return nil, err
	}
	d.Body, brought.Notes = brought.Body, slices.Concat(notes, brought.Notes)
	if d.HTML != "" {
		brought.Files = append(brought.Files, attachment.Alternative(d.HTML))
	}
	for i := range brought.Files {
		if err := brought.Files[i].Look(s.mail.Tree); err != nil {
			return nil, refusal.Disk(err)
		}
	}
	return brought, nil
}

// gather reads the draft's attachments and images. It returns any error from attachment.Intake.Gather.
func (s *Sender) gather(ctx context.Context, d *Order) (*attachment.Brought, error) {
	places, err := s.mail.Store.Places()
	if err != nil {
		return nil, err
	}
	r := attachment.Request{
		Names:    d.Attachments,
		Files:    d.Files,
		Body:     d.Body,
		TextOnly: d.TextOnly,
		Images:   d.Images,
		Tree:     s.mail.Tree,
		CodeBase: s.mail.HumanKey(),
		WorkDir:  d.WorkDir,
		Places:   places,
	}
	if d.By != nil && s.mail.Store.IsForeignUser(*d.By) {
		r.OwnedBy = &d.By.UID
	}
	return s.mail.Store.Intake.Gather(ctx, r)
}

// Resolve replaces the recipients with the names that files store: agents' addresses with the agents' names, and the
// addresses of agents in other projects with addresses that contain a slug. If d.Anywhere is set, a bare name that
// exists in only one other project is replaced with that agent's address, and a note says so. Resolve first removes
// duplicates, and returns an error if there are too many recipients. Therefore, it looks up a limited number of names,
// and each of them only once. It returns ErrConflict or ErrNotFound if an address or a bare name matches several
// agents. If the draft's thread id is a message's short id, Resolve replaces it with the id of that message's thread.
func (s *Sender) Resolve(ctx context.Context, d *Order) (notes []*refusal.Error, err error) {
	if n := d.distinct(); n > format.MaxRecipients {
		return nil, tooManyRecipients(n)
	}
	for _, list := range []struct {
		of    refusal.Field
		names []string
	}{{refusal.To, d.To}, {refusal.CC, d.CC}, {refusal.BCC, d.BCC}} {
		for i, party := range list.names {
			name, note, err := s.resolveOne(ctx, d, list.of, party)
			if err != nil {
				return nil, err
			}
			if list.names[i] = name; note != nil {
				notes = append(notes, note)
			}
		}
	}
	return notes, s.resolveThread(ctx, d)
}

// resolveThread replaces a thread id that is the short id of an existing message with the id of that message's thread.
// Any other text remains, because it may be the id of a new thread.
func (s *Sender) resolveThread(ctx context.Context, d *Order) error {
	if !format.IsShortID(d.ThreadID) || s.isGuest(d) {
		return nil
	}
	id, err := s.mail.Store.FullID(ctx, s.mail.Slug, refusal.Thread, d.ThreadID)
	if err != nil || id == d.ThreadID {
		return err
	}
	m, err := s.mail.Store.Index.Message(ctx, s.mail.Slug, id, index.WithoutBody, nil)
	if err == nil && m != nil {
		d.ThreadID = cmp.Or(m.ThreadID, m.ID)
	}
	return err
}

// resolveOne resolves one recipient. OS users other than the store's own learn nothing about other projects.
func (s *Sender) resolveOne(ctx context.Context, d *Order, field refusal.Field, party string) (string, *refusal.Error, error) {
	name, err := s.mail.Addressed(ctx, party)
	if s.isGuest(d) && (err != nil || s.mail.Store.PartyOf(name).Project != "") {
		if _, nerr := s.mail.NeedParty(ctx, field, name); err != nil || nerr != nil {
			return party, nil, nil // leave the name unchanged for NeedParties to refuse
		}
	}
	if err != nil || !d.Anywhere || !core.IsAgent(name) {
		return name, nil, err
	}
	if is, err := s.mail.HasAgent(ctx, name); err != nil || is {
		return name, nil, err
	}
	address, note, err := s.mail.OnlyNamesake(ctx, field, name)
	if address == "" {
		return name, nil, err
	}
	return address, note, err
}

// sentBefore looks for a message from the same sender to the same recipients with the same key. It returns that message
// if the content is the same, ErrConflict if the content differs, and nil if there is no such message. See
// docs/reference/tools.md, "Sending".
func (s *Sender) sentBefore(ctx context.Context, m *format.Message) (*format.Message, error) {
	rows, err := s.mail.Store.Index.Keyed(ctx, s.mail.Slug, m.From, m.Key)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		old := &rows[i].Message
		if !SameNames(old.Recipients(), m.Recipients()) {
			continue
		}
		if string(contentOf(old)) != string(contentOf(m)) {
			return nil, &refusal.Error{
				What: refusal.Conflict("{=other} already used {field} {name} for a different message to the same recipients " +
					"({id}): use a new value for a new message."),
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
