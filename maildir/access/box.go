package access

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/keys"
	"mailtree/maildir/outgoing"
	"mailtree/maildir/refusal"
	"mailtree/maildir/sending"
)

// Box gives a View's user access to one mailbox. It is safe for concurrent use.
type Box struct {
	Mailbox
	v *View
}

// Box opens a mailbox. It returns refusal.ErrNotFound if the mailbox does not exist, and ErrDenied if the mailbox does
// not belong to the user. See docs/reference/email.md, "Mailboxes and users".
func (v *View) Box(ctx context.Context, name string) (*Box, error) {
	m, err := v.Mailbox(ctx, name)
	if err != nil {
		return nil, err
	}
	return &Box{*m, v}, nil
}

// Slug returns the slug of the mailbox's project.
func (b *Box) Slug() string { return b.v.mail.Slug }

// File returns the absolute path of a copy's file.
func (b *Box) File(r *index.BoxRow) string {
	return filepath.Join(b.v.mail.Tree.Dir(), filepath.FromSlash(r.CopyPath))
}

// List returns copies in descending order of file name. If a server created the ids, this order is newest first.
// Invalid copies are omitted and do not count toward the query's limit.
func (b *Box) List(ctx context.Context, q index.BoxQuery) ([]index.BoxRow, error) {
	q.Project, q.Agent = b.v.mail.Slug, b.Name
	if b.v.by.UID == b.Owner { // root may be reading another user's mailbox
		defer b.v.mail.NoteSeen(ctx, b.Name)
	}
	return b.v.mail.Store.Index.Box(ctx, q)
}

// Delivery returns these statuses for messages that do not leave this server. For other messages, it returns an
// outgoing.State.
const (
	Delivered = "delivered" // this server wrote all the copies, or every recipient has a copy
	Pending   = "pending"   // a user saved the file in the outbox, but some recipients do not have a copy yet
)

// Delivery reports whether all recipients of a sent message have received it, and when. r is the message's outbox row.
// If the time is unknown, at is zero. Delivery computes the status, because the message's header does not contain it.
func (b *Box) Delivery(r *index.BoxRow) (status string, at time.Time) {
	if left := b.v.post.Deliveries(&r.Message); len(left) > 0 {
		return string(outgoing.Worst(left)), time.Time{}
	}
	if _, ok := b.v.mail.Store.VerifiedHere(&r.Message); ok {
		return Delivered, r.Created // the server writes all copies or none
	}
	all := r.Recipients()
	slices.Sort(all)
	if all = slices.Compact(all); len(all) > 0 && r.Holders >= len(all) {
		return Delivered, time.Time{}
	}
	return Pending, time.Time{}
}

// Deliveries returns the delivery states of a sent message. See post.Post.Deliveries.
func (b *Box) Deliveries(r *index.BoxRow) []outgoing.Item {
	return b.v.post.Deliveries(&r.Message)
}

// RawMessage is one copy of a message, as read from its file. InReplyTo and References identify messages from other
// sites by their original Message-IDs.
type RawMessage struct {
	index.BoxRow
	Data       []byte       // content of the file, or as much of it as fits in RawQuery.Room
	Size       int64        // size of the whole file, in bytes
	Next       int64        // offset at which to continue reading; 0 if Data reaches the end of the file
	Trust      string       // Trusted, Untrusted or Unproven; empty for an outbox copy
	Voucher    keys.Voucher // who vouches for the text in the file
	References []string     // earlier messages in the thread, oldest first
}

// RawQuery selects the copy to read, and how much of it.
type RawQuery struct {
	ID   string
	Sent bool        // read the outbox copy instead of the inbox copy
	Room *index.Room // limits the response's size and sets the starting offset; nil means the whole file
	// Overhead returns the size, in bytes, of everything in the response except Data. Overhead is required if Room is
	// set.
	Overhead func(l *RawMessage) int
}

