package maildir

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

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/outgoing"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// Outside says which mail may leave for other domains. The zero value allows none.
type Outside struct {
	Allow []string // domains in lower case; "*": all
	Rate  int      // most emails that a mailbox sends in an hour; 0: OutsideRate
	// Queued is told of what was queued, once that is durable and indexed. It must not block; it may be nil.
	Queued func(items []outgoing.Item)
}

// OutsideRate is the default limit of emails to other domains from one mailbox in an hour. Each recipient
// counts.
const OutsideRate = 60

// SendsOutside reports whether any mail may leave for other domains.
func (s *Store) SendsOutside() bool { return len(s.cfg.Outside.Allow) > 0 }

// allows reports whether mail may go to an address of another domain.
func (o *Outside) allows(address string) bool {
	_, domain, _ := strings.Cut(address, "@")
	return slices.Contains(o.Allow, "*") || slices.Contains(o.Allow, domain)
}

// refuseOutside refuses recipients at domains that no mail may go to. It names agents of similar names, unless
// a guest asks.
func (p *Project) refuseOutside(ctx context.Context, guest bool, s *strangers) error {
	e := &Error{
		What:  refusal.NotFound("Nothing was sent: this server sends no mail to {names} {arg}. {gateway} {near}"),
		Field: s.of,
		Name:  s.names[0],
		More:  s.names[1:],
	}
	if guest {
		return e
	}
	if err := p.addAgents(ctx, e, s.names); err != nil {
		return err
	}
	return e
}

// UnknownSender is the sender of mail from outside that does not have exactly one. Nothing is sent to it.
const UnknownSender = "unknown-sender@invalid"

var toUnknownSender = refusal.Invalid("Nothing was sent: {name} {arg} stands for the sender of mail that does not name one. Nobody gets " +
	"mail there.")

// refuseAutomatic refuses the answer of a program to mail from outside that is automatic, so that two programs do
// not answer each other. Spec: RFC 3834 2.
func (p *Project) refuseAutomatic(ctx context.Context, d *Draft) error {
	if d.InReplyTo == "" || d.origin.Person() {
		return nil
	}
	answered, err := p.store.index.Message(ctx, p.Slug, p.store.Domains().IDNamed(d.InReplyTo), index.WithoutBody, nil)
	if err == nil && answered == nil {
		answered, err = p.store.index.FromElsewhere(ctx, p.Slug, d.InReplyTo)
	}
	if err != nil || answered == nil || !answered.Automatic || !slices.Contains(slices.Concat(d.To, d.CC, d.BCC), answered.From) {
		return err
	}
	return &Error{
		What: refusal.Invalid("Nothing was sent: message {id} of {name} was written by a program or sent on by a list, and such mail gets no " +
			"answer from a program. A person can answer it, on a page or in a terminal."),
		Field: refusal.InReplyTo,
		Name:  answered.From,
		ID:    answered.ID,
	}
}

// fromFileOutside refuses a file in an outbox with recipients at other domains: a `git pull` can bring such a file.
var fromFileOutside = refusal.Invalid("{name} {arg} is at another domain, and a file in an outbox mails nobody there, because others can put " +
	"it there by Git: send it from the command line, the page or a tool.")

// isAgent reports whether a party of a message is an agent and no address, of whichever domain.
func isAgent(party string) bool { return !strings.Contains(party, "@") }

// Outgoing returns what is to be sent from the project to other domains.
func (p *Project) Outgoing() *outgoing.Folder {
	return &outgoing.Folder{Tree: p.Tree, Project: p.Slug, Key: p.store.key.Seed(), Log: p.store.cfg.Log}
}

// planQueue plans a file of the queue for each recipient of a message at another domain. Only a message that
// this server sends now is queued: an outbox copy that was made by hand or pulled by Git mails nobody.
func (p *Project) planQueue(g *writer.Group, tx *writer.Tx, m *format.Message) error {
	var items []outgoing.Item
	from := p.store.Domains().Of(m.From)
	for _, to := range m.Recipients() {
		if isAgent(to) {
			continue
		}
		if _, err := format.ParseAddress(from); err != nil {
			return &Error{
				What:  refusal.Invalid("{field} {name} cannot write to other domains: {cause}."),
				Field: refusal.From,
				Name:  m.From,
				Err:   err,
			}
		}
		i := outgoing.Item{
			ID:        outgoing.ID(m.ID, to),
			Project:   p.Slug,
			Message:   m.ID,
			MessageID: p.store.Domains().EmailID(m.ID),
			From:      from,
			To:        to,
			State:     outgoing.Queued,
			Queued:    g.Now,
			Next:      g.Now,
		}
		data, err := outgoing.Encode(p.store.key.Seed(), &i)
		if err != nil {
			return err
		}
		tx.Create(outgoing.Path(i.ID), data)
		items = append(items, i)
	}
	tx.After = nil
	if queued := p.store.cfg.Outside.Queued; queued != nil && len(items) > 0 {
		tx.After = func() { queued(items) }
	}
	return nil
}

