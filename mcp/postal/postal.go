// Package postal implements the *postal* toolset. It consists of two tools, and gives a mailbox to every agent named in
// an address.
//
// The tool check_mail returns each message once, oldest first. Messages sent again with the same msg_id are delivered
// only once. An agent is created when a call first names it, and its mail is in the same tree as other agents' mail.
// The package contains the tools' names, shapes and wording, but no rules. See docs/tools.md, "postal".
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

// Toolset is the MCP server with the two tools.
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
		Description:  "A mailbox for each agent: send to a name, take the oldest message",
		Instructions: instructions,
		Words:        words,
	}, t.tools()...)
	return t
}

func (t *Toolset) tools() []tool.Tool { return []tool.Tool{t.sendToAgent(), t.checkMail()} }

// meet finds the project of the call and the caller's name in it. It creates the project, the caller and the named
// agents if necessary. It creates no agents in other projects.
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

// Plain converts structured content to what postal's functions return: the id, a message with three fields, or null.
// See docs/tools.md, "postal".
func (t *Toolset) Plain(structured []byte) []byte {
	var m mailShape
	if err := json.Unmarshal(structured, &m); err != nil {
		panic(err) // one of the tools produced the JSON
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
