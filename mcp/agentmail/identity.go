package agentmail

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/mcp/agentmail/tmux"
	"mailtree/mcp/tool"
)

// who is an identified caller.
type who struct {
	name    string
	seat    maildir.Pane // the zero value outside tmux
	windows []string     // agent names of the session's windows; nil outside tmux
}

// caller identifies the caller. The name comes from the connection or, if the connection has none, from the tmux
// window. If there is no name, or if it is not a valid agent name, caller returns ErrInvalid. If tmux does not respond,
// it returns ErrUnavailable. See docs/reference/agentmail.md, "Who is who".
func caller(ctx context.Context) (*who, error) {
	c := tool.CallerOf(ctx)
	w := &who{name: c.Agent}
	if c.Tmux != "" {
		if err := w.lookAround(ctx, c); err != nil {
			return nil, err
		}
	}
	switch {
	case w.name == "":
		return nil, tool.Invalid("The server does not know your agent name: " +
			"start the bridge with --as NAME, set AGENT_NAME, or run the bridge inside tmux.")
	case !format.ValidName(w.name) && c.Agent == "":
		return nil, tool.Invalid("Your tmux window is called %q, which is not a valid agent name: "+
			"rename it (tmux rename-window NAME), or set AGENT_NAME.", tool.Clip(w.name))
	case !format.ValidName(w.name):
		return nil, tool.Invalid("The name %q is not a valid agent name: "+
			"use at most 64 letters, digits, '.', '_' and '-', beginning with a letter or digit.", tool.Clip(w.name))
	}
	return w, nil
}

// lookAround lists the windows of the tmux session and finds the caller's own window.
func (w *who) lookAround(ctx context.Context, c tool.Caller) error {
	session, err := tmux.Parse(c.Tmux)
	if err != nil {
		return noTmux(err)
	}
	panes, err := session.Panes(ctx, c.Pane)
	if err != nil {
		return noTmux(err)
	}
	w.seat = maildir.Pane{Tmux: c.Tmux, Pane: c.Pane}
	w.windows = []string{}
	for _, p := range panes {
		name := format.NameOfWindow(p.Window)
		if p.ID == c.Pane && w.name == "" {
			w.name, w.seat.Window = cmp.Or(name, p.Window), p.Window
		}
		if name != "" && !slices.Contains(w.windows, name) {
			w.windows = append(w.windows, name)
		}
	}
	return nil
}

// spell replaces the windows' names with the project's agent names if they differ only in letter case.
func (w *who) spell(ctx context.Context, p *maildir.Project) error {
	if w.windows == nil {
		return nil
	}
	agents, err := p.Agents.List(ctx)
	if err != nil {
		return err
	}
	for _, a := range agents {
		for i, name := range w.windows {
			if strings.EqualFold(name, a.Name) {
				w.windows[i] = a.Name
			}
		}
		if w.seat.Window != "" && strings.EqualFold(w.name, a.Name) {
			w.name = a.Name
		}
	}
	slices.Sort(w.windows)
	w.windows = slices.Compact(w.windows)
	return nil
}

func noTmux(err error) error {
	return tool.Refused(refusal.ErrUnavailable,
		"The server cannot inspect your tmux session (%v). Restart the bridge in a running session, or unset TMUX and set AGENT_NAME.", err)
}
