package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	"mailtree/cmd/mailtree/installed"
	"mailtree/maildir"
	"mailtree/maildir/backup"
	"mailtree/maildir/storedir"
	"mailtree/maildir/tree"
)

func backupCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Back up the store to a new file",
		Long: "Back up the store to a new file: all mail with its history, and the store's keys and settings. The server keeps\n" +
			"running, and the backup of each project is a consistent snapshot. Only you can read the file. It contains the\n" +
			"store's secret keys, so protect it like the store. An existing file is never overwritten.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return p.withServer(c.Context(), func(ctx context.Context, s *cli.Client) error { return p.backup(ctx, s, args[0]) })
		},
	}
}

// backup writes a backup to a new file. If it fails, it leaves no new file behind.
func (p *program) backup(ctx context.Context, s *cli.Client, name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%q already exists, and a backup never overwrites a file: choose another name", name)
	}
	if err != nil {
		return fmt.Errorf("cannot create %q: %w", name, plainCause(err))
	}
	if err = s.Copy(ctx, "backup", f); err == nil {
		err = f.Sync()
	}
	fi, serr := f.Stat()
	if err = cmp.Or(err, serr, f.Close()); err == nil {
		err = tree.SyncDir(filepath.Dir(name))
	}
	if err != nil {
		os.Remove(name)
		return fmt.Errorf("no backup was written: %w", err)
	}
	_, err = fmt.Fprintf(p.std.out, "wrote %s (%s). It contains the store's secret keys: protect it like the store.\n",
		name, bytesText(fi.Size()))
	return err
}

// bytesText formats a number of bytes for display.
func bytesText(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d KB", (n+1023)>>10)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
}

func restoreCommand(p *program) *cobra.Command {
	var replace, other bool
	c := &cobra.Command{
		Use:   "restore FILE",
		Short: "Restore the store from a backup",
		Long: "Restore the store (MCP_MAIL_STORE) from a backup. With --replace, the restored store replaces the original: it keeps\n" +
			"the keys and continues to share its projects. If a store already exists, the command moves it aside. With --copy,\n" +
			"the original stays in use, and the restored store is a second one: it gets new keys, and its projects are not\n" +
			"shared. To avoid sending or running anything twice, the command marks the outcome of queued emails and unfinished\n" +
			"hook runs as unknown, and moves unsent files from outboxes to drafts.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if replace == other {
				return usageError(c, errors.New("restore needs --replace or --copy. Use --replace if the original store is gone or no longer "+
					"used, or --copy if it is still in use"))
			}
			how := backup.Replace
			if other {
				how = backup.Copy
			}
			return p.restore(c.Context(), args[0], how)
		},
	}
	c.Flags().BoolVar(&replace, "replace", false, "replace the original store")
	c.Flags().BoolVar(&other, "copy", false, "create a second store; the original stays in use")
	return c
}

