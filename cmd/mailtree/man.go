package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func manCommand(p *program) *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "man [COMMAND...]",
		Short: "Print a manual page, or write all of them to a folder",
		Long: "Print the manual page of mailtree or of one of its commands, for `man -l -`:\n\n" +
			"  mailtree man guard install | man -l -\n\n" +
			"With --dir, write the manual pages of all commands to a folder, such as ~/.local/share/man/man1.",
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
			if of, _, err := c.Root().Find(args); err == nil {
				for _, sub := range of.Commands() {
					if sub.IsAvailableCommand() {
						names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			head := &doc.GenManHeader{Section: "1", Source: "mailtree " + version(), Manual: "mailtree"}
			of, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 || dir != "" && len(args) > 0 {
				return usageError(c, errors.New("man needs either the name of a command or --dir"))
			}
			withoutTag(c.Root())
			if dir == "" {
				return doc.GenMan(of, head, p.std.out)
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return fmt.Errorf("cannot create the folder %q for the manual pages: %w", dir, cause(err))
			}
			if err := doc.GenManTree(c.Root(), head, dir); err != nil {
				return fmt.Errorf("cannot write the manual pages to %q: %w", dir, cause(err))
			}
			return nil
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "folder for the pages of all commands; created if it is missing")
	return c
}

// withoutTag omits the date and the generator from each manual page.
func withoutTag(c *cobra.Command) {
	c.DisableAutoGenTag = true
	for _, sub := range c.Commands() {
		withoutTag(sub)
	}
}
