package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	"mailtree/maildir"
	"mailtree/maildir/format"
	mcpserver "mailtree/mcp"
)

func syncCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "sync",
		Short: "Share a project's mail with other machines, through a Git repository",
		Long: "Share a project's mail with other machines, through a Git repository that all of them can reach:\n\n" +
			"  git -C \"$(mailtree path)\" remote add origin URL\n" +
			"  mailtree sync on                  on the first machine\n" +
			"  mailtree sync join URL            on every other machine, in its copy of the code\n\n" +
			"Each server then pushes its mail soon after a change, and fetches the mail of the other machines every ten seconds\n" +
			"(SYNC_INTERVAL). The machines agree on who gets each claim. Drafts are not shared.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	for _, sub := range []struct{ do, short string }{
		{"on", "Start sharing the project's mail; sharing continues after a restart"},
		{"off", "Stop sharing; local mail is kept"},
		{"now", "Fetch, merge and push now, and show the result"},
		{"status", "Show whether the mail is shared and which commits are not pushed or merged yet"},
	} {
		c.AddCommand(syncStateCommand(p, sub.do, sub.short))
	}
	c.AddCommand(syncJoinCommand(p))
	return c
}

func syncStateCommand(p *program, do, short string) *cobra.Command {
	c := &cobra.Command{Use: do, Short: short, Args: cobra.NoArgs}
	f := p.addDeskFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return p.atDesk(c.Context(), f, nobodys, nil, func(ctx context.Context, d *deskWork) error {
			return askVerb(ctx, d, "sync", mcpserver.SyncAsk{Do: do}, func(s *maildir.SyncState) error { return showSync(d, s) })
		})
	}
	return c
}

// showSync prints the state of a project's sync with other machines. If there is a problem, it returns an error that
// has exit status 1.
func showSync(d *deskWork, s *maildir.SyncState) error {
	if !s.On {
		d.Printf("sync is off\n")
		return nil
	}
	facts := []cli.Row{
		{Cells: []string{"sync", "on, through " + cli.Line(s.Remote)}},
		{Cells: []string{"in sync", d.seen(stamp(s.SyncedAt))}},
		{Cells: []string{"to push", some(s.Ahead, "(commits)")}},
		{Cells: []string{"to merge", some(s.Behind, "(commits)")}},
		{Cells: []string{"left out", some(s.Skipped, "(links, executables and files with invalid names are not shared)")}},
		{Cells: []string{"rewritten", d.seen(stamp(s.Rewritten))}},
		{Cells: []string{"problem", cli.Line(s.Problem)}},
		{Cells: []string{"since", d.seen(stamp(s.Since))}},
		{Cells: []string{"claims", cli.Line(s.Claims)}},
	}
	d.Table(told(facts))
	if s.String() != "" {
		return &exitError{code: exitFailed}
	}
	return nil
}

// stamp formats a time. It returns "" for the zero time.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return format.FormatTime(t)
}

func syncJoinCommand(p *program) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "join URL [PATH]",
		Short: "Create a project from the mail that other machines share at URL",
		Long: "Create a project from the mail that other machines share at URL, for the code base at PATH (default: this folder),\n" +
			"and share it from now on. If the code base already has a project, the command fails.",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			ask := mcpserver.JoinAsk{URL: args[0]}
			var err error
			if ask.Key, err = absolute(cmp.Or(strings.Join(args[1:], ""), "."), os.UserHomeDir); err != nil {
				return err
			}
			if path, err := absolute(ask.URL, os.UserHomeDir); err == nil {
				if _, err := os.Stat(path); err == nil { // make the path absolute, because the server runs in a different folder
					ask.URL = path
				}
			}
			var made mcpserver.MadeProject
			err = p.asCommand(c.Context(), p.dial, func(ctx context.Context, c *cli.Client) error {
				return c.Ask(ctx, "join", ask, &made)
			})
			switch {
			case err != nil:
				return fmt.Errorf("cannot join the shared repository %s: %w", format.Printable(args[0]), err)
			case asJSON:
				return p.printJSON(made)
			}
			p.tellProject(made)
			fmt.Fprintln(p.std.out, "Its mail is shown as unverified until you trust the keys of the machines that sealed it. "+
				"To list the keys: `mailtree key list`. To trust one: `mailtree key trust ID`")
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}