// restore creates the store from a backup. It first restores into a new folder next to the store, and then swaps the
// two folders. It holds the store's lock throughout, so that no server can start.
func (p *program) restore(ctx context.Context, name string, how backup.How) (err error) {
	root := p.cfg.Store
	if to, err := filepath.EvalSymlinks(root); err == nil {
		root = to
	} else if isLink(root) {
		return fmt.Errorf("the store %s is a symbolic link to a missing folder: create that folder, or remove the link", root)
	}
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("cannot read %q: %w", name, plainCause(err))
	}
	defer f.Close()
	there, err := os.ReadDir(root)
	isNew := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !isNew:
		return fmt.Errorf("cannot read the store %s: %w", root, plainCause(err))
	case len(there) > 0 && !storedir.IsStore(root):
		return fmt.Errorf("the folder %s contains other files: specify an empty or new folder with --store", root)
	case len(there) > 0 && how == backup.Copy:
		return fmt.Errorf("there is already a store at %s: specify a new folder with --store", root)
	}
	lock, err := storedir.Take(root)
	if errors.Is(err, maildir.ErrConflict) {
		return fmt.Errorf("a server is running for the store %s: run `mailtree stop` first", root)
	}
	if err != nil {
		return fmt.Errorf("cannot use the store %s: %w", root, err)
	}
	swapped := false
	defer func() {
		lock.Release()
		if swapped || len(there) > 0 {
			return
		}
		os.RemoveAll(root) // root contains only the lock
		if !isNew {
			_ = os.Mkdir(root, 0o700)
		}
	}()
	suffix := time.Now().Format("-20060102-150405")
	fresh := root + freshSuffix + suffix
	r, err := backup.Restore(ctx, f, fresh, how)
	if err != nil {
		return fmt.Errorf("cannot restore %q: %w. Nothing was changed", name, err)
	}
	if len(there) > 0 {
		if err := installed.Add(fresh, root); err != nil {
			p.remark("%v. `mailtree uninstall` may not find what was installed after the backup", err)
		}
	}
	if err := tree.Exchange(root, fresh); err != nil {
		os.RemoveAll(fresh)
		return fmt.Errorf("cannot move the restored store to %s: %w. If that path is a mount point, specify a folder inside it with --store",
			root, plainCause(err))
	}
	swapped = true
	if len(there) == 0 {
		os.RemoveAll(fresh) // fresh contains only the lock
	} else {
		aside := root + asideSuffix + suffix
		if err := os.Rename(fresh, aside); err != nil {
			return fmt.Errorf("the store was restored, but the previous store is still at %s: %w", fresh, plainCause(err))
		}
		fmt.Fprintf(p.std.out, "moved the previous store to %s\n", aside)
	}
	if err := tree.SyncDir(filepath.Dir(root)); err != nil {
		return fmt.Errorf("the store was restored, but may not survive a power failure: %w", plainCause(err))
	}
	p.tellRestored(&r)
	if how == backup.Copy {
		p.lines([]string{"To use this store, add --store " + root + " to commands, or set MCP_MAIL_STORE"})
	}
	return nil
}

// asideSuffix is part of the name that restore gives to a store when it moves the store aside. freshSuffix is part of the
// name of the restored store until the two are swapped. If restore is killed then, the folder that is left may be
// either of them.
const (
	asideSuffix = ".before-restore"
	freshSuffix = ".restored"
)

// besideStore returns the paths of other stores that restore has left next to a store. suffix is asideSuffix or
// freshSuffix.
func besideStore(store, suffix string) (dirs []string) {
	if to, err := filepath.EvalSymlinks(store); err == nil {
		store = to
	}
	all, _ := os.ReadDir(filepath.Dir(store))
	for _, e := range all {
		if strings.HasPrefix(e.Name(), filepath.Base(store)+suffix+"-") {
			dirs = append(dirs, filepath.Join(filepath.Dir(store), e.Name()))
		}
	}
	return dirs
}

// tellRestored prints a summary of the restored data, and tells the user about any further steps.
func (p *program) tellRestored(r *backup.Restored) {
	lines := []string{fmt.Sprintf("restored %s to %s (backup from %s)",
		count(r.Projects, "project"), p.cfg.Store, r.Created.Local().Format("2006-01-02 15:04:05"))}
	if r.Emails > 0 {
		lines = append(lines, fmt.Sprintf("did not send %s from the queue, because the original store may have done so. The "+
			"senders get a report, and can send the mail again", count(r.Emails, "email")))
	}
	if r.Runs > 0 {
		lines = append(lines, fmt.Sprintf("did not repeat %s, because the outcome in the original store is unknown", count(r.Runs, "hook run")))
	}
	if r.Drafts > 0 {
		lines = append(lines, fmt.Sprintf("moved %s from outboxes to drafts, to avoid sending a message twice. To send a file, "+
			"move it back", count(r.Drafts, "file")))
	}
	if r.Unshared > 0 {
		lines = append(lines, fmt.Sprintf("stopped sharing %s with other machines. To share again: `mailtree sync on`",
			count(r.Unshared, "project")))
	}
	p.lines(lines)
}
