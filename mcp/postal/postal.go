// Package postal is the toolset *postal*: two tools, a mailbox for whoever is named in the address.
//
// A message is handed out once, the oldest first; sending it again under its msg_id delivers it
// once. Agents are made when they are first named, with a profile, and are agents like all others:
// their mail lies in the same tree. The toolset owns names, shapes and words and no rule. See
// docs/tools.md, "postal".
package postal

import (
	"context"
	_ "embed"
	"encoding/json"

	"mailtree/maildir"
	"mailtree/mcp/tool"
)

//go:embed instructions.md
var instructions string

// Toolset is the MCP server of the tools.
type Toolset struct {
	*tool.Set
	cfg tool.Config
}

// New makes the toolset. It starts nothing.
func New(cfg tool.Config) *Toolset {
	t := &Toolset{cfg: cfg}
	t.Set = tool.NewSet(cfg, tool.About{
		Name:         "mailtree-postal",
		Title:        "Mailtree postal",
		Description:  "A mailbox for each agent: send to a name, take the oldest message",
		Instructions: instructions,
		Words:        words,
	}, t.tools()...)
	return t
}

func (t *Toolset) tools() []tool.Tool { return []tool.Tool{t.sendToAgent(), t.checkMail()} }

// meet finds the project of the call, and the caller's name in it. The project, the caller and
// whoever else is named are made at their first contact.
func (t *Toolset) meet(ctx context.Context, others ...string) (p *maildir.Project, me string, err error) {
	c := tool.CallerOf(ctx)
	if c.Agent == "" {
		return nil, "", tool.Invalid("Whose mailbox is meant is not known: call /agents/NAME/mcp, or start the bridge with --as NAME.")
	}
	key := c.Project
	if key == "" {
		key = maildir.DefaultProject
	}
	if p, err = t.cfg.Store.EnsureProject(ctx, key); err != nil {
		return nil, "", err
	}
	for _, name := range append([]string{c.Agent}, others...) {
		if err := p.EnsureAgent(ctx, name, maildir.Registration{Program: "postal"}); err != nil {
			return nil, "", err
		}
	}
	return p, c.Agent, nil
}

// Plain is what postal's functions return: the id, a message of three fields, or null. See
// docs/tools.md, "postal".
func (t *Toolset) Plain(structured []byte) []byte {
	var m mailShape
	if err := json.Unmarshal(structured, &m); err != nil {
		panic(err) // one of the tools made it
	}
	switch {
	case m.Empty:
		return []byte("null")
	case m.From == "":
		return tool.Encode(m.ID)
	}
	m.Auth = ""
	return tool.Encode(m)
}
