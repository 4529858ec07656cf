// Package aimx implements the *aimx* toolset. It contains 12 tools for mailboxes, email and hooks. What a caller may do
// depends on the caller's OS user. The server offers the toolset only on the Unix socket, because only the socket
// identifies that user.
//
// Every mailbox belongs to an agent, and its address is the agent's name at MAIL_DOMAIN. The access rules are in
// maildir/access. This package contains the tools' names, argument checks, result types and refusals. Programs written
// for aimx depend on the exact text of the refusals. See docs/reference/email.md, "Wording of refusals".
//
// Package tool documents the guarantees that every toolset makes about its responses. This toolset makes one more
// guarantee. If the contract says that a result is a list or a sentence, the text is exactly that list or sentence, and
// structuredContent is an object that contains it.
package aimx

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/maildir"
	"mailtree/maildir/refusal"
	"mailtree/mcp/tool"
	"mailtree/skills"
)

//go:embed instructions.md
var instructions string

type toolset struct {
	store  *maildir.Store
	log    *slog.Logger
	budget tool.Budget
}

// leaves reports whether the server can send email to other domains.
func (t *toolset) leaves() bool { return t.store != nil && t.store.SendsOutside() }

// New returns the toolset.
func New(cfg tool.Config) *tool.Set {
	t := newToolset(cfg)
	set := tool.NewSet(cfg, tool.About{
		Name:         "mailtree-aimx",
		Title:        "Mailtree email",
		Description:  "Mailboxes, email and hooks for agents",
		Instructions: instructions,
		Words:        words,
	}, t.tools()...)
	addPrimer(set.Server())
	t.addAttachments(set)
	return set
}

// primerURI is the URI of the skill that addPrimer adds: skill://NAME/SKILL.md (SEP-2640, "Resource Mapping").
const primerURI = "skill://mailtree-email/SKILL.md"

// addPrimer adds a skill as a resource. The skill explains what agents need to know about the tools, about trust and
// about the files.
func addPrimer(server *mcp.Server) {
	head := skills.Head(skills.Email)
	primer := &mcp.Resource{
		URI:         primerURI,
		Name:        head["name"],
		Title:       "How to work with email",
		Description: head["description"],
		MIMEType:    "text/markdown",
		Size:        int64(len(skills.Email)),
	}
	server.AddResource(primer, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{
			Contents: []*mcp.ResourceContents{{URI: primer.URI, MIMEType: primer.MIMEType, Text: skills.Email}},
		}, nil
	})
}

func newToolset(cfg tool.Config) *toolset {
	t := &toolset{store: cfg.Store, log: cfg.Log, budget: cfg.Budget}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	return t
}

// tools returns the tools in the order in which docs/reference/email.md lists them.
func (t *toolset) tools() []tool.Tool {
	all := []tool.Tool{
		t.mailboxList(), t.mailboxCreate(), t.mailboxDelete(), t.emailList(), t.emailRead(), t.emailSend(), t.emailReply(),
		t.emailMark(markRead), t.emailMark(markUnread), t.hookCreate(), t.hookList(), t.hookDelete(),
	}
	for i := range all {
		all[i].Run = t.known(all[i].Name, all[i].Run)
	}
	return all
}

type run = func(context.Context, json.RawMessage) (any, error)

// known wraps a tool's code. The wrapper refuses callers with an unknown uid, and logs calls by root, because root
// passes every check.
func (t *toolset) known(name string, next run) run {
	return func(ctx context.Context, arguments json.RawMessage) (any, error) {
		c := tool.CallerOf(ctx)
		if c.UID < 0 {
			return nil, notAuthorized()
		}
		if c.Root {
			t.log.Info("aimx: root is calling a tool, and can access every mailbox", "tool", name, "project", c.ProjectKey())
		}
		return next(ctx, arguments)
	}
}

// local returns the name of a mailbox, given its name or its address.
func (t *toolset) local(given string) string { return t.store.Domains().Named(given) }

// project returns a view of the caller's project that is limited to what the caller may see and do.
func (t *toolset) project(ctx context.Context) (*maildir.View, error) {
	c := tool.CallerOf(ctx)
	return t.store.As(c.User(), c.Origin).Project(ctx, c.ProjectKey())
}

// box opens a mailbox by its name or its address. If the mailbox does not exist, callers other than root get the same
// refusal as for another user's mailbox. They therefore cannot find out which names are taken.
func (t *toolset) box(ctx context.Context, name string) (*maildir.UserBox, error) {
	name = t.local(name)
	v, err := t.project(ctx)
	var b *maildir.UserBox
	if err == nil {
		b, err = v.Box(ctx, name)
	}
	if errors.Is(err, maildir.ErrNotFound) {
		what := refusal.MailboxNotYours
		if tool.CallerOf(ctx).Root {
			what = refusal.UnknownMailbox
		}
		return nil, &maildir.Error{What: what, Field: refusal.Mailbox, Name: name}
	}
	return b, err
}

// email opens a mailbox and returns the full id of one of its emails.
func (t *toolset) email(ctx context.Context, mailbox string, id emailID) (*maildir.UserBox, string, error) {
	b, err := t.box(ctx, mailbox)
	if err != nil {
		return nil, "", err
	}
	whole, err := b.FullID(ctx, refusal.Message, string(id))
	return b, whole, err
}
