package maildir

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/keys"
	"mailtree/maildir/refusal"
	"mailtree/maildir/writer"
)

// Box is the mail of one agent. Its verbs are what that agent does: the agent, and how who works for it came, are named once. Safe for
// concurrent use.
type Box struct {
	p      *Project
	agent  string
	origin format.Origin
}

// Box is the mail of that agent, for one who came so. That there is such an agent is asked by each verb.
func (p *Project) Box(agent string, origin format.Origin) *Box { return &Box{p, agent, origin} }

// perform has an operation of the agent written, and notes that the agent was here.
func (b *Box) perform(ctx context.Context, tx *writer.Tx) error {
	defer b.p.noteSeen(ctx, b.agent)
	return b.p.Writer.Do(ctx, tx)
}

// OpenBox is a mailbox opened by somebody who may use it: its verbs ask no further who calls. Safe for
// concurrent use.
type OpenBox struct {
	Mailbox
	box *Box
	by  Caller
}

// OpenBox opens a mailbox. Errors: ErrNotFound; ErrDenied when it is not the caller's.
// See docs/email.md, "Mailboxes and users".
func (p *Project) OpenBox(ctx context.Context, name string, by Caller, origin format.Origin) (*OpenBox, error) {
	m, err := p.Mailbox(ctx, name, by)
	if err != nil {
		return nil, err
	}
	return &OpenBox{*m, p.Box(m.Name, origin), by}, nil
}

// List lists copies by file name, last first, which is newest first for ids that we make. What is
// not valid is not among them and takes no place on a page.
func (b *OpenBox) List(ctx context.Context, q index.BoxQuery) ([]index.BoxRow, error) {
	q.Project, q.Agent = b.box.p.Slug, b.Name
	if b.by.UID == b.Owner { // root may look at what is another's
		defer b.box.p.noteSeen(ctx, b.Name)
	}
	return b.box.p.store.index.Box(ctx, q)
}

// Whether a message that was sent has come to everybody.
const (
	Delivered = "delivered" // this server wrote every copy, or every recipient has one
	Pending   = "pending"   // a file that somebody put into the outbox and that not every recipient has
)

// Delivery says whether a row of the outbox has come to everybody, and since when; the zero time
// where that is not known. It is computed: no header says it.
func (b *OpenBox) Delivery(r *index.BoxRow) (status string, at time.Time) {
	if _, ok := b.box.p.store.verifiedHere(&r.Message); ok {
		return Delivered, r.Created // all copies or none
	}
	all := r.Recipients()
	slices.Sort(all)
	if all = slices.Compact(all); len(all) > 0 && r.Holders >= len(all) {
		return Delivered, time.Time{}
	}
	return Pending, time.Time{}
}

// How far a message in an inbox is to be trusted.
const (
	Trusted   = "true"  // sealed by this server for that inbox, and the sender known by peer credentials or token
	Untrusted = "false" // made or changed by hand, pulled, or put into an inbox that it was not sent to
	Unproven  = "none"  // sealed by this server, which took the sender's word for who it is
)

// trust computes how far a copy in an agent's inbox is to be trusted, from the copy's own text.
// See docs/email.md, "Trust".
func (p *Project) trust(m *format.Message, agent string) string {
	auth, sealed := p.store.verifiedHere(m)
	switch {
	case !sealed || m.Project != p.name() || !slices.Contains(m.Recipients(), agent):
		return Untrusted
	case auth == "token" || strings.HasPrefix(auth, "uid:"):
		return Trusted
	}
	return Unproven
}

// Letter is one copy, read from its file.
type Letter struct {
	index.BoxRow
	Data       []byte       // the file as it is on disk, or the piece of it that there was room for
	Size       int64        // bytes of the whole file
	Next       int64        // offset of the rest of the file; 0: Data goes to its end
	Trust      string       // Trusted, Untrusted, Unproven; of an inbox copy
	Voucher    keys.Voucher // who vouches for the file's own text
	References []string     // ids of the messages before it in its thread, oldest first
}

