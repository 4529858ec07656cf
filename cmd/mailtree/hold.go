package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	"mailtree/maildir"
	mcpserver "mailtree/mcp"
)

func holdCommand(p *program) *cobra.Command {
	var length string
	var ttl time.Duration
	c := &cobra.Command{
		Use:   "hold AGENT [TEXT]",
		Short: "Ask an agent to stop changing files",
		Long: "Put an agent on hold. The agent gets a message with your text. Until the hold ends, the hooks of the agent's client\n" +
			"refuse its edits in the project, and the guard refuses its commits. `mailtree go` ends the hold. A hold is advisory:\n" +
			"it cannot stop changes that the agent makes with shell commands. Only users can hold agents.",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: p.completeAgent,
		PreRunE: func(c *cobra.Command, _ []string) (err error) {
			ttl, err = lease(c, length)
			return err
		},
	}
	f := p.addDeskFlags(c)
	c.Flags().StringVar(&length, "for", "8h", "how long to hold the agent, such as 30m, 8h or 3d")
	c.RunE = func(c *cobra.Command, args []string) error {
		ask := mcpserver.HoldAsk{Agent: args[0], Reason: strings.Join(args[1:], " "), Seconds: int(ttl.Seconds())}
		return p.askHold(c.Context(), f, "hold", ask, func(d *deskWork, h *maildir.Held) {
			d.Tell("%s is on hold for %s and was notified (%s)\n", h.Agent, d.In(h.Until.Format(time.RFC3339)), d.ShortID(h.ID))
			d.Tell("%s\n", d.Faint("to end the hold: mailtree go "+h.Agent+d.at+"   undo: "+d.undoing()))
			p.tellUnguarded(c.Context(), d)
		})
	}
	return c
}

func goCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "go AGENT",
		Short: "End an agent's hold",
		Long: "End an agent's hold (`mailtree hold`), even if another user put the agent on hold. The agent gets a message.\n" +
			"Only users can end holds.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: p.completeAgent,
	}
	f := p.addDeskFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return p.askHold(c.Context(), f, "go", mcpserver.HoldAsk{Agent: args[0]}, func(d *deskWork, h *maildir.Held) {
			d.Tell("%s can continue and was notified (%s)\n", h.Agent, d.ShortID(h.ID))
			d.Tell("%s\n", d.Faint("undo: "+d.undoing()))
		})
	}
	return c
}

// askHold asks the server to begin or end a hold on behalf of the user, and prints the result with show.
func (p *program) askHold(ctx context.Context, f *deskFlags, verb string, ask mcpserver.HoldAsk, show func(*deskWork, *maildir.Held)) error {
	if err := p.needPerson("hold agents or end holds"); err != nil {
		return err
	}
	return p.atDesk(ctx, f, mine, nil, func(ctx context.Context, d *deskWork) error {
		ask.Person = d.Person
		return askVerb(ctx, d, verb, ask, func(h *maildir.Held) error {
			show(d, h)
			return nil
		})
	})
}

// needPerson returns an error if this command seems to run in an agent's session. what describes the action that is
// reserved for users, such as "hold agents".
func (p *program) needPerson(what string) error {
	why, err := p.agentsSession()
	if err != nil || why == "" {
		return err
	}
	return &exitError{exitFailed, fmt.Errorf("only users may %s, and this command seems to come from an agent's session: %s. "+
		"Run it in your own terminal", what, why)}
}

// agentsSession returns the reason why this command seems to run in an agent's session, or "" if it does not. If a
// user's editor also runs agents, the user can set AGENT_NAME to their own name in the editor's terminal, as they can
// for the guard.
func (p *program) agentsSession() (why string, err error) {
	me, err := p.me()
	if err != nil {
		return "", err
	}
	switch name := p.variable("AGENT_NAME"); {
	case name == me:
		return "", nil
	case name != "":
		return fmt.Sprintf("AGENT_NAME is %q", name), nil
	}
	if is, _ := p.agentHere(); is {
		return "an agent's client is running it", nil
	}
	return "", nil
}

// heldLines returns a line for each agent on hold. The line includes the command that ends the hold.
func heldLines(d *deskWork, w *maildir.Waits) (lines []string) {
	for i := range w.Held {
		h := &w.Held[i]
		text := h.Sentence()
		if h.By == w.Agent {
			text = "You hold " + strings.TrimPrefix(text, w.Agent+" holds ")
		}
		command := "mailtree go " + h.Agent
		if h.Project != "" {
			command += " --project " + h.Project
		}
		lines = append(lines, fmt.Sprintf("%s (%s left)   %s", cli.Line(text), d.In(h.Until.Format(time.RFC3339)), d.Faint(command)))
	}
	return lines
}
