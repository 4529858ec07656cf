package main

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	"mailtree/mcp/mail"
)

func summaryCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "summary [ID]",
		Short: "Show a thread's open questions, decisions and actions",
		Long: "Show a thread's unanswered questions, its decisions and its open actions. Decisions and actions are lines in its\n" +
			"messages that begin with, for example, \"Decision:\" or \"TODO:\". ID is the id of the thread, or the id or row number\n" +
			"of a message in it; without ID, the command shows the first thread that is waiting for you. It does not mark\n" +
			"anything as read.",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: p.completeThread,
	}
	f := p.addDeskFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return p.atMessage(c.Context(), f, nobodys, args, func(ctx context.Context, d *deskWork, id string) error {
			ask := params{"project_key": d.Slug, "thread_id": id}
			return call(ctx, d, "summarize_thread", ask, func(s *mail.ThreadSummary) error {
				showSummary(d, s)
				return nil
			})
		})
	}
	return c
}

// showSummary prints a thread's summary, including its unanswered questions, decisions and open actions.
func showSummary(d *deskWork, s *mail.ThreadSummary) {
	d.Tell("%s\n", d.Bold(cli.Line(cmp.Or(s.Subject, s.Thread))))
	d.Tell("%s\n", d.Faint(cli.Line(count(s.Messages, "message")+": "+strings.Join(s.Participants, ", "))))
	if s.Text != "" {
		d.Printf("\n%s", d.Markdown(cli.Text(s.Text), 0))
	}
	none := true
	for _, part := range s.Parts() {
		if len(part.Items) == 0 {
			continue
		}
		none = false
		d.Printf("\n%s\n", d.Bold(part.Title))
		for _, item := range part.Items {
			d.Tell("  %s: %s\n", cli.Line(cmp.Or(item.Owner, item.From)), cli.Line(item.Text))
		}
	}
	if none {
		d.Tell("%s\n", d.Faint("no questions, decisions or open actions"))
	}
	if s.Truncated {
		d.Tell("%s\n", d.Faint("only the newest lines are shown, because the thread is long"))
	}
}
