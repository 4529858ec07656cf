package post

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/outgoing"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// OutsideRate is the default maximum number of emails that a mailbox may send to other domains per hour. Each recipient
// is counted separately.
const OutsideRate = 60

// PlanQueue plans a queue file for each of a message's recipients at other domains. Only a message that this server
// is sending now is queued. An outbox copy that a user wrote or Git pulled is not sent to anyone.
func (p *Post) PlanQueue(g *writer.Group, tx *writer.Tx, m *format.Message) error {
	var items []outgoing.Item
	from := p.mail.Store.Domains.Of(m.From)
	for _, to := range m.Recipients() {
		if !p.mail.Store.PartyOf(to).Email {
			continue
		}
		if _, err := format.ParseAddress(from); err != nil {
			return &refusal.Error{
				What:  refusal.Invalid("{field} {name} cannot send mail to other domains: {cause}."),
				Field: refusal.From,
				Name:  m.From,
				Err:   err,
			}
		}
		i := outgoing.Item{
			ID:        outgoing.ID(m.ID, to),
			Project:   p.mail.Slug,
			Message:   m.ID,
			MessageID: p.mail.Store.Domains.EmailID(m.ID),
			From:      from,
			To:        to,
			State:     outgoing.Queued,
			Queued:    g.Now,
			Next:      g.Now,
		}
		data, err := outgoing.Encode(p.mail.Store.Key.Seed(), &i)
		if err != nil {
			return err
		}
		tx.Create(outgoing.Path(i.ID), data)
		items = append(items, i)
	}
	tx.After = nil
	if queued := p.mail.Store.Outside.Queued; queued != nil && len(items) > 0 {
		tx.After = func() { queued(items) }
	}
	return nil
}

// Unanswerable returns a note if replies from other domains cannot reach an agent, and nil otherwise.
func (p *Post) Unanswerable(ctx context.Context, agent string) (*refusal.Error, error) {
	receives, err := p.Receives(ctx, agent)
	if receives || err != nil {
		return nil, err
	}
	return &refusal.Error{
		What:  refusal.Note("{=name} has no address, so recipients at other domains cannot reply. {give an address}"),
		Name:  agent,
		Other: p.mail.Slug,
	}, nil
}

// Count counts n emails from an agent to other domains toward the agent's limit. It returns ErrUnavailable and counts
// nothing if the emails would exceed the limit, or if the project's queue cannot be read.
func (p *Post) Count(agent string, n int, now time.Time) error {
	return p.office.emails.count(p.mail, agent, n, now)
}

// emails counts the emails sent in the last hour, by mailbox. It is safe for concurrent use.
type emails struct {
	mu   sync.Mutex
	sent map[string][]time.Time // times of the emails, by project and agent, oldest first
	read map[string]bool        // projects for which remember has read the queue
}

// remember counts the emails that an earlier run of the server queued, according to the project's queue. It returns
// ErrUnavailable if the queue cannot be read.
func (e *emails) remember(c *core.Mail, now time.Time) error {
	if e.read[c.Slug] {
		return nil
	}
	items, err := c.Outgoing().Since(now.Add(-time.Hour))
	if err != nil {
		return refusal.Disk(err)
	}
	slices.SortFunc(items, func(a, b outgoing.Item) int { return a.Queued.Compare(b.Queued) })
	for _, i := range items {
		agent, _, _ := strings.Cut(i.From, "@")
		e.sent[c.Slug+"/"+agent] = append(e.sent[c.Slug+"/"+agent], i.Queued)
	}
	e.read[c.Slug] = true
	return nil
}

// count counts n emails from an agent toward the agent's limit. It returns ErrUnavailable and counts nothing if the
// emails would exceed the limit, or if the project's queue cannot be read.
func (e *emails) count(c *core.Mail, agent string, n int, now time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sent == nil {
		e.sent, e.read = map[string][]time.Time{}, map[string]bool{}
	}
	if err := e.remember(c, now); err != nil {
		return err
	}
	mailbox, most := c.Slug+"/"+agent, c.Store.Outside.Rate
	sent := slices.DeleteFunc(e.sent[mailbox], func(at time.Time) bool { return now.Sub(at) >= time.Hour })
	e.sent[mailbox] = sent
	if len(sent)+n <= most {
		e.sent[mailbox] = append(sent, slices.Repeat([]time.Time{now}, n)...)
		return nil
	}
	return &refusal.Error{
		What: refusal.Unavailable("{=name} may send {limit} emails an hour to other domains ({limit of emails}). " +
			"{count} were already sent in the last hour, and this message would add {count 2}. Nothing was sent; try again " +
			"later."),
		Name:   agent,
		Counts: []int{len(sent), n},
		Limit:  most,
	}
}

// Deliveries returns a message's delivery state for each of its recipients at other domains, in the recipients'
// order. It omits recipients that are not in the queue or have left it.
func (p *Post) Deliveries(m *format.Message) (all []outgoing.Item) {
	for _, to := range m.Recipients() {
		if i := p.mail.ItemOf(m, to); i != nil {
			all = append(all, *i)
		}
	}
	return all
}

