package main

import (
	"context"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	mcpserver "mailtree/mcp"
)

func projectsCommand(p *program) *cobra.Command {
	var asJSON, yes bool
	var remove, why string
	c := &cobra.Command{
		Use:   "projects",
		Short: "List projects and your unread mail in each",
		Long: "List the projects of the store and your unread mail in each. With --why, show which project a folder belongs to and\n" +
			"which rule determines it. With --remove, delete a project with its mail, agents, claims and Git history. The deletion\n" +
			"cannot be undone, not even by `mailtree undo`. The command asks before it deletes anything.",
		Args: cobra.NoArgs,
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	c.Flags().StringVar(&remove, "remove", "", "delete the project with this path or slug permanently")
	c.Flags().StringVar(&why, "why", "", "show which project the given folder belongs to, and why")
	c.Flags().BoolVar(&yes, "yes", false, "with --remove: delete without asking")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if remove != "" {
			return p.removeProject(c.Context(), remove, yes, asJSON)
		}
		if c.Flags().Changed("why") {
			return p.explainFolder(why, asJSON)
		}
		return p.listProjects(c.Context(), asJSON)
	}
	return c
}

func (p *program) listProjects(ctx context.Context, asJSON bool) error {
	me, err := p.me()
	if err != nil {
		return err
	}
	return p.withServer(ctx, func(ctx context.Context, c *cli.Client) error {
		d := &deskWork{Client: c, Screen: cli.NewScreen(p.std.out, p.variable), json: asJSON}
		ask := mcpserver.ProjectsAsk{Person: me}
		return askVerb(ctx, d, "projects", ask, func(l *mcpserver.Projects) error {
			return showByTemplate(ctx, d, "projects", l)
		})
	})
}
