// Package aimx is the toolset *aimx*: mailboxes, email and hooks, 12 tools, each call authorized by
// the user of the operating system who makes it. The server offers it on the Unix socket only,
// which tells who that is.
//
// A mailbox is an agent; its address is its name at MAIL_DOMAIN. maildir has the rules (mailbox.go,
// box.go, hook.go); this package has names, argument checks, shapes and the words of refusals,
// which programs written for aimx know word for word.
// See docs/email.md, "Texts".
//
// Beyond what holds for every toolset (package tool) a client can rely on this: where the contract
// calls a result a list or a sentence, the text is exactly that, and structuredContent is an object
// around it.
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

// New makes the toolset. It starts nothing.
func New(cfg tool.Config) *tool.Set {
	t := newToolset(cfg)
	set := tool.NewSet(cfg, tool.About{
		Name:         "mailtree-aimx",
		Title:        "Mailtree email",
		Description:  "Mailboxes, email and hooks of your own for agents",
		Instructions: instructions,
		Words:        words,
	}, t.tools()...)
	addPrimer(set.Server())
	return set
}

// primerURI is where clients read the primer: skill://NAME/SKILL.md (SEP-2640, "Resource Mapping").
const primerURI = "skill://mailtree-email/SKILL.md"

// addPrimer lists the primer among the resources: what an agent is to know of the tools, the trust and the
// files.
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

// tools lists the tools in the order of docs/email.md.
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

// known refuses callers whose uid the server does not know, and logs calls of root, who passes
// every check.
func (t *toolset) known(name string, next run) run {
	return func(ctx context.Context, arguments json.RawMessage) (any, error) {
		c := tool.CallerOf(ctx)
		if c.UID < 0 {
			return nil, notAuthorized()
		}
		if c.Root {
			t.log.Info("aimx: root may use every mailbox", "tool", name, "project", c.ProjectKey())
		}
		return next(ctx, arguments)
	}
}

// local returns the name of a mailbox that is given by its name or its address.
func (t *toolset) local(given string) string { return t.store.Domains().Named(given) }

// box opens a mailbox, which is given by its name or its address. A mailbox that does not exist is refused like another user's, to all but root, so that nobody
// learns which names are taken.
func (t *toolset) box(ctx context.Context, name string) (*maildir.OpenBox, error) {
	c := tool.CallerOf(ctx)
	name = t.local(name)
	p, err := t.store.ProjectFor(ctx, c.ProjectKey(), c.User())
	var b *maildir.OpenBox
	if err == nil {
		b, err = p.OpenBox(ctx, name, c.User(), c.Origin)
	}
	if errors.Is(err, maildir.ErrNotFound) {
		what := refusal.MailboxNotYours
		if c.Root {
			what = refusal.UnknownMailbox
		}
		return nil, &maildir.Error{What: what, Field: refusal.Mailbox, Name: name}
	}
	return b, err
}
