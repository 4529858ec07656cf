package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	"mailtree/maildir"
	"mailtree/maildir/history"
	mcpserver "mailtree/mcp"
)

func undoCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "undo [ID]",
		Short: "Undo your last action, or the last one on a message",
		Long: "Undo your last action, or your last one on a message. You can undo actions on messages (sending, changing,\n" +
			"acknowledging, archiving, hiding, deleting), on claims (claiming, releasing) and on holds (holding an agent, ending a\n" +
			"hold). Marking a message as read or unread is undone only if you specify the message. The command restores only the\n" +
			"files that the action changed. It removes a sent message for everyone, notifies the agents that had read it, and lists\n" +
			"them. A released path is claimed again if no other agent has claimed it. If you run the command again, it undoes the\n" +
			"action before that; --list lists the actions that can be undone. `mailtree redo` redoes what was undone.",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: p.completeMessage,
	}
	f := p.addDeskFlags(c)
	list := c.Flags().Bool("list", false, "list what can be undone, newest first, without undoing anything")
	c.RunE = func(c *cobra.Command, ids []string) error {
		if *list && len(ids) > 0 {
			return usageError(c, errors.New("--list lists everything: omit the message id"))
		}
		return p.atDesk(c.Context(), f, mine, ids, func(ctx context.Context, d *deskWork) error {
			if *list {
				return askAbout(ctx, d, "undoable", "", func(a *mcpserver.Undoable) error { return showUndoable(ctx, d, a) })
			}
			if err := p.confirmMessages(ctx, d, "Undo your last action on", d.IDs); err != nil {
				return err
			}
			return p.askUndoing(ctx, d, "undo", "undone")
		})
	}
	return c
}

func redoCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "redo [ID]",
		Short: "Redo the last undone action, or the last one on a message",
		Long: "Redo the last action that `mailtree undo` undid, or the last one that it undid on a message. The command restores\n" +
			"the files as they were before the undo. Once you have done something new, nothing can be redone. If you run the\n" +
			"command again, it redoes the action undone before that. Agents that had read a message and were notified that it was\n" +
			"withdrawn are notified again. Redo does not restore claims: claim the paths again.",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: p.completeMessage,
	}
	f := p.addDeskFlags(c)
	c.RunE = func(c *cobra.Command, ids []string) error {
		return p.atDesk(c.Context(), f, mine, ids, func(ctx context.Context, d *deskWork) error {
			if err := p.confirmMessages(ctx, d, "Redo the last undone action on", d.IDs); err != nil {
				return err
			}
			return p.askUndoing(ctx, d, "redo", "redone")
		})
	}
	return c
}

// askUndoing asks the server to undo or redo an operation, and prints the result.
func (p *program) askUndoing(ctx context.Context, d *deskWork, verb, done string) error {
	session, err := p.agentsSession()
	if err != nil {
		return err
	}
	ask := mcpserver.MessageAsk{Agent: d.Person, ID: strings.Join(d.IDs, ""), ByAgent: session != ""}
	return askVerb(ctx, d, verb, ask, func(a *maildir.Undone) error {
		showUndone(d, done, verb, a)
		return nil
	})
}

// showUndone prints the operations that were undone or redone. It also prints the operation that the same command would
// undo or redo next.
func showUndone(d *deskWork, how, command string, a *maildir.Undone) {
	showOneUndone(d, how, a)
	for i := range a.Also {
		showOneUndone(d, how, &a.Also[i])
	}
	if a.Next != nil {
		again := ""
		if a.Next.Operation == history.VerbRelease && command == "undo" {
			again = ", which claims it again"
		}
		d.Tell("%s\n", d.Faint("next "+command+": "+d.act(a.Next)+again))
	}
}

// showOneUndone prints an operation that was undone or redone, and says where to find the text that was undone.
func showOneUndone(d *deskWork, how string, a *maildir.Undone) {
	d.Tell("%s: %s\n", how, d.act(&a.OperationInfo))
	if how == "undone" && history.BesideMessage(a.Operation) && a.ID != "" {
		d.Tell("the message to the agent was also withdrawn\n")
	}
	if len(a.Readers) > 0 {
		d.Tell("readers notified: %s\n", listNames(a.Readers))
	}
	d.tellOutside(a.Outside, "it")
	d.tellQueued(a.Queued, how)
	if commit, path, found := strings.Cut(a.Text, ":"); found {
		d.Printf("to recover the text: mailtree redo, or\n  git -C \"$(mailtree path)\" show %.10s:%s\n", commit, cli.Line(path))
	}
}

// tellQueued prints the projects in which the operation will be undone or redone later.
func (d *deskWork) tellQueued(slugs []string, how string) {
	if len(slugs) > 0 {
		d.Tell("queued for %s (will be %s there as soon as the server can write to the project)\n", listNames(slugs), how)
	}
}

// tellOutside prints the recipients at other domains, whose copies cannot be recalled.
func (d *deskWork) tellOutside(addresses []string, what string) {
	if len(addresses) > 0 {
		d.Tell("%s was already sent to %s and cannot be recalled\n", what, listNames(addresses))
	}
}

// doings maps the verbs of operations that can be undone to gerunds.
var doings = map[string]string{
	"send":              "sending",
	"reply":             "sending reply",
	"delete":            "deleting",
	"read":              "reading",
	"pop":               "reading",
	"acknowledge":       "acknowledging",
	"archive":           "archiving",
	"later":             "hiding",
	"unread":            "marking unread",
	"claim":             "claiming",
	"renew":             "renewing",
	history.VerbRelease: "releasing",
	history.VerbHold:    "holding",
	history.VerbGo:      "ending the hold on",
	maildir.VerbAmend:   "editing",
}

// doing returns the gerund of a verb, or the verb itself if doings does not contain it.
func doing(verb string) string { return cmp.Or(doings[verb], verb) }

// act describes an operation. The description contains the verb, the message or the paths, and the number of other
// operations that are undone together with the operation.
func (d *deskWork) act(a *maildir.OperationInfo) (text string) {
	switch {
	case a.ID == "" || history.BesideMessage(a.Operation):
		text = doing(a.Operation) + " " + cli.Line(a.About)
	case a.About == "":
		text = doing(a.Operation) + " " + d.ShortID(a.ID)
	default:
		text = fmt.Sprintf("%s %s \"%s\"", doing(a.Operation), d.ShortID(a.ID), cli.Line(a.About))
	}
	if a.More > 0 {
		text += fmt.Sprintf(" and %d more", a.More)
	}
	return text
}

func showUndoable(ctx context.Context, d *deskWork, a *mcpserver.Undoable) error {
	if len(a.Acts) == 0 {
		return &exitError{exitNothing, errors.New("nothing to undo: none of your recent actions can be undone")}
	}
	return showByTemplate(ctx, d, "undoable", a)
}
