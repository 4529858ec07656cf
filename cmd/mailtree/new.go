package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"mailtree/maildir"
	mcpserver "mailtree/mcp"
)

func newCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "new",
		Short: "Make a project",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(&cobra.Command{
		Use:   "project [PATH]",
		Short: "Make the mail project of a code base, where there is none",
		Long: "Make the mail project of a code base, where there is none: of the Git work tree that PATH lies in (default:\n" +
			"this folder). From then on agents there are told of their mail. Prints what the project is called.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return p.newProject(c.Context(), strings.Join(args, ""))
		},
	})
	return c
}

// newProject makes the project of a path, "" for this folder, and says what it is called.
func (p *program) newProject(ctx context.Context, path string) error {
	made, err := p.ensureProject(ctx, path)
	if err == nil {
		fmt.Fprintf(p.std.out, "project %s: %s\n", made.Slug, made.HumanKey)
	}
	return err
}

// projectHere makes the project of this folder for a client that is set up in it.
func (p *program) projectHere(ctx context.Context) error {
	if err := p.newProject(ctx, ""); err != nil {
		return fmt.Errorf("the client is set up, but the mail has no project of this code base yet: %w. Try `mailtree new project`", err)
	}
	return nil
}

// ensureProject makes the project of a path, "" for this folder, where there is none: through the
// server, or in this process where none runs.
func (p *program) ensureProject(ctx context.Context, path string) (made mcpserver.MadeProject, err error) {
	if path, err = absolute(cmp.Or(path, "."), os.UserHomeDir); err != nil {
		return made, err
	}
	err = askServer(ctx, p.cfg, "project", mcpserver.NewProject{Key: path}, &made)
	if !errors.Is(err, errNoServer) {
		return made, err
	}
	err = p.alone(ctx, func(ctx context.Context, store *maildir.Store) error {
		of, err := store.EnsureProject(ctx, path)
		if err == nil {
			made = mcpserver.Made(of)
		}
		return err
	})
	return made, err
}