// noteUnanswerable notes that no answer can reach the sender of a message to other domains.
func (s *Sent) noteUnanswerable(ctx context.Context, p *Project) error {
	receives, err := p.Receives(ctx, s.From)
	if receives || err != nil {
		return err
	}
	s.Notes = append(slices.Clone(s.Notes), &Error{
		What:  refusal.Note("{=name} has no address, so nobody at other domains can answer. {give an address}"),
		Name:  s.From,
		Other: p.Slug,
	})
	return nil
}

// emails counts the emails of the last hour by mailbox. It is safe for concurrent use.
type emails struct {
	mu   sync.Mutex
	sent map[string][]time.Time // by project and agent, oldest first
	read map[string]bool        // the projects whose queue was asked for what an earlier server sent
}

// remember counts what the queue of a project says that an earlier server was given to send. It returns
// ErrUnavailable if the queue cannot be read.
func (e *emails) remember(p *Project, now time.Time) error {
	if e.read[p.Slug] {
		return nil
	}
	items, err := p.Outgoing().Since(now.Add(-time.Hour))
	if err != nil {
		return refusal.Disk(err)
	}
	slices.SortFunc(items, func(a, b outgoing.Item) int { return a.Queued.Compare(b.Queued) })
	for _, i := range items {
		agent, _, _ := strings.Cut(i.From, "@")
		e.sent[p.Slug+"/"+agent] = append(e.sent[p.Slug+"/"+agent], i.Queued)
	}
	e.read[p.Slug] = true
	return nil
}

// count counts n emails of an agent. It returns ErrUnavailable, and counts nothing, if they are over the
// limit, or if it is not known what an earlier server sent.
func (e *emails) count(p *Project, agent string, n int, now time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sent == nil {
		e.sent, e.read = map[string][]time.Time{}, map[string]bool{}
	}
	if err := e.remember(p, now); err != nil {
		return err
	}
	mailbox, most := p.Slug+"/"+agent, p.store.cfg.Outside.Rate
	sent := slices.DeleteFunc(e.sent[mailbox], func(at time.Time) bool { return now.Sub(at) >= time.Hour })
	e.sent[mailbox] = sent
	if len(sent)+n <= most {
		e.sent[mailbox] = append(sent, slices.Repeat([]time.Time{now}, n)...)
		return nil
	}
	return &Error{
		What: refusal.Unavailable("{=name} may send {limit} emails to other domains in an hour ({limit of emails}), {count} are sent, and " +
			"this message would be {count 2} more. Nothing was sent; try again later."),
		Name:   agent,
		Counts: []int{len(sent), n},
		Limit:  most,
	}
}

// Deliveries returns what became of a message for its recipients at other domains, in their order. It leaves
// out recipients of whom the queue knows nothing, or nothing any more.
func (p *Project) Deliveries(m *format.Message) (all []outgoing.Item) {
	for _, to := range m.Recipients() {
		if i := p.itemOf(m, to); i != nil {
			all = append(all, *i)
		}
	}
	return all
}

// itemOf returns the item of a message for a recipient; nil if there is none, or if this server did not send
// the message.
func (p *Project) itemOf(m *format.Message, to string) *outgoing.Item {
	if isAgent(to) {
		return nil
	}
	if _, ok := p.store.verifiedHere(m); !ok || m.Project != p.name() {
		return nil
	}
	i, err := p.Outgoing().Get(outgoing.ID(m.ID, to))
	if err != nil {
		p.store.cfg.Log.Warn("what became of a message cannot be read", "project", p.Slug, "id", m.ID, "error", err)
	}
	return i
}

