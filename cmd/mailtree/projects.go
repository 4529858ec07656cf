package main

import (
	"context"

	"github.com/spf13/cobra"

	"mailtree/cli"
	mcpserver "mailtree/mcp"
)

func projectsCommand(p *program) *cobra.Command {
	var asJSON, yes bool
	var remove string
	c := &cobra.Command{
		Use:   "projects",
		Short: "List the projects of the store, and what is unread for you in each",
		Long: "List the projects of the store, and what is unread for you in each. With --remove a project goes: its mail, its\n" +
			"agents, its claims and its history in Git. Nothing brings it back, `mailtree undo` neither. It is asked for first.",
		Args: cobra.NoArgs,
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the answer as JSON")
	c.Flags().StringVar(&remove, "remove", "", "remove the project of that path or slug, for good")
	c.Flags().BoolVar(&yes, "yes", false, "with --remove: do not ask")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if remove != "" {
			return p.removeProject(c.Context(), remove, yes, asJSON)
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
