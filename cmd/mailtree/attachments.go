package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"mailtree/maildir/attachment"
)

func attachmentsCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "attachments",
		Short: "Inspect attached files",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	var dryRun bool
	gc := &cobra.Command{
		Use:   "gc --dry-run",
		Short: "List attached files that no message refers to",
		Long: "List the files in attachments/ that no message, copy or draft refers to, with their sizes. The command deletes\n" +
			"nothing. To delete files, stop the server and delete them yourself; they stay in the Git history.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !dryRun {
				return usageError(c, errors.New("--dry-run is required, because this version can list files but cannot delete them"))
			}
			return listUnnamed(c.Context(), p)
		},
	}
	gc.Flags().BoolVar(&dryRun, "dry-run", false, "list the files without deleting them")
	c.AddCommand(gc)
	return c
}

// listUnnamed prints the attachments that no message refers to, and their total size.
func listUnnamed(ctx context.Context, p *program) error {
	v, err := openTrees(p.cfg)
	if err != nil {
		return err
	}
	defer v.close()
	files, bytes := 0, int64(0)
	for _, slug := range slices.Sorted(maps.Keys(v.trees)) {
		t := v.trees[slug]
		unnamed, err := attachment.Unnamed(ctx, t)
		if err != nil {
			return fmt.Errorf("cannot check which attachments of %s are in use: %w", slug, err)
		}
		for _, path := range unnamed {
			file := filepath.Join(t.Dir(), path)
			fi, err := os.Lstat(file)
			if err != nil {
				continue // the file was removed after the folder was listed
			}
			fmt.Fprintf(p.std.out, "%s\t%d\n", file, fi.Size())
			files, bytes = files+1, bytes+fi.Size()
		}
	}
	fmt.Fprintf(p.std.out, "%s (%s) that no message refers to\n", count(files, "file"), count(int(bytes), "byte"))
	return nil
}
