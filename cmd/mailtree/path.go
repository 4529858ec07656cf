package main

import (
	"context"

	"github.com/spf13/cobra"

	"mailtree/maildir/storedir"
)

// projectPath is the JSON output of `mailtree path --json`.
type projectPath struct {
	Project string `json:"project"` // the project's slug
	Path    string `json:"path"`
}

func pathCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "path",
		Short: "Print the project's mail folder",
		Long: "Print the project's mail folder, a Git working tree in the store. It contains the messages, agents and claims as\n" +
			"files. To go there: cd \"$(mailtree path)\"",
		Args: cobra.NoArgs,
	}
	f := p.addDeskFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return p.atDesk(c.Context(), f, nobodys, nil, func(_ context.Context, d *deskWork) error {
			at := projectPath{d.Slug, storedir.Repo(p.cfg.Store, d.Slug)}
			if d.json {
				return p.printJSON(at)
			}
			d.Printf("%s\n", at.Path)
			return nil
		})
	}
	return c
}