// Read reads the owner's copy of one message. It does not mark the message read. It returns refusal.ErrNotFound if the
// mailbox has no such message, ErrInvalid if the room's Offset is invalid, or any error from Room.Reserve.
func (b *Box) Read(ctx context.Context, q RawQuery) (*RawMessage, error) {
	id, sent := b.v.mail.Store.Domains.IDNamed(q.ID), q.Sent
	rows, err := b.List(ctx, index.BoxQuery{ID: id, Sent: sent, Limit: 1})
	if err == nil && len(rows) == 0 {
		err = b.missing(id)
	}
	if err != nil {
		return nil, err
	}
	l := &RawMessage{BoxRow: rows[0]}
	st, err := b.v.mail.Tree.Stat(l.CopyPath)
	if err == nil && q.Room != nil && st.Size > int64(q.Room.Small) {
		if err := q.Room.Reserve(ctx, 2*st.Size); err != nil { // for the file's bytes and the text parsed from them
			return nil, err
		}
	}
	m, data, err := b.v.mail.ReadMessage(l.CopyPath, id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, b.missing(id)
	}
	if err != nil {
		return nil, refusal.Disk(err)
	}
	if !sent {
		l.Trust = b.v.mail.Trust(m, b.Name)
	}
	l.Voucher, _ = b.v.mail.Store.VerifiedIn(&index.MessageRow{Project: b.v.mail.Slug, Message: *m})
	if _, sealed := b.v.mail.Store.Verified(m); !sealed {
		l.Problems = nil // without a valid seal, anyone could have written the list
	}
	l.References = b.references(ctx, m)
	named := append(l.References, l.InReplyTo)
	if err := b.v.mail.NameAsTheyCame(ctx, named); err != nil {
		return nil, err
	}
	l.References, l.InReplyTo = named[:len(named)-1], named[len(named)-1]
	return l, l.piece(data, q)
}

// piece sets Data to the part of the message's file that fits within the room's limits. It returns ErrInvalid if the
// room's Offset is invalid.
func (l *RawMessage) piece(data []byte, q RawQuery) error {
	room := q.Room
	l.Data, l.Size = data, int64(len(data))
	if room == nil {
		return nil
	}
	switch from := room.Offset; {
	case from > l.Size:
		return &refusal.Error{
			What:   refusal.OffsetBeyond,
			Field:  refusal.FileOffset,
			Counts: []int{int(from)},
			Limit:  int(l.Size),
		}
	case format.StartsWithin(string(data[max(0, from-utf8.UTFMax+1):min(from+utf8.UTFMax, l.Size)]), int(min(from, utf8.UTFMax-1))):
		return &refusal.Error{What: refusal.OffsetInCharacter, Field: refusal.FileOffset, Counts: []int{int(from)}}
	}
	rest := data[room.Offset:]
	text := string(rest[:min(len(rest), room.Large)])
	l.Data = nil // so that Overhead does not count it
	if len(text) < len(rest) {
		text = text[:len(text)-format.HalfCharacter(text)]
	}
	n, _ := room.Fit(text, room.Large-q.Overhead(l))
	if l.Data = []byte(text[:n]); n < len(rest) {
		l.Next = room.Offset + int64(n)
	}
	return nil
}

// FullID expands the shortened id of an email in the mailbox's inbox or outbox. The errors list only emails in this
// mailbox. See Project.FullID.
func (b *Box) FullID(ctx context.Context, field refusal.Field, short string) (string, error) {
	if short == "" {
		return "", nil
	}
	whole, err := b.held(ctx, short)
	if err != nil || whole != nil {
		return short, err
	}
	return b.v.mail.Store.Lengthen(field, short, func(prefix string) (ids []string, err error) {
		rows, err := b.inEither(ctx, index.BoxQuery{Prefix: prefix, Limit: core.MaxListed})
		for i := range rows {
			ids = append(ids, rows[i].ID)
		}
		return ids, err
	})
}

// inEither runs a query on the inbox and the outbox. It returns the results from the inbox first.
func (b *Box) inEither(ctx context.Context, q index.BoxQuery) (all []index.BoxRow, err error) {
	q.Project, q.Agent = b.v.mail.Slug, b.Name
	for _, q.Sent = range []bool{false, true} {
		rows, err := b.v.mail.Store.Index.Box(ctx, q)
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
	}
	return all, nil
}

func (b *Box) missing(id string) error {
	if err := b.v.mail.Sure(); err != nil {
		return err
	}
	return &refusal.Error{What: refusal.NotInMailbox, Name: id, Other: b.Name}
}

func (b *Box) order(verb string, d sending.Draft) *sending.Order {
	return &sending.Order{Draft: d, Verb: verb, From: b.Name, Origin: b.v.origin, By: &b.v.by}
}

// Send sends a draft from the mailbox. InReplyTo and References may name messages from any domain. The new message
// joins the thread of the first of these messages that this mailbox contains. InReplyTo is checked first, then the
// references, newest first. If InReplyTo is empty, References is ignored. Send returns any error from
// sending.Sender.Send.
func (b *Box) Send(ctx context.Context, d sending.Draft) (*sending.Sent, error) {
	if err := b.join(ctx, &d); err != nil {
		return nil, err
	}
	return b.v.sender.Send(ctx, b.order("send", d))
}

