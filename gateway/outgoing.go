package gateway

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/emersion/go-message/mail"

	"mailtree/gateway/out"
	"mailtree/maildir"
	"mailtree/maildir/attachment"
	"mailtree/maildir/format"
	"mailtree/maildir/outgoing"
)

// Outgoing sends the mail queued by a store's projects.
type Outgoing struct {
	*out.Queue
	items *items
	sends bool // whether the configuration allows sending mail
}

// NewOutgoing returns the queue for a store that will be opened later. It does not start the queue.
func NewOutgoing(cfg *Config, name string, log *slog.Logger) *Outgoing {
	i := &items{log: log, open: map[string]outgoing.Item{}}
	var transport out.Transport = &out.MX{Resolver: cfg.NameServer(), Name: name}
	if cfg.Smarthost != nil {
		smart := *cfg.Smarthost
		smart.Name, smart.Resolver = name, cfg.NameServer()
		transport = &smart
	}
	return &Outgoing{out.NewQueue(i, transport, time.Now, log), i, len(cfg.Allow) > 0}
}

// Run sends mail until ctx is done. If this server is not configured to send mail, Run does nothing, even if another
// server has queued mail, because this server's settings do not specify how to send that mail.
func (o *Outgoing) Run(ctx context.Context) {
	if o.sends {
		o.Queue.Run(ctx)
	}
}

// Queued receives items that the store has added to the queue, and wakes the queue.
func (o *Outgoing) Queued(all []outgoing.Item) {
	for _, i := range all {
		o.items.keep(i)
	}
	o.Wake()
}

// Use sets the store. The caller must call Use before Run.
func (o *Outgoing) Use(store *maildir.Store) { o.items.store = store }

// items contains the queues of all projects. It implements out.Store. It keeps unfinished items in memory, and reads
// their files only once.
type items struct {
	store *maildir.Store
	log   *slog.Logger

	mu     sync.Mutex
	open   map[string]outgoing.Item // unfinished items, by id
	pruned time.Time                // when old files were last removed; zero if the files have not been read yet
	warned bool                     // whether the warning that mail is not signed has been logged
}

// keep keeps an item in memory until the item is finished.
func (s *items) keep(i outgoing.Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i.Ended() {
		delete(s.open, i.ID)
		return
	}
	s.open[i.ID] = i
}

// Open implements out.Store. Once a day, it removes the files of items that were finished long ago.
func (s *items) Open(context.Context) ([]outgoing.Item, error) {
	if now := time.Now(); now.Sub(s.pruned) > 24*time.Hour {
		first := s.pruned.IsZero()
		s.pruned = now
		for _, p := range s.store.Projects() {
			if err := s.readAgain(p, first); err != nil {
				s.log.Error("cannot read a project's outgoing mail queue; will retry", "project", p.Slug, "error", err)
				s.pruned = time.Time{}
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.open), func(a, b outgoing.Item) int { return a.Next.Compare(b.Next) }), nil
}

func (s *items) readAgain(p *maildir.Project, first bool) error {
	err := p.Outgoing().Prune(time.Now())
	if !first {
		return err
	}
	all, oerr := p.Outgoing().Open()
	for _, i := range all {
		s.keep(i)
	}
	return errors.Join(err, oerr)
}

// Find implements out.Store.
func (s *items) Find(ctx context.Context, messageID string) (all []outgoing.Item, err error) {
	id := s.store.Domains().IDNamed(messageID)
	p, err := s.store.ProjectOf(ctx, format.KindCanonical, id)
	if errors.Is(err, maildir.ErrNotFound) || errors.Is(err, maildir.ErrConflict) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m, err := p.Post.SentOutside(ctx, id)
	if m == nil || err != nil {
		return nil, err
	}
	for _, to := range m.Recipients() {
		i, err := p.Outgoing().Get(outgoing.ID(id, to))
		if err != nil {
			return nil, err
		}
		if i != nil {
			all = append(all, *i)
		}
	}
	return all, nil
}

// Get implements out.Store.
func (s *items) Get(ctx context.Context, id string) (outgoing.Item, error) {
	s.mu.Lock()
	i, ok := s.open[id]
	s.mu.Unlock()
	if ok {
		return i, nil
	}
	all, err := s.Find(ctx, id[:max(0, strings.LastIndexByte(id, '-'))])
	if err != nil {
		return outgoing.Item{}, err
	}
	for _, i := range all {
		if i.ID == id {
			return i, nil
		}
	}
	return outgoing.Item{}, out.ErrNoItem
}

// Save implements out.Store. If an item's project has been removed, Save drops the item from memory, and the item is
// not sent.
func (s *items) Save(ctx context.Context, i outgoing.Item) error {
	p, err := s.store.Project(ctx, i.Project)
	if errors.Is(err, maildir.ErrNotFound) {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, i.ID)
		if i.State == outgoing.Sending { // do not send anything if its state cannot be saved
			return err
		}
		return nil
	}
	if err == nil {
		err = p.Outgoing().Save(&i)
	}
	if err == nil {
		s.keep(i)
	}
	return err
}