// LetterQuery says which copy is read, and how much of it.
type LetterQuery struct {
	ID   string
	Sent bool        // the outbox's
	Room *index.Room // with the offset in the file to begin at; nil: all of it
	// Beside is how many bytes the answer has beside Data. With Room it is needed.
	Beside func(l *Letter) int
}

// Read reads the owner's copy of one message; it marks nothing. Errors: ErrNotFound; ErrInvalid for
// the room's Offset; those of Room.Reserve.
func (b *OpenBox) Read(ctx context.Context, q LetterQuery) (*Letter, error) {
	id, sent := b.box.p.store.Domain().IDNamed(q.ID), q.Sent
	rows, err := b.List(ctx, index.BoxQuery{ID: id, Sent: sent, Limit: 1})
	if err == nil && len(rows) == 0 {
		err = b.missing(id)
	}
	if err != nil {
		return nil, err
	}
	l := &Letter{BoxRow: rows[0]}
	st, err := b.box.p.Tree.Stat(l.CopyPath)
	if err == nil && q.Room != nil && st.Size > int64(q.Room.Small) {
		if err := q.Room.Reserve(ctx, 2*st.Size); err != nil { // the file, and the text in it
			return nil, err
		}
	}
	m, data, err := b.box.p.readMessage(l.CopyPath, id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, b.missing(id)
	}
	if err != nil {
		return nil, refusal.Disk(err)
	}
	if !sent {
		l.Trust = b.box.p.trust(m, b.Name)
	}
	l.Voucher, _ = b.box.p.store.VerifiedIn(&index.MessageRow{Project: b.box.p.Slug, Message: *m})
	l.References = b.references(ctx, m)
	return l, l.piece(data, q)
}

// piece puts into the letter what there is room for of its file. Errors: ErrInvalid for the room's
// Offset.
func (l *Letter) piece(data []byte, q LetterQuery) error {
	room := q.Room
	l.Data, l.Size = data, int64(len(data))
	if room == nil {
		return nil
	}
	switch from := room.Offset; {
	case from > l.Size:
		return &Error{
			What:   refusal.OffsetBeyond,
			Field:  refusal.FileOffset,
			Counts: []int{int(from)},
			Limit:  int(l.Size),
		}
	case format.StartsWithin(string(data[max(0, from-utf8.UTFMax+1):min(from+utf8.UTFMax, l.Size)]), int(min(from, utf8.UTFMax-1))):
		return &Error{What: refusal.OffsetInCharacter, Field: refusal.FileOffset, Counts: []int{int(from)}}
	}
	rest := data[room.Offset:]
	text := string(rest[:min(len(rest), room.Large)])
	l.Data = nil // Beside does not count it
	if len(text) < len(rest) {
		text = text[:len(text)-format.HalfCharacter(text)]
	}
	n, _ := room.Fit(text, room.Large-q.Beside(l))
	if l.Data = []byte(text[:n]); n < len(rest) {
		l.Next = room.Offset + int64(n)
	}
	return nil
}

func (b *OpenBox) missing(id string) error {
	if err := b.box.p.Sure(); err != nil {
		return err
	}
	return &Error{What: refusal.NotInMailbox, Name: id, Other: b.Name}
}

// readMessage reads and parses a message file. Errors: as of os.Open; a *tree.FormatError where the
// file is not valid.
func (p *Project) readMessage(path, id string) (*format.Message, []byte, error) {
	data, _, err := p.Tree.Read(path, p.Tree.MaxFile())
	if err != nil {
		return nil, nil, err
	}
	m, err := format.ParseMessage(id, data)
	return m, data, err
}

// Send sends from the mailbox. InReplyTo and References may name messages of any domain; the
// message joins the thread of the first that this mailbox holds, InReplyTo before the newest
// reference. Without InReplyTo, References are ignored. Errors: as Box.Send.
func (b *OpenBox) Send(ctx context.Context, d Draft) (*Sent, error) {
	d.by = &b.by
	if err := b.join(ctx, &d); err != nil {
		return nil, err
	}
	return b.box.Send(ctx, d)
}

