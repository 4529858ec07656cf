// Package agentmail implements the *agentmail* toolset. It contains four tools for agents that address each other by
// name.
//
// The caller's name comes from --as or AGENT_NAME. If neither is set, it is the name of the caller's tmux window.
// Inside tmux, the recipients are the session's windows, which need no registration. Outside tmux, they are the
// project's agents. Callers and recipients are registered as ordinary agents when they first appear in a call. Their
// mail is therefore stored in the same tree as all other mail. The package defines the tools' names, result types and
// wording, the size limit and the ignore list. Rules shared with other toolsets are in other packages. See
// docs/reference/agentmail.md.
package agentmail

import (
	"context"
	_ "embed"
	"log/slog"

	"mailtree/maildir"
	"mailtree/mcp/tool"
)

//go:embed instructions.md
var instructions string

type toolset struct {
	cfg tool.Config
	log *slog.Logger
}

// New returns the toolset.
func New(cfg tool.Config) *tool.Set {
	return tool.NewSet(cfg, tool.About{
		Name:         "mailtree-agentmail",
		Title:        "Mailtree agentmail",
		Description:  "Direct messages and presence for agents",
		Instructions: instructions,
		Words:        words,
	}, newToolset(cfg).tools()...)
}

func newToolset(cfg tool.Config) *toolset {
	t := &toolset{cfg: cfg, log: cfg.Log}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	return t
}

func (t *toolset) tools() []tool.Tool {
	return []tool.Tool{t.send(), t.receive(), t.status(), t.listRecipients()}
}

// meet identifies the caller, finds the project, and registers the caller as an agent of the project.
func (t *toolset) meet(ctx context.Context) (*who, *maildir.Project, error) {
	w, err := caller(ctx)
	if err != nil {
		return nil, nil, err
	}
	p, err := t.cfg.Store.EnsureProject(ctx, tool.CallerOf(ctx).ProjectKey())
	if err != nil {
		return nil, nil, err
	}
	if err := w.spell(ctx, p); err != nil {
		return nil, nil, err
	}
	if err := p.Agents.EnsureAgent(ctx, w.name, registration()); err != nil {
		return nil, nil, err
	}
	p.Sessions.SetSeat(w.name, w.seat)
	return w, p, nil
}

func registration() maildir.Registration { return maildir.Registration{Program: "agentmail"} }
