package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	mcpserver "mailtree/mcp"
)

func problemsCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "problems",
		Short: "List invalid files and how to fix them",
		Long: "List invalid files: the path, the line, what is wrong and how to fix it. A file that you fix disappears from the\n" +
			"list. `mailtree doctor` checks more than this.",
		Args: cobra.NoArgs,
	}
	f := p.addDeskFlags(c)
	all := c.Flags().Bool("all", false, "list the invalid files of every project")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *all {
			return p.withServer(c.Context(), func(ctx context.Context, client *cli.Client) error {
				d := &deskWork{Client: client, Screen: cli.NewScreen(p.std.out, p.variable), json: f.json}
				return listProblems(ctx, d)
			})
		}
		return p.atDesk(c.Context(), f, nobodys, nil, listProblems)
	}
	return c
}

func listProblems(ctx context.Context, d *deskWork) error {
	return askVerb(ctx, d, "problems", struct{}{}, func(found *mcpserver.Problems) error {
		return showByTemplate(ctx, d, "problems", found)
	})
}

// placeOf returns a file and line in the form that editors accept. If line is 0, it returns only the file.
func placeOf(path string, line int) string {
	if line == 0 {
		return path
	}
	return fmt.Sprintf("%s:%d", path, line)
}
