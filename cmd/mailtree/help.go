package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	"mailtree/maildir/format"
	"mailtree/maildir/lazy"
)

// daily lists the commands that a user needs every day, in the order of `mailtree --help`.
var daily = []string{
	"read", "reply", "yes", "later", "send", "ack", "archive", "thread", "search", "undo", "agents", "claim", "hold", "desk", "open",
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
	fmt.Fprint(w, cli.Fold(text.String(), cmp.Or(width, text.Len())))
}

// addHelp makes the help of root show the daily commands, each with an example.
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

// addHelpCommand adds the command `help` and its subcommand `help all`, which shows every command.
func (p *program) addHelpCommand(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil {
		panic(err) // cobra always adds the command
	}
	help.Args = func(_ *cobra.Command, args []string) error {
		if _, rest, err := root.Find(args); err != nil || len(rest) > 0 {
			var all []string
			for _, c := range root.Commands() {
				all = append(all, c.Name())
			}
			return fmt.Errorf("unknown command %s%s; `%s help all` lists all commands", format.Quote(strings.Join(args, " ")),
				meant(format.Near(args[0], all)), root.Name())
		}
		return nil
	}
	help.AddCommand(&cobra.Command{
		Use:   "all",
		Short: "List all commands",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return cli.NewScreen(p.std.out, p.variable).Paged(c.Context(), func(s *cli.Screen) error {
				p.printHelp(s.Out, root, nil)
				return nil
			})
		},
	})
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
		"`mailtree setup CLIENT` connects a client, `mailtree serve` runs the server.\n" +
		"`mailtree COMMAND --help` shows details, `mailtree help all` lists all commands.\n")
	fmt.Fprint(p.std.out, cli.Fold(text.String(), cmp.Or(cli.NewScreen(p.std.out, p.variable).Width, text.Len())))
}
