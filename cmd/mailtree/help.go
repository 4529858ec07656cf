package main

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	"mailtree/docs"
	"mailtree/maildir/format"
	"mailtree/maildir/lazy"
)

// daily lists the commands that users need every day, in the order in which `mailtree --help` shows them.
var daily = []string{
	"read", "reply", "yes", "later", "send", "ack", "archive", "thread", "search", "undo", "agents", "claim", "hold", "desk", "open",
}

// pageAbout lists, for each command, the page or section of the documentation that describes the command. A topic also
// applies to those subcommands of the command that are not listed.
var pageAbout = []struct{ command, topic string }{
	{"catchup", "commands#catching-up"},
	{"claim", "reference/guard"},
	{"desk", "commands#the-screen"},
	{"edit", "commands#editing"},
	{"gateway", "email#the-gateway"},
	{"guard", "reference/guard"},
	{"hold", "guard#holding-an-agent"},
	{"hook", "hooks"},
	{"key", "tree#seals"},
	{"later", "commands#yes-no-later"},
	{"link", "settings#projects"},
	{"log", "commands#history"},
	{"mailbox", "email"},
	{"mailbox hook", "email#hooks"},
	{"mailbox trust", "email#trust"},
	{"new draft", "tree#sending-by-saving"},
	{"nudge", "agentmail#waking-an-agent-in-tmux"},
	{"open", "page"},
	{"redo", "commands#undo-and-redo"},
	{"search", "tools#search"},
	{"send", "commands#writing"},
	{"serve", "settings"},
	{"service", "settings#as-a-service"},
	{"setup", "clients"},
	{"stdio", "clients#over-stdio"},
	{"summary", "tools#summaries"},
	{"sync", "reference/sync"},
	{"token", "settings#who-may-use-http"},
	{"undo", "commands#undo-and-redo"},
	{"upgrade-format", "versions#upgrading-and-going-back"},
	{"watch", "commands#watching"},
}

// aboutCommand returns the topic in pageAbout for c, or "" if there is none.
func aboutCommand(c *cobra.Command) string {
	for ; c.HasParent(); c = c.Parent() {
		for _, p := range pageAbout {
			if p.command == subPath(c) {
				return p.topic
			}
		}
	}
	return ""
}

// brokenLine matches a line break within a paragraph of a command's long description.
var brokenLine = lazy.Regexp(`(\S)\n(\S)`)

// printHelp writes a command's help to w, fitted to the width of the terminal.
func (p *program) printHelp(w io.Writer, c *cobra.Command, args []string) {
	width := cli.NewScreen(p.std.out, p.variable).Width
	if width > 0 {
		c.Long = brokenLine().ReplaceAllString(c.Long, "$1 $2")
	}
	var text strings.Builder
	c.SetOut(&text)
	new(cobra.Command).HelpFunc()(c, args)
	c.SetOut(p.std.out)
	if topic := aboutCommand(c); topic != "" {
		fmt.Fprintf(&text, "\nMore: %s help %s\n", c.Root().Name(), topic)
	}
	fmt.Fprint(w, cli.Fold(text.String(), cmp.Or(width, text.Len())))
}

// addHelp makes the help of root show the daily commands with an example of each.
func (p *program) addHelp(root *cobra.Command) {
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		if c == root {
			p.dailyHelp(root)
			return
		}
		if c.GroupID != serverGroup {
			for _, name := range []string{"log-format", "log-level"} {
				root.PersistentFlags().Lookup(name).Hidden = true
			}
		}
		p.printHelp(p.std.out, c, args)
	})
}

