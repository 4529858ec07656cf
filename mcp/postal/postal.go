// Package postal implements the *postal* toolset. It contains two tools. Every agent whose name appears in an address
// gets a mailbox.
//
// check_mail returns each message once, oldest first. If a message is sent again with the same msg_id, it is delivered
// only once. An agent is created when a call first mentions it. Its mail is stored in the same tree as all other mail.
// The package contains the tools' names, result types and wording, but no rules. See docs/reference/tools.md, "postal".
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

// Toolset contains the MCP server for the two tools.
type Toolset struct {
	*tool.Set
	cfg tool.Config
}

// New returns the toolset.
func New(cfg tool.Config) *Toolset {
	t := &Toolset{cfg: cfg}
	t.Set = tool.NewSet(cfg, tool.About{
		Name:         "mailtree-postal",
		Title:        "Mailtree postal",
		Description:  "A mailbox for each agent: send by name and receive oldest first",
		Instructions: instructions,
		Words:        words,
	}, t.tools()...)
	return t
}

func (t *Toolset) tools() []tool.Tool { return []tool.Tool{t.sendToAgent(), t.checkMail()} }

// meet finds the project and the caller's name in it. If necessary, it creates the project, the caller and the other
// agents. It does not create agents in other projects.
func (t *Toolset) meet(ctx context.Context, others ...string) (p *maildir.Project, me string, err error) {
	c := tool.CallerOf(ctx)
	if c.Agent == "" {
		return nil, "", tool.Invalid("The server does not know which mailbox is yours: connect to /agents/NAME/mcp, " +
			"or start the bridge with --as NAME.")
	}
	key := c.Project
	if key == "" {
		key = maildir.DefaultProject
	}
	if p, err = t.cfg.Store.EnsureProject(ctx, key); err != nil {
		return nil, "", err
	}
	for _, name := range append([]string{c.Agent}, others...) {
		if t.cfg.Store.InAnotherProject(name) {
			continue
		}
		if err := p.Agents.EnsureAgent(ctx, name, maildir.Registration{Program: "postal"}); err != nil {
			return nil, "", err
		}
	}
	return p, c.Agent, nil
}

// Plain converts structured content to the values that postal's own functions return: an id, a message with three
// fields, or null. See docs/reference/tools.md, "postal".
func (t *Toolset) Plain(structured []byte) []byte {
	var m mailShape
	if err := json.Unmarshal(structured, &m); err != nil {
		panic(err) // cannot happen: one of the tools produced the JSON
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
