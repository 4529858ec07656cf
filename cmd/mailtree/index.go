package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"mailtree/indexer"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/storedir"
	"mailtree/maildir/tree"
)

func indexCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "index",
		Short: "Inspect or rebuild the index",
		Long:  "The index is a cache of the files. Nothing is lost if you delete it, because it can be rebuilt from them at any time.",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(
		&cobra.Command{
			Use:   "rebuild",
			Short: "Rebuild the index from the files",
			Args:  cobra.NoArgs,
			Long: "Rebuild the index from the files, in a new file that then replaces the old one. If a background server is running,\n" +
				"the command stops it first. If any other server is running, such as a service, stop it yourself, because a running\n" +
				"server updates the index too.",
			RunE: func(c *cobra.Command, _ []string) error { return rebuild(c.Context(), p) },
		},
		&cobra.Command{
			Use:   "dump",
			Short: "Print every row of the index, sorted",
			Args:  cobra.NoArgs,
			RunE:  func(c *cobra.Command, _ []string) error { return dump(c.Context(), p) },
		},
		&cobra.Command{
			Use:   "verify",
			Short: "Compare the index with the files",
			Args:  cobra.NoArgs,
			Long: "Compare the index with a new index that is built in memory from the files. If they are equal, the command prints the\n" +
				"number of rows and the exit status is 0; otherwise it prints the first differences and the exit status is 1. You\n" +
				"don't need to stop the server.",
			RunE: func(c *cobra.Command, _ []string) error { return verify(c.Context(), p) },
		},
	)
	return c
}

// view is a store that a command reads without the store's lock. A server may be running at the same time.
type view struct {
	trees   map[string]*tree.Tree
	index   *indexer.Index
	store   string
	running bool // another process has opened the store
}

// openView opens the trees and the index without changing them.
func openView(ctx context.Context, cfg *config) (*view, error) {
	v, err := openTrees(cfg)
	if err != nil {
		return nil, err
	}
	if err := v.openIndex(ctx, cfg); err != nil {
		v.close()
		return nil, err
	}
	return v, nil
}

// openTrees opens the trees, but not the index.
func openTrees(cfg *config) (*view, error) {
	if _, err := os.Stat(cfg.Store); errors.Is(err, fs.ErrNotExist) {
		return nil, noStore(cfg.Store)
	}
	v := &view{store: cfg.Store, running: storedir.Held(cfg.Store)}
	var err error
	if v.trees, err = storedir.OpenTrees(cfg.Store, cfg.MaxMessage); err != nil {
		v.close()
		return nil, err
	}
	return v, nil
}

func (v *view) openIndex(ctx context.Context, cfg *config) (err error) {
	if v.index, err = indexer.Open(ctx, indexer.Config{Path: storedir.IndexPath(cfg.Store), Existing: true}); err == nil {
		return nil
	}
	if indexer.IsLocked(err) {
		return fmt.Errorf("another program, for example a database browser, has locked the index (%w). "+
			"Close that program, then try again", err)
	}
	hint := "The next `mailtree serve` rebuilds it. To rebuild it now: `mailtree index rebuild`"
	if v.running {
		hint = "Restart the server to rebuild it"
	}
	return fmt.Errorf("the index is missing or damaged (%w). %s", err, hint)
}

func (v *view) close() {
	if v.index != nil {
		v.index.Close()
	}
}

func dump(ctx context.Context, p *program) error {
	v, err := openView(ctx, p.cfg)
	if err != nil {
		return err
	}
	defer v.close()
	w := bufio.NewWriter(p.std.out)
	if err := v.index.Dump(ctx, w); err != nil {
		return err
	}
	return w.Flush()
}

func verify(ctx context.Context, p *program) error {
	v, err := openView(ctx, p.cfg)
	if err != nil {
		return err
	}
	defer v.close()
	r, err := v.verify(ctx)
	if err != nil {
		return err
	}
	if len(r.Differences) == 0 {
		fmt.Fprintf(p.std.out, "the index matches the files: %s\n", count(r.Rows, "row"))
		return nil
	}
	for _, d := range r.Differences {
		fmt.Fprintln(p.std.out, format.Printable(d))
	}
	hint := "This is a bug: please report it. To rebuild the index: `mailtree index rebuild`"
	if !v.running {
		hint = "If the files were edited while no server was running, the server updates the index when it starts. " +
			"Otherwise, rebuild the index: `mailtree index rebuild`"
	}
	return &exitError{1, fmt.Errorf("the index (-) differs from the files (+). %s", hint)}
}

// verify compares the index with an index that it builds from the trees. A running server may change files during the
// comparison. If a server is running, verify therefore compares several times, and reports only differences that appear
// every time.
func (v *view) verify(ctx context.Context) (*indexer.Report, error) {
	r, err := indexer.Verify(ctx, v.index, v.trees)
	v.running = v.running || storedir.Held(v.store) // a server may have started meanwhile
	for try := 0; try < 5 && err == nil && v.running && len(r.Differences) > 0; try++ {
		select {
		case <-time.After(300 * time.Millisecond):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		before := r.Differences
		if r, err = indexer.Verify(ctx, v.index, v.trees); err == nil {
			r.Differences = slices.DeleteFunc(r.Differences, func(d string) bool { return !slices.Contains(before, d) })
		}
	}
	return r, err
}

func rebuild(ctx context.Context, p *program) error {
	if _, err := os.Stat(p.cfg.Store); errors.Is(err, fs.ErrNotExist) {
		return noStore(p.cfg.Store)
	}
	var lock *storedir.Lock
	err := p.taking(ctx, func() (err error) {
		lock, err = storedir.Take(p.cfg.Store)
		return err
	})
	if errors.Is(err, maildir.ErrConflict) {
		if !serves(ctx, p.cfg) {
			return p.notServed()
		}
		return fmt.Errorf("a server (process %s) is using this store and keeps its index up to date. To check the index, run "+
			"`mailtree index verify`; to rebuild it, stop the server first", storedir.Holder(p.cfg.Store))
	}
	if err != nil {
		return err
	}
	defer lock.Release()
	trees, err := storedir.OpenTrees(p.cfg.Store, p.cfg.MaxMessage)
	if err != nil {
		return err
	}
	began := time.Now()
	progress := progressLine(p.std, "reading")
	if err := indexer.Rebuild(ctx, storedir.IndexPath(p.cfg.Store), trees, progress); err != nil {
		return err
	}
	if progress != nil {
		fmt.Fprint(p.std.err, "\r\033[K")
	}
	took := time.Since(began)
	x, err := indexer.Open(ctx, indexer.Config{Path: storedir.IndexPath(p.cfg.Store), Existing: true})
	if err != nil {
		return err
	}
	defer x.Close()
	s, err := x.Stats(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.std.out, "indexed %s, %s, %s in %s\n",
		count(s.Projects, "project"), count(s.Messages, "message"), count(s.Problems, "problem"), took.Round(time.Millisecond))
	return nil
}