// Raw implements out.Store.
func (s *items) Raw(ctx context.Context, i outgoing.Item) ([]byte, error) {
	p, m, err := s.original(ctx, &i)
	if err != nil {
		return nil, err
	}
	email, err := s.email(ctx, p, &i, m)
	if err != nil {
		return nil, refused(err)
	}
	raw, err := email.Compose()
	if err != nil {
		return nil, &out.Refusal{Reply: err.Error()}
	}
	return s.sign(raw)
}

// original returns the sender's copy of an item's message. It returns the same errors as Raw.
func (s *items) original(ctx context.Context, i *outgoing.Item) (*maildir.Project, *format.Message, error) {
	p, err := s.store.Project(ctx, i.Project)
	if errors.Is(err, maildir.ErrNotFound) {
		return nil, nil, out.ErrTakenBack
	}
	if err != nil {
		return nil, nil, err
	}
	m, err := p.Post.SentOutside(ctx, i.Message)
	if err == nil && m == nil {
		err = out.ErrTakenBack
	}
	return p, m, refused(err)
}

// refused converts an error to a *out.Refusal if all later attempts would fail with the same error.
func refused(err error) error {
	if errors.Is(err, maildir.ErrConflict) || errors.Is(err, maildir.ErrNotFound) || errors.Is(err, maildir.ErrTooLarge) {
		return &out.Refusal{Reply: err.Error()}
	}
	return err
}

// email converts an item's message to an email.
func (s *items) email(ctx context.Context, p *maildir.Project, i *outgoing.Item, m *format.Message) (*out.Mail, error) {
	domains := s.store.Domains()
	e := &out.Mail{
		From:      mail.Address{Name: m.From, Address: i.From},
		To:        addresses(domains.Of, m.To),
		Cc:        addresses(domains.Of, m.CC),
		Subject:   m.Subject,
		Date:      m.Created,
		MessageID: i.MessageID,
		Body:      m.Body,
		TextOnly:  m.MediaType == format.PlainText,
		Automatic: automatic(m),
	}
	var err error
	if e.InReplyTo, e.References, err = p.Post.EmailIDs(ctx, m); err != nil {
		return nil, err
	}
	for _, a := range m.Attachments {
		stored, err := p.Attachment(a.SHA1, attachment.MaxStored)
		switch {
		case err != nil:
			return nil, err
		case a.Type == format.Alternative:
			e.HTML = string(stored.Data)
		default:
			e.Attachments = append(e.Attachments, out.Attachment{Name: a.Name, Type: a.MediaType, Data: stored.Data})
		}
	}
	return e, nil
}

// automatic returns the Auto-Submitted value for a message, or "" if a user sent the message. Spec: RFC 3834 5.
func automatic(m *format.Message) string {
	switch {
	case m.Person():
		return ""
	case m.InReplyTo != "":
		return "auto-replied"
	}
	return "auto-generated"
}

func addresses(of func(string) string, parties []string) (all []string) {
	for _, party := range parties {
		all = append(all, of(party))
	}
	return all
}

// sign signs an email with the newest key of the store's first domain. If there is no key, it returns the email
// unchanged, and logs once that mail is not signed.
func (s *items) sign(raw []byte) ([]byte, error) {
	domain := s.store.Domains()[0]
	key, selector, err := LoadKey(s.store.Root(), domain)
	if errors.Is(err, fs.ErrNotExist) {
		if !s.warned {
			s.log.Warn("mail to other domains is not signed with DKIM, so many domains will reject it; run `mailtree "+
				"gateway setup`", "domain", domain)
		}
		s.warned = true
		return raw, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot load the signing key: %w", err)
	}
	return (&out.Signer{Domain: domain, Selector: selector, Key: key}).Sign(raw)
}

// Report implements out.Store. It sends no report for messages that were undone.
func (s *items) Report(ctx context.Context, all []outgoing.Item) error {
	p, m, err := s.original(ctx, &all[0])
	var refusal *out.Refusal
	switch {
	case errors.Is(err, out.ErrTakenBack):
		return nil
	case errors.As(err, &refusal): // the sender's copy is unusable, so use the sender in the items
		from, _, _ := strings.Cut(all[0].From, "@")
		m = &format.Message{ID: all[0].Message, From: from, Subject: all[0].Message}
	case err != nil:
		return err
	}
	return p.Post.TellUnsent(ctx, m, all)
}