// outsideReceipt returns the receipt of a recipient at another domain. It is delivered once it is sent.
func (p *Project) outsideReceipt(m *format.Message, name, kind string) index.Receipt {
	r := index.Receipt{Agent: name, Kind: kind}
	if i := p.itemOf(m, name); i != nil {
		r.Delivered, r.Status, r.Reply = i.State == outgoing.Sent, string(i.State), i.Reply
	}
	return r
}

// leftFor returns the recipients at other domains who have a message already, or may have it, from its
// receipts. Nothing that is done here takes the message back from them.
func leftFor(m *index.MessageRow) (addresses []string) {
	for _, r := range m.Receipts {
		switch outgoing.State(r.Status) {
		case outgoing.Sending, outgoing.Sent, outgoing.Unknown:
			addresses = append(addresses, r.Agent)
		}
	}
	return addresses
}

// SentOutside returns the sender's copy of a message that this server sent; nil if the message was taken back.
// It returns ErrConflict for a copy that does not have this server's seal, and the errors of the file system.
func (p *Project) SentOutside(ctx context.Context, id string) (*format.Message, error) {
	paths, err := p.store.index.Files(ctx, p.Slug, id)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(paths, func(path string) bool { return format.Locate(path).Kind == format.KindOutbox })
	if i < 0 {
		return nil, nil
	}
	m, _, err := p.readMessage(paths[i], id)
	var bad *tree.FormatError
	switch {
	case tree.FaultOf(err) == tree.FaultGone:
		return nil, nil
	case err != nil && !errors.As(err, &bad):
		return nil, refusal.Disk(err)
	}
	if err == nil {
		if _, ok := p.store.verifiedHere(m); ok && m.Project == p.name() && m.From == format.Locate(paths[i]).Agent {
			return m, nil
		}
	}
	return nil, &Error{What: refusal.Conflict("The copy of {id} in its sender's outbox was changed by hand."), ID: id}
}

// EmailIDs returns the Message-IDs, without < and >, of the message that another one answers, and of those
// before it, oldest first. A message from elsewhere keeps its own.
func (p *Project) EmailIDs(ctx context.Context, m *format.Message) (inReplyTo string, before []string, err error) {
	if m.InReplyTo == "" {
		return "", nil, nil
	}
	answered, err := p.store.index.Message(ctx, p.Slug, m.InReplyTo, index.WithoutBody, nil)
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
	if err := p.nameAsTheyCame(ctx, before); err != nil {
		return "", nil, err
	}
	for i, id := range before {
		before[i] = p.store.Domains().EmailID(id)
	}
	last := len(before) - 1
	return before[last], before[:last], nil
}

// TellUnsent has Postmaster tell the sender of a message, in its thread, which of its items failed, and of which
// it is not known. It tells once of items with the same last id. Recipients in bcc are not named, nor are their
// items, because others can read it (invariant I7). The limit of Postmaster's advice does not count. It returns
// the errors of the writer.
func (p *Project) TellUnsent(ctx context.Context, m *format.Message, items []outgoing.Item) error {
	var failed, unknown strings.Builder
	for _, i := range items {
		name, retry := i.To, fmt.Sprintf(" (%s in the queue of mail to be sent)", i.ID)
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
	subject := "Perhaps not delivered: "
	body := fmt.Sprintf("This is about your message %s (%s).\n", m.ID, format.Printable(m.Subject))
	if failed.Len() > 0 {
		subject = "Not delivered: "
		body += "\nIt was not delivered to these recipients, and is not tried again for them:\n\n" + failed.String()
	}
	if unknown.Len() > 0 {
		body += "\nIt is not known whether it was delivered to these recipients:\n\n" + unknown.String() +
			"\nIt is not sent to them again by itself, because it may have arrived. Whoever runs the server can send it again.\n"
	}
	return p.advise(ctx, advice{
		to:        m.From,
		about:     "undelivered " + m.ID + " " + p.lastOf(items),
		subject:   subject + format.Cut(m.Subject, 900),
		body:      body,
		thread:    cmp.Or(m.ThreadID, m.ID),
		answers:   m.ID,
		boundless: true,
	})
}

// lastOf names the item with the last id, and when it was queued, in a form that tells nobody its recipient.
func (p *Project) lastOf(items []outgoing.Item) string {
	last := slices.MaxFunc(items, func(a, b outgoing.Item) int { return strings.Compare(a.ID, b.ID) })
	sum := hmac.New(sha256.New, p.store.key.Seed())
	fmt.Fprintf(sum, "mailtree undelivered\n%s\n%d", last.ID, last.Queued.UnixMicro())
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