// Reply answers a message in the mailbox's inbox. Errors: as Box.Reply; ErrNotFound when the
// message is not there, ErrUnavailable when those whom the reply would go to are not.
func (b *OpenBox) Reply(ctx context.Context, id string, d Draft) (*Sent, error) {
	id = b.box.p.store.Domain().IDNamed(id)
	got, err := b.box.p.store.index.Delivery(ctx, b.box.p.Slug, b.Name, id, index.WithoutBody, nil)
	if err == nil && got == nil {
		err = b.missing(id)
	}
	if err != nil {
		return nil, err
	}
	sent, err := b.box.Reply(ctx, id, d)
	var gone *Error
	if errors.As(err, &gone) && errors.Is(err, ErrNotFound) {
		again := *gone
		again.Kind = ErrUnavailable
		err = &again
	}
	return sent, err
}

// SetRead marks a message of the inbox read or unread; the first time stays. Errors: as of
// Box.SetRead.
func (b *OpenBox) SetRead(ctx context.Context, id string, read bool) error {
	_, err := b.box.SetRead(ctx, id, read)
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrInvalid) { // what else there is, is not the owner's to know
		err = b.missing(id)
	}
	return err
}

// Delete removes the mailbox: see Project.DeleteMailbox.
func (b *OpenBox) Delete(ctx context.Context, force bool) (*Mailbox, error) {
	return b.box.p.DeleteMailbox(ctx, b.Name, force, b.by)
}

// Bounds of the chain of messages before one.
const (
	maxReferences = 100
	maxReference  = format.MaxReference
)

// held finds a message in the mailbox's inbox or outbox; nil when it is in neither. Whoever merely
// knows the id of another's message learns nothing of it, its thread least of all.
func (b *OpenBox) held(ctx context.Context, id string) (*index.BoxRow, error) {
	for _, sent := range []bool{false, true} {
		rows, err := b.box.p.store.index.Box(ctx, index.BoxQuery{Project: b.box.p.Slug, Agent: b.Name, Sent: sent, ID: id, Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(rows) > 0 {
			return &rows[0], nil
		}
	}
	return nil, nil
}

// join puts a draft into the thread that it answers in.
func (b *OpenBox) join(ctx context.Context, d *Draft) error {
	if d.InReplyTo == "" {
		d.References = nil
		return nil
	}
	before := slices.Clone(d.References)
	slices.Reverse(before)
	before = append([]string{d.InReplyTo}, before...)
	for _, id := range before[:min(len(before), maxReferences)] {
		m, err := b.held(ctx, id)
		if err != nil {
			return err
		}
		if m != nil {
			d.ThreadID = orElse(m.ThreadID, m.ID)
			return nil
		}
	}
	oldest := format.Cut(before[len(before)-1], format.MaxThread) // whoever answers the same meets here
	m, err := b.box.p.store.index.Message(ctx, b.box.p.Slug, oldest, index.WithoutBody, nil)
	if err == nil && m == nil { // else it is the thread of a message of others
		d.ThreadID = oldest
	}
	return err
}

// references follows a message back to the beginning of its thread. What this mailbox does not hold
// ends the chain.
func (b *OpenBox) references(ctx context.Context, m *format.Message) []string {
	chain := []string{}
	for m != nil && m.InReplyTo != "" && !slices.Contains(chain, m.InReplyTo) && len(chain) < maxReferences {
		chain = slices.Insert(chain, 0, m.InReplyTo)
		if len(m.References) > 0 {
			named := slices.Clone(m.References[max(0, len(m.References)-maxReferences):])
			named = slices.DeleteFunc(named, func(id string) bool { return slices.Contains(chain, id) || len(id) > maxReference })
			return append(named, chain...)
		}
		row, err := b.held(ctx, m.InReplyTo)
		if err != nil || row == nil {
			break
		}
		m = &row.Message
	}
	return chain
}
