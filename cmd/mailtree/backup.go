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
	"mailtree/maildir/backup"
	"mailtree/maildir/storedir"
	"mailtree/maildir/tree"
)

func backupCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Write a backup of the store to a new file",
		Long: "Write a backup of the store to a new file: all mail with its history, and the store's keys and settings. The server\n" +
			"keeps working, and each project is backed up as it was at one moment. The file is only readable by you. It contains\n" +
			"the store's secret keys, so keep it as safe as the store. An existing file is never overwritten.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return p.withServer(c.Context(), func(ctx context.Context, s *cli.Client) error { return p.backup(ctx, s, args[0]) })
		},
	}
}

// backup writes a backup to a new file. If it fails, there is no file.
func (p *program) backup(ctx context.Context, s *cli.Client, name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%q already exists, and a backup never overwrites a file: choose another name", name)
	}
	if err != nil {
		return fmt.Errorf("cannot create %q: %w", name, cause(err))
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
	_, err = fmt.Fprintf(p.std.out, "wrote %s (%s). It contains the store's secret keys: keep it as safe as the store.\n",
		name, bytesText(fi.Size()))
	return err
}

// bytesText returns a number of bytes for users.
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
		Short: "Create the store from a backup",
		Long: "Create the store (MCP_MAIL_STORE) from a backup. With --replace, the store takes the place of the one that was backed\n" +
			"up, with its keys and its shared projects. If there is a store already, the command moves it aside. With --copy,\n" +
			"the store is another one beside the original: it gets new keys, and its projects are not shared. Nothing is sent\n" +
			"twice: it is unknown whether emails in the queue were sent and how open hook runs ended, and unsent files in\n" +
			"outboxes become drafts.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if replace == other {
				return usageError(c, errors.New("restore needs --replace or --copy. Use --replace if the store that was backed up is gone "+
					"or no longer used, and --copy if it continues to be used"))
			}
			how := backup.Replace
			if other {
				how = backup.Copy
			}
			return p.restore(c.Context(), args[0], how)
		},
	}
	c.Flags().BoolVar(&replace, "replace", false, "the store takes the place of the original")
	c.Flags().BoolVar(&other, "copy", false, "the store is another one beside the original")
	return c
}

// restore creates the store from a backup. It first restores into a folder next to the store's.
func (p *program) restore(ctx context.Context, name string, how backup.How) error {
	root := p.cfg.Store
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("cannot read %q: %w", name, cause(err))
	}
	defer f.Close()
	there, err := os.ReadDir(root)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("cannot read the store %s: %w", root, cause(err))
	case len(there) > 0 && !storedir.IsStore(root):
		return fmt.Errorf("the folder %s contains other files: name an empty or new folder with --store", root)
	case len(there) > 0 && how == backup.Copy:
		return fmt.Errorf("there is already a store at %s: name a new folder with --store", root)
	case storedir.Held(root):
		return fmt.Errorf("a server is running for the store %s: run `mailtree stop` first", root)
	}
	suffix := time.Now().Format("-20060102-150405")
	fresh, aside := root+".restored"+suffix, root+asideSuffix+suffix
	r, err := backup.Restore(ctx, f, fresh, how)
	if err != nil {
		return fmt.Errorf("cannot restore %q: %w. Nothing was changed", name, err)
	}
	defer os.RemoveAll(fresh)
	if len(there) > 0 {
		if err := os.Rename(root, aside); err != nil {
			return fmt.Errorf("cannot move the store %s aside: %w", root, cause(err))
		}
		fmt.Fprintf(p.std.out, "moved the earlier store to %s\n", aside)
		if err := installed.Add(fresh, aside); err != nil {
			p.remark("%v. `mailtree uninstall` may not find what was installed since the backup", err)
		}
	}
	if how == backup.Copy { // what the list contains belongs to the original
		if err := installed.Forget(fresh); err != nil {
			return fmt.Errorf("cannot remove the list of what the original store has installed: %w", cause(err))
		}
	}
	if err := os.Rename(fresh, root); err != nil { // replaces an empty folder
		return fmt.Errorf("cannot rename %s to %s: %w", fresh, root, cause(err))
	}
	p.tellRestored(&r)
	if how == backup.Copy {
		p.lines([]string{"To use this store, add --store " + root + " to commands, or set MCP_MAIL_STORE"})
	}
	return nil
}

// asideSuffix is in the name of a store that restore has moved aside.
const asideSuffix = ".before-restore"

// earlierStores returns the stores that restore has moved aside for a store.
func earlierStores(store string) []string {
	all, _ := os.ReadDir(filepath.Dir(store))
	var dirs []string
	for _, e := range all {
		if strings.HasPrefix(e.Name(), filepath.Base(store)+asideSuffix+"-") {
			dirs = append(dirs, filepath.Join(filepath.Dir(store), e.Name()))
		}
	}
	return dirs
}

// tellRestored says what was restored, and what the user has to know.
func (p *program) tellRestored(r *backup.Restored) {
	lines := []string{fmt.Sprintf("restored %s to %s, as of %s", count(r.Projects, "project"), p.cfg.Store, r.Created.Local().Format("2006-01-02 15:04:05"))}
	if r.Emails > 0 {
		lines = append(lines, fmt.Sprintf("%s not sent: it is unknown whether the original store has sent them. `mailtree gateway "+
			"queue` lists them, and --retry ID sends one", count(r.Emails, "email")))
	}
	if r.Runs > 0 {
		lines = append(lines, fmt.Sprintf("%s not repeated: it is unknown how they ended", count(r.Runs, "run")+" of hooks"))
	}
	if r.Drafts > 0 {
		lines = append(lines, fmt.Sprintf("%s moved from outboxes to drafts, because the original store may have sent them: move a file "+
			"back to send it", count(r.Drafts, "file")))
	}
	if r.Unshared > 0 {
		lines = append(lines, fmt.Sprintf("%s not shared with other machines anymore. To share them: `mailtree sync on`", count(r.Unshared, "project")))
	}
	p.lines(lines)
}