// SentOutside returns the sender's copy of a message that this server sent, or nil if the message was withdrawn. It
// returns ErrConflict for a copy without this server's seal, or errors from the file system.
func (p *Post) SentOutside(ctx context.Context, id string) (*format.Message, error) {
	paths, err := p.mail.Store.Index.Files(ctx, p.mail.Slug, id)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(paths, func(path string) bool { return format.Locate(path).Kind == format.KindOutbox })
	if i < 0 {
		return nil, nil
	}
	m, _, err := p.mail.ReadMessage(paths[i], id)
	var bad *tree.FormatError
	switch {
	case tree.FaultOf(err) == tree.FaultGone:
		return nil, nil
	case err != nil && !errors.As(err, &bad):
		return nil, refusal.Disk(err)
	}
	if err == nil {
		if _, ok := p.mail.Store.VerifiedHere(m); ok && p.mail.IsNamed(m.Project) && m.From == format.Locate(paths[i]).Agent {
			return m, nil
		}
	}
	return nil, &refusal.Error{
		What: refusal.Conflict("This server's seal on the copy of message {id} in its sender's outbox is not valid: the " +
			"file was probably edited by hand."),
		ID: id,
	}
}

// EmailIDs returns the Message-ID of the message that m replies to, and the Message-IDs of the messages before it,
// oldest first. The Message-IDs do not include < and >. A message from another site keeps its own Message-ID.
func (p *Post) EmailIDs(ctx context.Context, m *format.Message) (inReplyTo string, before []string, err error) {
	if m.InReplyTo == "" {
		return "", nil, nil
	}
	answered, err := p.mail.Store.Index.Message(ctx, p.mail.Slug, m.InReplyTo, index.WithoutBody, nil)
	if err != nil {
		return "", nil, err
	}
	ids := slices.Clone(m.References)
	if len(ids) == 0 && answered != nil {
		ids = slices.Clone(answered.References)
		if answered.InReplyTo != "" {
			ids = append(ids, answered.InReplyTo)
		}
	}
	before = append(ids, m.InReplyTo)
	if err := p.mail.NameAsTheyCame(ctx, before); err != nil {
		return "", nil, err
	}
	for i, id := range before {
		before[i] = p.mail.Store.Domains.EmailID(id)
	}
	last := len(before) - 1
	return before[last], before[:last], nil
}

// TellUnsent notifies the sender, in the message's thread, which items failed and for which items the outcome is
// unknown. A notice is identified by the last of its items (see lastOf), and TellUnsent does not send the same notice
// twice. The notice does not identify bcc recipients or their items, because other agents can read it (Invariant I7).
// The limit core.MostNotices does not apply. TellUnsent returns any error from the writer.
func (p *Post) TellUnsent(ctx context.Context, m *format.Message, items []outgoing.Item) error {
	var failed, unknown strings.Builder
	for _, i := range items {
		name, retry := i.To, fmt.Sprintf(" (%s in the queue of outgoing mail)", i.ID)
		if !slices.Contains(slices.Concat(m.To, m.CC), i.To) {
			name, retry = "a recipient in bcc", ""
		}
		reply := format.Printable(strings.ReplaceAll(i.Reply, "\n", " "))
		if i.State == outgoing.Failed {
			fmt.Fprintf(&failed, "- %s: %s. %s\n", name, i.State, reply)
		} else {
			fmt.Fprintf(&unknown, "- %s: %s. %s%s\n", name, i.State, reply, retry)
		}
	}
	subject := "Possibly not delivered: "
	body := fmt.Sprintf("Delivery report for your message %s (%s).\n", m.ID, format.Printable(m.Subject))
	if failed.Len() > 0 {
		subject = "Not delivered: "
		body += "\nThe message was not delivered to these recipients, and the server will not try again:\n\n" + failed.String()
	}
	if unknown.Len() > 0 {
		body += "\nThe server does not know whether the message was delivered to these recipients:\n\n" + unknown.String() +
			"\nBecause the message may have arrived, the server does not send it again on its own. The " +
			"user who runs the server can send it again.\n"
	}
	return p.mail.Notify(ctx, core.Notice{
		To:        m.From,
		About:     "undelivered " + m.ID + " " + p.lastOf(items),
		Subject:   subject + format.Cut(m.Subject, 900),
		Body:      body,
		Thread:    cmp.Or(m.ThreadID, m.ID),
		Answers:   m.ID,
		Boundless: true,
	})
}

// lastOf returns a hash of the item with the last id and of the time when that item was queued. The hash does not
// reveal the item's recipient.
func (p *Post) lastOf(items []outgoing.Item) string {
	last := slices.MaxFunc(items, func(a, b outgoing.Item) int { return strings.Compare(a.ID, b.ID) })
	sum := hmac.New(sha256.New, p.mail.Store.Key.Seed())
	fmt.Fprintf(sum, "mailtree undelivered\n%s\n%d", last.ID, last.Queued.UnixMicro())
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
