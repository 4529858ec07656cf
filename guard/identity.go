package guard

import (
	"context"
	"os/exec"
	"strings"

	"mailtree/maildir/format"
	"mailtree/maildir/storedir"
	"mailtree/maildir/tree"
)

// identity identifies the agent that makes a change.
type identity struct {
	name   string // "" if unknown
	hint   string // a sentence for the user if the name is not an agent of the project
	person bool   // whether the agent is the user at the terminal
}

// identify determines which agent is committing. AGENT_NAME takes precedence. Without it, identify tries the commit's
// author, the name of the tmux window, and the name of the user at the terminal, and uses the first that is an agent of
// the project. Git passes the author in GIT_AUTHOR_NAME to pre-commit hooks only. In other hooks, identify asks Git for
// the author. If the agents cannot be read, identify returns ErrUnavailable. See docs/reference/guard.md, "Install".
func (c *check) identify(ctx context.Context, t *tree.Tree) (identity, error) {
	g := c.git
	if who, err := agentOf(t, "AGENT_NAME", strings.TrimSpace(lookup(g.env, "AGENT_NAME"))); err != nil || who.name != "" {
		return who, err
	}
	author := lookup(g.env, "GIT_AUTHOR_NAME")
	if author == "" {
		author = g.author(ctx)
	}
	for _, name := range []string{author, tmuxWindow(ctx, g.env)} {
		if agent, _, err := storedir.AgentNamed(t, name); err != nil || agent != "" {
			return identity{name: agent}, err
		}
	}
	if c.q.Person == nil {
		return identity{}, nil
	}
	agent, _, err := storedir.AgentNamed(t, c.q.Person())
	return identity{name: agent, person: true}, err
}

// agentOf returns the project's agent with the given name, or an unknown identity if there is no such agent. source
// describes where the name comes from. If the agents cannot be read, agentOf returns ErrUnavailable.
func agentOf(t *tree.Tree, source, name string) (identity, error) {
	if name == "" {
		return identity{}, nil
	}
	agent, near, err := storedir.AgentNamed(t, name)
	if err != nil || agent != "" {
		return identity{name: agent}, err
	}
	hint := source + " is " + safe(name) + ", but the project has no such agent."
	if len(near) > 0 {
		hint += " Did you mean " + strings.Join(near, " or ") + "?"
	}
	return identity{name: name, hint: hint}, nil
}

// author returns the author name that Git would use for a commit, or "" if there is none.
func (g *git) author(ctx context.Context) string {
	ident, err := g.line(ctx, "var", "GIT_AUTHOR_IDENT")
	name, _, ok := strings.Cut(ident, " <")
	if err != nil || !ok {
		return ""
	}
	return name
}

// tmuxWindow returns the name of the tmux window in which the commit is made, or "" outside tmux.
func tmuxWindow(ctx context.Context, env []string) string {
	pane := lookup(env, "TMUX_PANE")
	if lookup(env, "TMUX") == "" || pane == "" {
		return ""
	}
	c := exec.CommandContext(ctx, "tmux", "display-message", "-p", "-t", pane, "#W")
	c.Env = env
	out, err := c.Output()
	if err != nil {
		return ""
	}
	return format.NameOfWindow(string(out))
}