// Reply sends a reply to a message in the mailbox's inbox. It returns ErrNotFound if the message is not in the inbox,
// ErrUnavailable if the reply's recipients do not exist, or any error from sending.Sender.
func (b *Box) Reply(ctx context.Context, id string, d sending.Draft) (*sending.Sent, error) {
	id = b.v.mail.Store.Domains.IDNamed(id)
	got, err := b.v.mail.Store.Index.Delivery(ctx, b.v.mail.Slug, b.Name, id, index.WithoutBody, nil)
	if err == nil && got == nil {
		err = b.missing(id)
	}
	if err != nil {
		return nil, err
	}
	o := b.order("reply", d)
	var sent *sending.Sent
	if err = b.v.sender.MakeReply(ctx, id, o); err == nil {
		sent, err = b.v.sender.Send(ctx, o)
	}
	var gone *refusal.Error
	if errors.As(err, &gone) && errors.Is(err, refusal.ErrNotFound) {
		again := *gone
		again.Kind = refusal.ErrUnavailable
		err = &again
	}
	return sent, err
}

// SetRead marks a message in the inbox read or unread. A message that is already read keeps its read time. SetRead
// returns any error from maildir.Box.SetRead.
func (b *Box) SetRead(ctx context.Context, id string, read bool) error {
	_, err := b.v.marks(b.Name).SetRead(ctx, id, read)
	if errors.Is(err, refusal.ErrNotFound) || errors.Is(err, refusal.ErrInvalid) { // hide other mailboxes' mail
		err = b.missing(id)
	}
	return err
}

// Delete deletes the mailbox. See View.DeleteMailbox.
func (b *Box) Delete(ctx context.Context, force bool) (*Mailbox, error) {
	return b.v.DeleteMailbox(ctx, b.Name, force)
}

// held looks up a message in the mailbox's inbox or outbox by its id or its original Message-ID. It returns nil if the
// message is in neither. This way, a caller that knows only the id of a message in another mailbox learns nothing about
// the message, not even its thread.
func (b *Box) held(ctx context.Context, id string) (*index.BoxRow, error) {
	if strings.Contains(id, "@") {
		m, err := b.v.mail.Store.Index.FromElsewhere(ctx, b.v.mail.Slug, id)
		if err != nil || m == nil {
			return nil, err
		}
		id = m.ID
	}
	rows, err := b.inEither(ctx, index.BoxQuery{ID: id, Limit: 1})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// join adds a draft to the thread of the message that the draft replies to.
func (b *Box) join(ctx context.Context, d *sending.Draft) error {
	if d.InReplyTo == "" {
		d.References = nil
		return nil
	}
	before := slices.Clone(d.References)
	slices.Reverse(before)
	before = append([]string{d.InReplyTo}, before...)
	for _, id := range before[:min(len(before), format.MaxReferences)] {
		m, err := b.held(ctx, id)
		if err != nil {
			return err
		}
		if m == nil {
			continue
		}
		d.ThreadID = cmp.Or(m.ThreadID, m.ID)
		if id == d.InReplyTo {
			d.InReplyTo = m.ID
		}
		return nil
	}
	oldest := format.Cut(before[len(before)-1], format.MaxThread) // all replies that refer to the same oldest message share a thread
	m, err := b.v.mail.Store.Index.Message(ctx, b.v.mail.Slug, oldest, index.WithoutBody, nil)
	if err == nil && m == nil { // if m is not nil, the id belongs to a message in another mailbox
		d.ThreadID = oldest
	}
	return err
}

// references returns the ids of the earlier messages in a message's thread, oldest first. The chain ends at a message
// that is not in this mailbox.
func (b *Box) references(ctx context.Context, m *format.Message) []string {
	chain := []string{}
	for m != nil && !slices.Contains(chain, m.InReplyTo) && len(chain) < format.MaxReferences {
		if m.InReplyTo != "" { // an email may have References without InReplyTo
			chain = slices.Insert(chain, 0, m.InReplyTo)
		}
		if len(m.References) > 0 {
			named := slices.Clone(m.References[max(0, len(m.References)-format.MaxReferences):])
			named = slices.DeleteFunc(named, func(id string) bool { return slices.Contains(chain, id) || len(id) > format.MaxReference })
			return append(named, chain...)
		}
		if m.InReplyTo == "" {
			break
		}
		row, err := b.held(ctx, m.InReplyTo)
		if err != nil || row == nil {
			break
		}
		m = &row.Message
	}
	return chain
}
