package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	"mailtree/maildir/hook"
	mcpserver "mailtree/mcp"
)

func mailboxCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "mailbox",
		Short: "Manage mailboxes, their trusted senders and their hooks",
		Long: "A mailbox is an agent with an address. It belongs to an OS user of this machine. Refer to a mailbox by its name or its\n" +
			"address. Without --project, the command uses the project of this Git working tree, or the project named default if the\n" +
			"working tree has none.\n\n" +
			"  mailtree mailbox create support --owner www-data\n" +
			"  mailtree mailbox hook add support on_receive /usr/local/bin/answer --quick",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(mailboxCreateCommand(p), mailboxListCommand(p), mailboxDeleteCommand(p), mailboxTrustCommand(p), mailboxHookCommand(p))
	return c
}

// askAndShow asks the server to run one of its socket's verbs, and prints the result with present. If the flags specify
// a project, the verb runs in that project. If no server is running, askAndShow starts one in the background. It does
// not create a store unless the verb creates something.
func askAndShow[T any](
	ctx context.Context, p *program, f *deskFlags, verb string, ask any, show func(d *deskWork, answer *T) error,
) error {
	d := &deskWork{Screen: cli.NewScreen(p.std.out, p.variable), json: f.json}
	if f.project != "" {
		var err error
		if d.Slug, err = p.projectKey(f.project); err != nil {
			return err
		}
	}
	do := func(ctx context.Context, c *cli.Client) error {
		d.Client = c
		return askVerb(ctx, d, verb, ask, func(answer *T) error { return show(d, answer) })
	}
	if verb == "mailbox-create" {
		return p.asCommand(ctx, p.dial, do)
	}
	return p.withServer(ctx, do)
}

func mailboxCreateCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a mailbox, or give an existing agent an address",
		Args:  cobra.ExactArgs(1),
	}
	f := p.addDeskFlags(c)
	owner := c.Flags().String("owner", "", "the mailbox's owner: an OS user's name or number (default: you)")
	c.RunE = func(c *cobra.Command, args []string) error {
		ask := mcpserver.MailboxAsk{Mailbox: args[0], Owner: os.Getuid()}
		if *owner != "" {
			var err error
			if ask.Owner, err = uidOf(*owner); err != nil {
				return &exitError{exitUsage, fmt.Errorf("--owner: unknown OS user %q", *owner)}
			}
		}
		return askAndShow(c.Context(), p, f, "mailbox-create", ask, func(d *deskWork, m *mcpserver.MailboxLine) error {
			d.Printf("%s\n", m.Address)
			return nil
		})
	}
	return c
}

func mailboxListCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "list",
		Short: "List a project's mailboxes, including those of other OS users",
		Args:  cobra.NoArgs,
	}
	f := p.addDeskFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return askAndShow(c.Context(), p, f, "mailboxes", struct{}{}, func(d *deskWork, l *mcpserver.Mailboxes) error {
			showMailboxes(d, l)
			return nil
		})
	}
	return c
}

func showMailboxes(d *deskWork, l *mcpserver.Mailboxes) {
	rows := make([]cli.Row, len(l.Mailboxes))
	for i, m := range l.Mailboxes {
		rows[i] = cli.Row{Cells: []string{
			m.Address, ownerName(m.Owner), fmt.Sprintf("%d unread of %d", m.Unread, m.Total), fmt.Sprintf("%d sent", m.Sent), m.Project,
		}}
	}
	d.Table(rows)
	switch {
	case l.Others > 0:
		d.Tell("%s\n", d.Faint(count(l.Others, "agent")+" without an address. To give an agent an address: `mailtree mailbox create NAME`"))
	case len(rows) == 0:
		d.Tell("%s\n", d.Faint("no mailboxes yet. To create one: `mailtree mailbox create NAME`"))
	}
}

// ownerName returns the name of the OS user with the given uid. It returns the uid as text if the user has no name, and
// "nobody" if uid is negative.
func ownerName(uid int) string {
	if uid < 0 {
		return "nobody"
	}
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return strconv.Itoa(uid)
	}
	return u.Username
}

func mailboxDeleteCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a mailbox and its hooks; with --force also its mail",
		Args:  cobra.ExactArgs(1),
	}
	f := p.addDeskFlags(c)
	force := c.Flags().Bool("force", false, "delete the mailbox even if it has mail; the mail then remains only in the history "+
		"and in others' mailboxes")
	c.RunE = func(c *cobra.Command, args []string) error {
		ask := mcpserver.MailboxAsk{Mailbox: args[0], Force: *force}
		return askAndShow(c.Context(), p, f, "mailbox-delete", ask, func(d *deskWork, m *mcpserver.MailboxLine) error {
			d.Printf("deleted %s (inbox: %d, sent: %d)\n", m.Address, m.Total, m.Sent)
			return sayNeeded(c.Context(), d, m)
		})
	}
	return c
}

// sayNeeded prints a remark if the server's settings still refer to a mailbox that was just deleted.
func sayNeeded(ctx context.Context, d *deskWork, m *mcpserver.MailboxLine) error {
	var c checked
	if err := d.Ask(ctx, "check-address", mcpserver.CheckAsk{Address: m.Address}, &c); err != nil { // skip the optional remark
		return nil
	}
	if slices.ContainsFunc(c.Missing, func(name string) bool { return strings.EqualFold(name, m.Name) }) {
		d.Tell("GATEWAY_POSTMASTER or GATEWAY_CATCHALL is set to %s, so mail for it is deferred until you create the "+
			"mailbox again: `mailtree mailbox create %s`\n", m.Name, m.Name)
	}
	return nil
}

func mailboxTrustCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "trust NAME [SENDER]",
		Short: "Trust a sender or a domain, or list a mailbox's trusted senders",
		Long: "Make a mailbox trust a sender from another domain. SENDER is an address, or @DOMAIN for the whole domain. The mailbox\n" +
			"then trusts mail from this sender if the mail passes DMARC. Trusted mail wakes the agent and runs the mailbox's hooks.\n" +
			"Without SENDER, the command lists the trusted senders.\n" +
			"\n" +
			"  mailtree mailbox trust support ann@example.net\n" +
			"  mailtree mailbox trust support @example.org --remove",
		Args: cobra.RangeArgs(1, 2),
	}
	f := p.addDeskFlags(c)
	remove := c.Flags().Bool("remove", false, "stop trusting the sender")
	c.RunE = func(c *cobra.Command, args []string) error {
		ask := mcpserver.MailboxAsk{Mailbox: args[0]}
		switch {
		case len(args) == 1 && *remove:
			return usageError(c, errors.New("--remove requires SENDER: specify the address or @DOMAIN to stop trusting"))
		case *remove:
			ask.Distrust = args[1]
		case len(args) == 2:
			ask.Trust = args[1]
		}
		return askAndShow(c.Context(), p, f, "mailbox-trust", ask, func(d *deskWork, s *mcpserver.Senders) error {
			showSenders(d, s)
			return nil
		})
	}
	return c
}

func showSenders(d *deskWork, s *mcpserver.Senders) {
	for _, sender := range s.Senders {
		d.Printf("%s\n", cli.Line(sender))
	}
	if len(s.Senders) == 0 {
		d.Tell("%s\n", d.Faint(s.Address+" does not trust any senders at other domains"))
	}
}

func mailboxHookCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "hook",
		Short: "Manage mail hooks: commands that run when mail arrives or has been sent",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(mailboxHookListCommand(p), mailboxHookAddCommand(p), mailboxHookRemoveCommand(p))
	return c
}

func mailboxHookListCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "list [MAILBOX]",
		Short: "List the hooks of a mailbox, or of all mailboxes in the project",
		Args:  cobra.MaximumNArgs(1),
	}
	f := p.addDeskFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		ask := mcpserver.MailboxAsk{Mailbox: strings.Join(args, "")}
		return askAndShow(c.Context(), p, f, "mailbox-hooks", ask, func(d *deskWork, l *mcpserver.Hooks) error {
			showHooks(d, l)
			return nil
		})
	}
	return c
}

func showHooks(d *deskWork, l *mcpserver.Hooks) {
	rows := make([]cli.Row, len(l.Hooks))
	for i, h := range l.Hooks {
		untrusted := ""
		if h.FireOnUntrusted {
			untrusted = "also untrusted mail"
		}
		rows[i] = cli.Row{Cells: []string{
			cli.Line(h.Mailbox), cli.Line(h.Name), h.Event, fmt.Sprintf("%ds", h.Timeout), untrusted, cli.Line(strings.Join(h.Cmd, " ")),
		}}
	}
	d.Table(rows)
	if len(rows) == 0 {
		d.Tell("%s\n", d.Faint("no hooks"))
	}
}

func mailboxHookAddCommand(p *program) *cobra.Command {
	var h hook.Hook
	c := &cobra.Command{
		Use:   "add [FLAGS] MAILBOX EVENT PROGRAM [ARGUMENT...]",
		Short: "Run a program when mail arrives (on_receive) or has been sent (after_send)",
		Long: "Run a program, specified by its absolute path, when mail arrives in a mailbox (on_receive) or has been sent from it\n" +
			"(after_send), and print the hook's name. The program runs as the mailbox's owner, with the email on standard input.\n" +
			"Put flags before MAILBOX: later flags are passed to the program.\n\n" +
			"  mailtree mailbox hook add --name wake support on_receive /usr/local/bin/claude -p 'Answer the email'",
		Args: cobra.MinimumNArgs(3),
	}
	f := p.addDeskFlags(c)
	c.Flags().SetInterspersed(false)
	c.Flags().StringVar(&h.Name, "name", "", "name of the hook (default: a hash of the event and the command)")
	c.Flags().IntVar(&h.Timeout, "timeout", hook.DefaultTimeout, "time limit for the program, in seconds")
	c.Flags().BoolVar(&h.FireOnUntrusted, "fire-on-untrusted", false, "on_receive: also run for mail from untrusted senders")
	c.RunE = func(c *cobra.Command, args []string) error {
		h.Event, h.Cmd = args[1], args[2:]
		ask := mcpserver.MailboxAsk{Mailbox: args[0], Hook: h}
		return askAndShow(c.Context(), p, f, "mailbox-hook", ask, func(d *deskWork, made *hook.Hook) error {
			d.Printf("%s\n", made.Name)
			return nil
		})
	}
	return c
}

func mailboxHookRemoveCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "remove HOOK",
		Short: "Remove a hook; a run in progress is not interrupted",
		Args:  cobra.ExactArgs(1),
	}
	f := p.addDeskFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		ask := mcpserver.MailboxAsk{Hook: hook.Hook{Name: args[0]}}
		return askAndShow(c.Context(), p, f, "mailbox-unhook", ask, func(d *deskWork, gone *hook.Hook) error {
			d.Printf("removed %s\n", gone.Name)
			return nil
		})
	}
	return c
}
