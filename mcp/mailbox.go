package mcp

import (
	"context"
	"errors"
	"os"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/hook"
	"mailtree/mcp/tool"
)

// The operator of a store manages the mailboxes of all OS users, so these verbs do not check who owns a mailbox. They
// use the project that the command specifies or, if there is none, the project of the command's working tree. Outside a
// working tree, they use the default project.

// MailboxAsk is the body of POST /mailtree/mailbox-…. It identifies a mailbox by its name or its address.
type MailboxAsk struct {
	Mailbox string `json:"mailbox,omitempty"` // empty to list all mailboxes
	Owner   int    `json:"owner,omitempty"`   // uid of a new mailbox's owner
	Force   bool   `json:"force,omitempty"`   // when deleting a mailbox, also delete its mail

	Trust    string `json:"trust,omitempty"` // a sender that the mailbox should trust: an address or @DOMAIN
	Distrust string `json:"distrust,omitempty"`

	Hook hook.Hook `json:"hook,omitzero"` // the new hook; if only Name is set, the hook to remove
}

// Mailboxes lists the mailboxes in a project that can receive mail, sorted by name.
type Mailboxes struct {
	Mailboxes []MailboxLine `json:"mailboxes"`
	Others    int           `json:"without_address"` // number of agents without an address
}

// MailboxLine is one mailbox in a Mailboxes list.
type MailboxLine struct {
	maildir.Mailbox
	Address string `json:"address"`
	Project string `json:"project"` // slug
	Owner   int    `json:"owner_uid"`
}

// Senders lists the senders at other domains whose mail a mailbox trusts.
type Senders struct {
	Address string   `json:"address"` // address of the mailbox
	Senders []string `json:"senders"`
}

// Hooks is a list of hooks, sorted by mailbox and name.
type Hooks struct {
	Hooks []hook.Hook `json:"hooks"`
}

// operator returns a caller who may do everything: the OS user who runs the server, with root privileges.
func operator() maildir.Caller { return maildir.Caller{UID: os.Geteuid(), Root: true} }

// boxes returns the project that a mailbox command applies to. It does not create a project. It returns ErrNotFound if
// there is no default project yet.
func (s *Server) boxes(ctx context.Context, named *maildir.Project) (*maildir.Project, error) {
	if named != nil {
		return named, nil
	}
	p, err := s.cfg.Store.Project(ctx, tool.CallerOf(ctx).ProjectKey())
	if errors.Is(err, maildir.ErrNotFound) {
		return s.cfg.Store.Project(ctx, maildir.DefaultProject)
	}
	return p, err
}

// openBox opens the mailbox that a command specifies.
func (s *Server) openBox(ctx context.Context, named *maildir.Project, mailbox string) (*maildir.UserBox, *maildir.Project, error) {
	p, err := s.boxes(ctx, named)
	if err != nil {
		return nil, nil, err
	}
	b, err := p.As(operator(), tool.CallerOf(ctx).Origin).Box(ctx, s.cfg.Store.Domains().Named(mailbox))
	return b, p, err
}

func (s *Server) lineOf(p *maildir.Project, m *maildir.Mailbox) MailboxLine {
	return MailboxLine{Mailbox: *m, Address: s.cfg.Store.Domains().Of(m.Name), Project: p.Slug, Owner: m.Owner}
}

func (s *Server) mailboxList(ctx context.Context, named *maildir.Project, _ *MailboxAsk) (out Mailboxes, err error) {
	out.Mailboxes = []MailboxLine{}
	p, err := s.boxes(ctx, named)
	if errors.Is(err, maildir.ErrNotFound) && named == nil {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	all, err := p.As(operator(), format.Origin{}).Mailboxes(ctx)
	if err != nil {
		return out, err
	}
	for i := range all {
		receives, err := p.Post.Receives(ctx, all[i].Name)
		switch {
		case err != nil:
			return out, err
		case receives:
			out.Mailboxes = append(out.Mailboxes, s.lineOf(p, &all[i]))
		default:
			out.Others++
		}
	}
	return out, nil
}

func (s *Server) mailboxCreate(ctx context.Context, named *maildir.Project, ask *MailboxAsk) (line MailboxLine, err error) {
	p, err := s.boxes(ctx, named)
	if errors.Is(err, maildir.ErrNotFound) {
		p, err = s.cfg.Store.EnsureProject(ctx, maildir.DefaultProject)
	}
	if err != nil {
		return line, err
	}
	m, err := p.As(maildir.Caller{UID: ask.Owner}, format.Origin{}).CreateMailbox(ctx, s.cfg.Store.Domains().Named(ask.Mailbox))
	if err != nil {
		return line, err
	}
	return s.lineOf(p, m), nil
}

func (s *Server) mailboxDelete(ctx context.Context, named *maildir.Project, ask *MailboxAsk) (line MailboxLine, err error) {
	b, p, err := s.openBox(ctx, named, ask.Mailbox)
	if err != nil {
		return line, err
	}
	m, err := b.Delete(ctx, ask.Force)
	if err != nil {
		return line, err
	}
	return s.lineOf(p, m), nil
}

// mailboxTrust makes the requested change, if any, and returns the list of senders that a mailbox trusts.
func (s *Server) mailboxTrust(ctx context.Context, named *maildir.Project, ask *MailboxAsk) (out Senders, err error) {
	b, _, err := s.openBox(ctx, named, ask.Mailbox)
	if err != nil {
		return out, err
	}
	switch {
	case ask.Trust != "":
		err = b.TrustSender(ask.Trust)
	case ask.Distrust != "":
		err = b.DistrustSender(ask.Distrust)
	}
	if err != nil {
		return out, err
	}
	senders, err := b.TrustedSenders()
	return Senders{s.cfg.Store.Domains().Of(b.Name), tool.Listed(senders)}, err
}

func (s *Server) mailboxHooks(ctx context.Context, named *maildir.Project, ask *MailboxAsk) (out Hooks, err error) {
	p, err := s.boxes(ctx, named)
	if errors.Is(err, maildir.ErrNotFound) && named == nil && ask.Mailbox == "" {
		return Hooks{tool.Listed[hook.Hook](nil)}, nil
	}
	if err != nil {
		return out, err
	}
	all, err := p.As(operator(), format.Origin{}).Hooks(ctx, s.cfg.Store.Domains().Named(ask.Mailbox))
	return Hooks{tool.Listed(all)}, err
}

func (s *Server) mailboxHook(ctx context.Context, named *maildir.Project, ask *MailboxAsk) (made hook.Hook, err error) {
	b, _, err := s.openBox(ctx, named, ask.Mailbox)
	if err != nil {
		return made, err
	}
	h, err := b.CreateHook(ctx, ask.Hook)
	if err != nil {
		return made, err
	}
	return *h, nil
}

func (s *Server) mailboxUnhook(ctx context.Context, named *maildir.Project, ask *MailboxAsk) (gone hook.Hook, err error) {
	p, err := s.boxes(ctx, named)
	if err != nil {
		return gone, err
	}
	return hook.Hook{Name: ask.Hook.Name}, p.As(operator(), format.Origin{}).DeleteHook(ctx, ask.Hook.Name)
}
