package backup

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"mailtree/maildir/crossing"
	"mailtree/maildir/format"
	"mailtree/maildir/hook"
	"mailtree/maildir/keys"
	"mailtree/maildir/outgoing"
	"mailtree/maildir/storedir"
	"mailtree/maildir/tree"
)

// How specifies how a restored store relates to the original.
type How int

const (
	Replace How = iota // the restored store replaces the original, keeps the same keys and shares the same projects
	Copy               // the restored store exists beside the original, gets its own keys and shares nothing
)

// ErrNotBackup means that a file is not a backup, or is an incomplete backup.
var ErrNotBackup = errors.New("the file is not a complete backup of a mail store")

// Restored summarizes a restore, including the work that the restored store will not continue unless a user asks for
// it.
type Restored struct {
	Header
	Projects int
	Emails   int // emails that may or may not have been sent
	Runs     int // hook runs whose outcome is unknown
	Drafts   int // unsent files that are now drafts
	Unshared int // projects that were shared with other machines and are no longer shared
}

// Restore creates a store from a backup. The folder root must not exist. Restore works in a folder next to root and
// renames it at the end, so root either does not exist afterwards or is complete. It returns ErrNotBackup, fs.ErrExist,
// or any error from ctx, the reader or the file system.
func Restore(ctx context.Context, from io.Reader, root string, how How) (r Restored, err error) {
	if _, err := os.Lstat(root); err == nil {
		return r, &fs.PathError{Op: "restore", Path: root, Err: fs.ErrExist}
	}
	if err := os.MkdirAll(filepath.Dir(root), 0o700); err != nil {
		return r, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(root), ".mailtree-restore-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	if r.Header, err = extract(ctx, from, dir); err != nil {
		return r, err
	}
	if err := r.settle(dir, how); err != nil {
		return r, err
	}
	if err := syncAll(dir); err != nil {
		return r, err
	}
	if err := os.Rename(dir, root); err != nil {
		return r, err
	}
	return r, tree.SyncDir(filepath.Dir(root))
}

// extract extracts a backup into a folder. It writes nothing outside that folder.
func extract(ctx context.Context, from io.Reader, dir string) (h Header, err error) {
	z, err := gzip.NewReader(from)
	if err != nil {
		return h, fmt.Errorf("%w: %w", ErrNotBackup, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return h, err
	}
	defer root.Close()
	var end *End
	entries := tar.NewReader(z)
	for first := true; ; first = false {
		e, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return h, fmt.Errorf("%w: %w", ErrNotBackup, err)
		}
		switch {
		case first && e.Name != headerName || end != nil:
			return h, ErrNotBackup
		case first:
			err = json.NewDecoder(entries).Decode(&h)
			if err == nil && h.Format != Version {
				err = fmt.Errorf("it has format %d, but this version of mailtree reads format %d", h.Format, Version)
			}
		case e.Name == endName:
			end = &End{}
			err = json.NewDecoder(entries).Decode(end)
		default:
			err = put(root, e, entries)
		}
		if ours := (*fs.PathError)(nil); err != nil && !errors.As(err, &ours) { // reading the backup failed
			err = fmt.Errorf("%w: %w", ErrNotBackup, err)
		}
		if err != nil {
			return h, fmt.Errorf("%s in the backup: %w", e.Name, err)
		}
	}
	if _, err := io.Copy(io.Discard, z); err != nil { // verifies the checksum
		return h, fmt.Errorf("%w: %w", ErrNotBackup, err)
	}
	if end == nil {
		return h, ErrNotBackup
	}
	slices.Reverse(end.Removed) // remove files before the folders that contain them
	for _, name := range end.Removed {
		err := root.Remove(name)
		// ENOTDIR means that a file has replaced the entry's folder
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return h, err
		}
	}
	return h, nil
}

// put writes one entry below root. It replaces an earlier entry with the same name, which may be of another type.
func put(root *os.Root, e *tar.Header, data io.Reader) error {
	name := path.Clean(e.Name)
	if e.Typeflag == tar.TypeDir {
		return mkdir(root, name)
	}
	if err := mkdir(root, path.Dir(name)); err != nil {
		return err
	}
	if err := root.RemoveAll(name); err != nil {
		return err
	}
	switch e.Typeflag {
	case tar.TypeSymlink:
		if !mayBeLink(name) {
			return errors.New("the entry must not be a symbolic link")
		}
		return root.Symlink(e.Linkname, name)
	case tar.TypeReg:
	default:
		return fmt.Errorf("unknown entry type %q", e.Typeflag)
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fs.FileMode(e.Mode).Perm()&0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, data)
	if err := cmp.Or(err, f.Close()); err != nil {
		return err
	}
	return root.Chtimes(name, e.ModTime, e.ModTime)
}

