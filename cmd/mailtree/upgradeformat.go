package main

import (
	"context"

	"github.com/spf13/cobra"

	mcpserver "mailtree/mcp"
)

func upgradeFormatCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "upgrade-format",
		Short: "Upgrade a project to the newest format that this version supports",
		Long: "Upgrade a project to the newest format that this version supports. Older versions of mailtree can then no longer use\n" +
			"the project. If a machine that shares the project supports only an older format, the command fails and names that\n" +
			"machine. mailtree never upgrades the format by itself.",
		Args: cobra.NoArgs,
	}
	f := p.addDeskFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return p.atDesk(c.Context(), f, nobodys, nil, func(ctx context.Context, d *deskWork) error {
			return askVerb(ctx, d, "raise-format", struct{}{}, func(r *mcpserver.RaisedFormat) error {
				if r.Was >= r.Format {
					d.Printf("project %s has format %d, the newest that this version of mailtree supports\n", r.Project, r.Was)
				} else {
					d.Printf("project %s now has format %d (was %d)\n", r.Project, r.Format, r.Was)
				}
				return nil
			})
		})
	}
	return c
}