// addHelpCommand adds the command `help`, which shows the help of a command or a page of the documentation. Its
// subcommand `help all` lists the commands, and `help docs` lists the pages.
func (p *program) addHelpCommand(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil {
		panic(err) // cannot happen: cobra always adds the command
	}
	help.Use = "help [COMMAND | PAGE | PAGE#SECTION]"
	help.Short = "Show help for a command, or a page of the documentation"
	help.Long = "Show help for a command, or a page or a section of the documentation. If a page and a command have the same name,\n" +
		"include the page's folder: `mailtree help reference/guard`. You can also copy a link from a page, such as\n" +
		"../howto/backup.md. Without an argument, show the commands that you need every day."
	isCommand := func(args []string) bool {
		_, rest, err := root.Find(args)
		return err == nil && len(rest) == 0
	}
	help.Args = func(_ *cobra.Command, args []string) error {
		if isCommand(args) {
			return nil
		}
		_, err := p.documentation(root, args)
		return err
	}
	ofCommand := help.Run
	help.Run = nil
	help.RunE = func(c *cobra.Command, args []string) error {
		if isCommand(args) {
			ofCommand(c, args)
			return nil
		}
		text, err := p.documentation(root, args)
		if err != nil {
			return err
		}
		return p.paged(c, func(s *cli.Screen) {
			if name, _, _ := strings.Cut(strings.Join(args, " "), "#"); docs.IsPage(docs.Find(name)) {
				text = s.Markdown(text, 0)
			}
			fmt.Fprint(s.Out, text)
		})
	}
	help.AddCommand(&cobra.Command{
		Use:   "all",
		Short: "List all commands",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.paged(c, func(s *cli.Screen) { p.printHelp(s.Out, root, nil) })
		},
	}, &cobra.Command{
		Use:   "docs",
		Short: "List the pages of the documentation",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.paged(c, func(s *cli.Screen) {
				var rows []cli.Row
				for _, full := range docs.Names() {
					title := docs.Headings(docs.Page(full))[0].Text
					rows = append(rows, cli.Row{Cells: []string{"mailtree help " + pageName(root, full), title}})
				}
				s.Table(rows)
			})
		},
	})
}

// paged calls print with a screen whose output goes through the pager.
func (p *program) paged(c *cobra.Command, print func(*cli.Screen)) error {
	return cli.NewScreen(p.std.out, p.variable).Paged(c.Context(), func(s *cli.Screen) error {
		print(s)
		return nil
	})
}

// pageName returns the shortest name under which `help` finds a page.
func pageName(root *cobra.Command, full string) string {
	name := path.Base(full)
	if c, _, _ := root.Find([]string{name}); docs.Find(name) != full || c != root {
		return full
	}
	return name
}

// documentation returns the page or section that the arguments of `help` select. The error suggests similar names.
func (p *program) documentation(root *cobra.Command, args []string) (string, error) {
	topic := strings.Join(args, " ")
	name, anchor, hasAnchor := strings.Cut(topic, "#")
	page := docs.Page(docs.Find(name))
	if page == "" {
		var names []string
		for _, c := range root.Commands() {
			names = append(names, c.Name())
		}
		for _, full := range docs.Names() {
			names = append(names, pageName(root, full))
		}
		return "", fmt.Errorf("unknown command or page %s%s; `%s help all` lists all commands, and `%[3]s help docs` lists all pages",
			format.Quote(topic), meant(format.Near(args[0], names)), root.Name())
	}
	if !hasAnchor {
		return page, nil
	}
	var anchors []string
	for _, h := range docs.Headings(page) {
		if h.Anchor == anchor {
			return h.Section, nil
		}
		anchors = append(anchors, h.Anchor)
	}
	return "", fmt.Errorf("the page %s has no section %s%s", name, format.Quote(anchor), meant(format.Near(anchor, anchors)))
}

func (p *program) dailyHelp(root *cobra.Command) {
	rows := []cli.Row{{Cells: []string{"  mailtree", "Show what needs your attention, in numbered rows"}}}
	for _, name := range daily {
		if c, _, err := root.Find([]string{name}); err == nil {
			rows = append(rows, cli.Row{Cells: []string{c.Example, c.Short}})
		}
	}
	var text strings.Builder
	s := cli.NewScreen(&text, p.variable)
	s.Printf("%s.\n\n", root.Short)
	s.Table(rows)
	s.Printf("\nRefer to a message by its row number in the last list, or by its id.\n" +
		"`mailtree setup CLIENT` connects a client, and `mailtree serve` runs the server.\n" +
		"`mailtree COMMAND --help` shows details, `mailtree help all` lists all commands, and `mailtree help docs` lists all pages.\n")
	fmt.Fprint(p.std.out, cli.Fold(text.String(), cmp.Or(cli.NewScreen(p.std.out, p.variable).Width, text.Len())))
}