// mkdir creates a folder and the folders above it. If something else already has one of these names, mkdir removes it
// first.
func mkdir(root *os.Root, name string) error {
	if name == "." {
		return nil
	}
	if err := mkdir(root, path.Dir(name)); err != nil {
		return err
	}
	switch fi, err := root.Lstat(name); {
	case err == nil && fi.IsDir():
		return nil
	case err == nil:
		if err := root.Remove(name); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return root.Mkdir(name, 0o700)
}

// settle prevents the restored store from repeating what the original may have done since the backup was made. For a
// copy, it also removes everything that must not exist in two stores.
func (r *Restored) settle(root string, how How) error {
	old, err := keys.Own(root)
	if err != nil {
		return fmt.Errorf("the backup has no usable key: %w", err)
	}
	from, to, err := r.changeKeys(root, old, how)
	if err != nil {
		return err
	}
	slugs, err := storedir.Slugs(root)
	if err != nil {
		return err
	}
	r.Projects = len(slugs)
	for _, slug := range slugs {
		if err := r.settleProject(root, slug, from, to, how); err != nil {
			return fmt.Errorf("project %s: %w", slug, err)
		}
	}
	return r.settleHooks(root)
}

// changeKeys returns the key that signed the items in the backup's queue, and the key of the restored store. A copy
// gets a new key and a new token, and trusts the original's key.
func (r *Restored) changeKeys(root string, old keys.Key, how How) (from, to []byte, err error) {
	_, private, err := keys.Open(root, rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if how == Replace {
		return private.Seed(), private.Seed(), nil
	}
	if err := keys.Renew(root); err != nil {
		return nil, nil, err
	}
	if err := os.Remove(filepath.Join(root, storedir.InstalledFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	_, own, err := keys.Open(root, rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	old.Name = "original-" + old.ID
	return private.Seed(), own.Seed(), keys.Trust(root, old)
}

// settleProject is like settle, but for one project.
func (r *Restored) settleProject(root, slug string, from, to []byte, how How) error {
	t, err := tree.OpenNoLink(storedir.Repo(root, slug), 0) // works for every project format
	if err != nil {
		return err
	}
	defer t.Close()
	within, err := os.OpenRoot(t.Dir()) // so that no link can lead outside the project
	if err != nil {
		return err
	}
	defer within.Close()
	if err := within.MkdirAll(tree.TmpDir, 0o700); err != nil { // files are staged in this folder
		return err
	}
	if err := r.settleQueue(t, slug, from, to); err != nil {
		return err
	}
	if err := crossing.Rekey(root, slug, from, to); err != nil { // delivering these messages twice changes nothing
		return err
	}
	if err := r.moveUnsent(t, within); err != nil {
		return err
	}
	shared, err := storedir.LoadShared(root, slug)
	if err != nil || how == Replace || !shared.On {
		return err
	}
	r.Unshared++
	shared.On = false
	return storedir.SaveShared(filepath.Dir(storedir.Repo(root, slug)), shared)
}

// settleQueue sets the state of unsent emails to unknown, and rewrites all items with the restored store's key.
func (r *Restored) settleQueue(t *tree.Tree, slug string, from, to []byte) error {
	quiet := slog.New(slog.DiscardHandler)
	read := &outgoing.Folder{Tree: t, Project: slug, Key: from, Log: quiet}
	write := &outgoing.Folder{Tree: t, Project: slug, Key: to, Log: quiet}
	items, err := read.Since(time.Time{})
	if err != nil {
		return err
	}
	for _, i := range items {
		if i.Pending() {
			i.State, i.Reply = outgoing.Unknown, "The store was restored from a backup, so it is unknown whether this email was sent."
			r.Emails++
		}
		if err := write.Save(&i); err != nil {
			return err
		}
	}
	return nil
}

// moveUnsent moves files that were saved in an outbox but not sent yet to their agents' drafts.
func (r *Restored) moveUnsent(t *tree.Tree, within *os.Root) error {
	agents, err := t.List(format.AgentsDir)
	if err != nil {
		return tree.IgnoreGone(err)
	}
	for _, a := range agents {
		outbox := path.Join(format.AgentsDir, a.Name(), format.OutboxDir)
		var unsent []string
		err := t.Walk(context.Background(), outbox, func(p string, d fs.DirEntry) error {
			if format.Locate(p).Kind == format.KindOutbox && !format.IsSentCopy(p) && d.Type().IsRegular() {
				unsent = append(unsent, p)
			}
			return nil
		})
		if err := tree.IgnoreGone(err); err != nil {
			return err
		}
		for _, p := range unsent {
			if err := toDrafts(within, a.Name(), p); err != nil {
				return err
			}
			r.Drafts++
		}
	}
	return nil
}

// toDrafts moves a file from an outbox to the agent's drafts, under a name that is not in use there.
func toDrafts(within *os.Root, agent, p string) error {
	drafts := path.Join(format.AgentsDir, agent, format.DraftsDir)
	if err := within.MkdirAll(drafts, 0o700); err != nil {
		return err
	}
	stem := strings.TrimSuffix(path.Base(p), ".md")
	for n := 1; ; n++ {
		name := stem + ".md"
		if n > 1 {
			name = fmt.Sprintf("%s-%d.md", stem, n)
		}
		err := within.Link(p, path.Join(drafts, name))
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		return within.Remove(p)
	}
}

// settleHooks marks the outcome of unfinished runs as unknown, and keeps hooks from running for mail in the backup.
func (r *Restored) settleHooks(root string) error {
	log, err := hook.OpenLog(root, time.Now)
	if err != nil {
		return err
	}
	for _, a := range log.Abandoned() {
		if err := log.EndAbandoned(&a, "unknown: the store was restored from a backup"); err != nil {
			return err
		}
		r.Runs++
	}
	all, err := hook.NewList(root).Load()
	if err != nil || len(all) == 0 {
		return err
	}
	return hook.NewList(root).Restart(time.Now().UTC().Truncate(time.Microsecond))
}

// syncAll makes everything below dir durable.
func syncAll(dir string) error {
	t, err := tree.Open(dir, 0)
	if err != nil {
		return err
	}
	defer t.Close()
	var all []string
	err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			p, err = filepath.Rel(dir, p)
			all = append(all, filepath.ToSlash(p))
		}
		return err
	})
	return cmp.Or(err, t.Sync(all))
}
