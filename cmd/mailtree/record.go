package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	"mailtree/maildir"
	"mailtree/maildir/storedir"
	mcpserver "mailtree/mcp"
)

// inProjects is like atDesk, but covers all projects if all is set. In that case, d has no project.
func (p *program) inProjects(c *cobra.Command, f *deskFlags, all bool, do func(ctx context.Context, d *deskWork) error) error {
	if !all {
		return p.atDesk(c.Context(), f, nobodys, nil, do) // with nobodys, atDesk does not create an agent
	}
	if f.project != "" {
		return usageError(c, errors.New("--all and --project cannot be used together"))
	}
	return p.atStore(c.Context(), f.json, do)
}

// verbIn returns the verb with d's project, or only the verb if d has no project. Without a project, the verb covers
// all projects.
func (d *deskWork) verbIn(verb string) string {
	if d.Slug == "" {
		return verb
	}
	return cli.Of(d.Slug, verb)
}

// sinceFlag adds the --since flag to a command. It returns a function that parses the flag. If the flag is empty, the
// function returns the zero time.
func sinceFlag(c *cobra.Command, value, usage string) func() (time.Time, error) {
	given := c.Flags().String("since", value, usage)
	return func() (at time.Time, err error) {
		if *given == "" {
			return at, nil
		}
		stamp, err := moment(c, "since", *given)
		if err != nil {
			return at, err
		}
		return time.Parse(time.RFC3339Nano, stamp)
	}
}

func decisionsCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "decisions",
		Short: "List decisions, newest first",
		Long: "List decisions, newest first. A decision is a line in a message that begins with \"Decision:\", \"Decided:\", \"Agreed:\"\n" +
			"or \"Resolution:\".",
		Args: cobra.NoArgs,
	}
	f := p.addDeskFlags(c)
	since := sinceFlag(c, "1w", "only decisions after this time, such as 1d (one day ago), yesterday or 2026-01-31")
	all := c.Flags().Bool("all", false, "list the decisions in all projects")
	c.RunE = func(c *cobra.Command, _ []string) error {
		at, err := since()
		if err != nil {
			return err
		}
		return p.inProjects(c, f, *all, func(ctx context.Context, d *deskWork) error {
			ask := func(answer any) error {
				return d.Ask(ctx, d.verbIn("decisions"), mcpserver.DecisionsAsk{Since: at}, answer)
			}
			return present(d, ask, func(found *maildir.Decisions) error {
				return d.Paged(ctx, func(s *cli.Screen) error {
					d.Screen = s
					if len(found.Decisions) == 0 {
						s.Tell("%s\n", s.Faint("no decisions since "+s.Clock(at)))
						return nil
					}
					s.Table(recordRows(d, "", found.Decisions))
					if found.More {
						s.Tell("%s\n", s.Faint("older decisions may be missing; to find them, use `mailtree search`"))
					}
					return nil
				})
			})
		})
	}
	return c
}

func catchUpCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "catchup",
		Short: "Show what happened since you last looked",
		Long: "Show the decisions, the number of closed threads, the unanswered questions and the agents that are stuck. Without\n" +
			"--since, the command starts from your last activity (reading, acknowledging or writing) before your most recent pause of\n" +
			"an hour or more. It does not mark anything as read.",
		Args: cobra.NoArgs,
	}
	f := p.addDeskFlags(c)
	since := sinceFlag(c, "", "only what happened after this time, such as 1d (one day ago), yesterday or 2026-01-31")
	all := c.Flags().Bool("all", false, "show what happened in all projects")
	c.RunE = func(c *cobra.Command, _ []string) error {
		at, err := since()
		if err != nil {
			return err
		}
		return p.inProjects(c, f, *all, func(ctx context.Context, d *deskWork) error {
			ask := func(answer any) error { return p.catchUpOf(ctx, d, at, answer) }
			return present(d, ask, func(u *maildir.CatchUp) error {
				return d.Paged(ctx, func(s *cli.Screen) error {
					d.Screen = s
					showCatchUp(d, u)
					return nil
				})
			})
		})
	}
	return c
}

// catchUpOf asks the server for the events since a time. If the time is zero, it asks for the events since the user
// last looked.
func (p *program) catchUpOf(ctx context.Context, d *deskWork, since time.Time, answer any) error {
	me, err := p.me()
	if err != nil {
		return err
	}
	return d.Ask(ctx, d.verbIn("catchup"), mcpserver.CatchUpAsk{Agent: maildir.PersonName(me), Since: since}, answer)
}

func showCatchUp(d *deskWork, u *maildir.CatchUp) {
	d.Tell("%s\n", d.Bold("Since "+d.Clock(u.Since.Time)))
	stuck := stuckLines(d, u.Stopped, u.Asleep, "")
	if len(u.Decisions)+u.Closed+len(u.Open)+len(stuck) == 0 {
		d.Tell("%s\n", d.Faint("no decisions, closed threads or open questions"))
		return
	}
	rows := recordRows(d, "Decided", u.Decisions)
	if u.Closed > 0 {
		rows = append(rows, cli.Row{Cells: []string{"Closed", "", count(u.Closed, "thread")}})
	}
	d.Table(append(rows, recordRows(d, "Open", u.Open)...))
	for i, line := range stuck {
		label := "Stuck"
		if i > 0 {
			label = "     "
		}
		d.Tell("%s    %s\n", label, cli.Line(line))
	}
}

// recordRows returns the rows of decisions or of open questions. The cells are number, text, author, project, thread
// and age. The first row also contains the label.
func recordRows(d *deskWork, label string, entries []maildir.RecordEntry) (rows []cli.Row) {
	ids := make([]string, len(entries))
	for i := range entries {
		ids[i] = entries[i].ID
		if d.Slug == "" {
			d.rowProjects = append(d.rowProjects, entries[i].Project)
		}
	}
	for i, name := range d.number(ids) {
		e := &entries[i]
		project, about := "", ""
		if d.Slug == "" {
			project = d.Faint(storedir.SlugWord(e.Project))
		}
		if e.Subject != e.Text {
			about = cli.Line(e.Subject)
		}
		rows = append(rows, cli.Row{Cells: []string{
			label, name, cli.Line(e.Text), d.people("", []string{e.From}), project, about, d.Ago(e.At.Format(time.RFC3339)),
		}})
		label = ""
	}
	return rows
}

// sinceLine returns a line that counts the decisions and the closed threads since the user last looked. It returns ""
// if there are none.
func sinceLine(d *deskWork, u *maildir.CatchUp) string {
	var parts []string
	if n := len(u.Decisions); n > 0 {
		parts = append(parts, count(n, "decision"))
	}
	if u.Closed > 0 {
		parts = append(parts, count(u.Closed, "thread")+" closed")
	}
	if len(parts) == 0 {
		return ""
	}
	command := "mailtree catchup"
	if d.Slug == "" {
		command += " --all"
	}
	return fmt.Sprintf("Since %s: %s: %s", d.Clock(u.Since.Time), strings.Join(parts, ", "), command)
}
