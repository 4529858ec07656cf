package guard

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"mailtree/maildir/refusal"
	"mailtree/maildir/storedir"
	"mailtree/maildir/tree"
)

// Site specifies where a guard is or will be installed.
type Site struct {
	Repo string   // any folder in the code repository
	Env  []string // environment for git

	Words refusal.Words // how Status words refusals
}

// Setup specifies what to install. Store and Program are required.
type Setup struct {
	Store   string // absolute path
	Scope   storedir.Scope
	Project string // slug or absolute path; "" means the project of the code repository
	Program string // absolute path of mailtree
	Push    bool   // whether to also install pre-push
}

// Install writes the guard's hooks and returns a sentence for each change it made. It renames an existing hook, which
// the guard's hook then runs first. A second call writes only hooks that differ. Each hook is replaced atomically.
//
// Install returns ErrNotFound or ErrInvalid if the repository or project is missing or invalid. It returns ErrDenied if
// the hooks folder does not belong to the repository alone, and ErrConflict if an existing file prevents the
// installation.
func Install(ctx context.Context, at Site, s Setup) ([]string, error) {
	r, err := openRepository(ctx, at.Repo, at.Env)
	if err != nil {
		return nil, err
	}
	if err := r.refuseMail(s.Store); err != nil {
		return nil, err
	}
	t, slug, err := storedir.OpenProject(s.Store, cmp.Or(s.Project, r.top), s.Scope)
	if err != nil && s.Project == "" {
		return nil, noProject(err)
	}
	if err != nil {
		return nil, err
	}
	t.Close()
	if err := r.writable(ctx, s); err != nil {
		return nil, err
	}
	g := guarding{Store: s.Store, Project: slug}
	for _, p := range []string{g.Store, s.Program} {
		if !utf8.ValidString(p) {
			return nil, invalid("The path %s is not UTF-8, so the guard cannot be installed there.", safe(p))
		}
	}
	f, err := makeHooks(r)
	if err != nil {
		return nil, err
	}
	defer f.close()
	if err := f.lock(ctx); err != nil {
		return nil, err
	}
	names := []string{PreCommit, PreMergeCommit}
	_, old, _, err := f.installed(PrePush)
	// Ignore any other error for now. If pre-push must be installed, f.plan returns the error again.
	if tree.FaultOf(err) == tree.FaultMachine && !errors.Is(err, refusal.ErrConflict) {
		return nil, err
	}
	if s.Push || old != nil {
		names = append(names, PrePush)
	}
	plans := make([]*plan, len(names))
	for i, n := range names { // check all hooks before writing any
		if plans[i], err = f.plan(n, s.Program, g); err != nil {
			return nil, err
		}
	}
	var done []string
	for _, p := range plans {
		what, err := f.write(p)
		if err != nil {
			return done, err
		}
		done = append(done, what)
	}
	done = append(done, "Commits that change files claimed by others in the project "+slug+" are now refused.")
	return append(done, r.notes(ctx, f)...), nil
}

// refuseMail returns ErrInvalid if the repository is the mail folder of one of the store's projects.
func (r *repository) refuseMail(store string) error {
	names, err := storedir.ProjectNames(store)
	if err != nil {
		return nil // the error is reported when the project is opened
	}
	for _, n := range names {
		if dir, err := filepath.EvalSymlinks(storedir.Repo(store, n.Slug)); err == nil && dir == r.top {
			return invalid("%q is a project's mail folder, not a code base: run this in the code base (%s).", r.top,
				safe(cmp.Or(n.HumanKey, n.Slug)))
		}
	}
	return nil
}

// notes returns sentences about the hooks folder for the user.
func (r *repository) notes(ctx context.Context, f *hooksFolder) []string {
	var out []string
	if r.place != own {
		out = append(out, fmt.Sprintf("The hooks are in %s (core.hooksPath). A tool that rewrites the hooks (husky "+
			"does so at `npm install`) removes the guard. Check with `mailtree guard status`, and reinstall the guard if needed.",
			safe(f.dir)))
	}
	if r.place == insideTree {
		if _, err := r.git.run(ctx, nil, "check-ignore", "-q", "--", filepath.Join(f.dir, PreCommit)); exited(err, 1) {
			out = append(out, "Git does not ignore that folder. Do not commit the guard's hooks, because they contain "+
				"machine-specific paths.")
		}
	}
	return out
}

// hooksFolder is an open hooks folder. Files are accessed through the open folder, so that no name can refer to a file
// outside the folder.
type hooksFolder struct {
	repo *repository
	dir  string
	root *os.Root // nil if there is no folder
	held *os.File // the locked file; nil if the lock is not held
}

// makeHooks opens the hooks folder. It creates the folder if it is missing.
func makeHooks(r *repository) (*hooksFolder, error) {
	if err := os.MkdirAll(r.hooks, 0o755); err != nil {
		return nil, fileError("Cannot create the hooks folder", err)
	}
	f, err := openHooks(r)
	if err == nil && f.root == nil {
		return nil, fileError("Cannot open the hooks folder", fs.ErrNotExist)
	}
	return f, err
}

// openHooks opens the hooks folder. root is nil if the folder does not exist.
func openHooks(r *repository) (*hooksFolder, error) {
	root, err := os.OpenRoot(r.hooks)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fileError("Cannot open the hooks folder", err)
	}
	return &hooksFolder{repo: r, dir: r.hooks, root: root}, nil
}

// lock locks the folder. It waits while another process installs or uninstalls hooks in it. The lock is released when
// the folder is closed or the process ends.
func (f *hooksFolder) lock(ctx context.Context) error {
	if f.root == nil {
		return nil
	}
	d, err := f.root.Open(".")
	if err != nil {
		return fileError("Cannot open the hooks folder", err)
	}
	f.held = d
	again := time.NewTicker(lockPause)
	defer again.Stop()
	for {
		err := unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			return fileError("Cannot lock the hooks folder", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-again.C:
		}
	}
}

// lockPause is the time between two attempts to acquire the lock.
const lockPause = 5 * time.Millisecond

func (f *hooksFolder) close() {
	if f.held != nil {
		f.held.Close()
	}
	if f.root != nil {
		f.root.Close()
	}
}

func fileError(what string, err error) error {
	return &refusal.Own{Kind: refusal.ErrUnavailable, Text: what + ": " + safe(err.Error()) + ".", Err: err}
}

// maxHook is the maximum number of bytes to read from a hook. A larger hook is treated as a binary.
const maxHook = 1 << 20

// read returns up to maxHook bytes of a hook, and the hook's FileInfo. It returns nil if the hook does not exist, and
// ErrConflict if the hook is neither a file nor a link.
func (f *hooksFolder) read(name string) ([]byte, fs.FileInfo, error) {
	if f.root == nil {
		return nil, nil, nil
	}
	fi, err := f.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fileError("Cannot read the hook "+name, err)
	}
	switch {
	case fi.Mode()&fs.ModeSymlink != 0: // a link to another hook; only shellFor needs the content
		data, err := f.follow(name)
		if tree.FaultOf(err) == tree.FaultMachine {
			return nil, nil, fileError("Cannot read the hook "+name, err)
		}
		return data, fi, nil
	case !fi.Mode().IsRegular():
		return nil, nil, conflict("%s is not a regular file: move it elsewhere and try again.", safe(filepath.Join(f.dir, name)))
	case fi.Size() > maxHook:
		return nil, fi, nil
	}
	data, err := f.root.ReadFile(name)
	if err != nil {
		return nil, nil, fileError("Cannot read the hook "+name, err)
	}
	return data, fi, nil
}

// follow reads the target of a link, which is the file that Git would run. It returns nil if the target is not a small
// regular file.
func (f *hooksFolder) follow(name string) ([]byte, error) {
	full := filepath.Join(f.dir, name)
	fi, err := os.Stat(full)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() > maxHook {
		return nil, err
	}
	return os.ReadFile(full)
}

// ours parses a hook. It returns nil if the guard did not write the hook.
func (f *hooksFolder) ours(name string) (*hook, bool, error) {
	data, fi, err := f.read(name)
	if err != nil || fi == nil || !fi.Mode().IsRegular() {
		return nil, false, err
	}
	h, changed := parseHook(data)
	return h, changed, nil
}

// plan describes what to do for one hook.
type plan struct {
	name   string
	file   string // the file to write, which is the hook itself or the file that the pre-commit framework runs
	text   []byte
	keep   bool     // whether the existing hook becomes the earlier hook that runs first
	same   bool     // whether the file already contains this text
	before bool     // whether there is an earlier hook that runs first
	stale  []string // renamed copies of our hook to remove
}

// plan decides what to do for one hook. It changes nothing.
func (f *hooksFolder) plan(name, program string, g guarding) (*plan, error) {
	file, old, changed, err := f.installed(name)
	if err != nil {
		return nil, err
	}
	full := filepath.Join(f.dir, file)
	data, fi, err := f.read(file)
	if err != nil {
		return nil, err
	}
	aside, asideInfo, err := f.read(name + behind)
	if err != nil {
		return nil, err
	}
	p := &plan{name: name, file: file, before: asideInfo != nil}
	h := &hook{
		Name:    name,
		Program: program,
		Guards:  [1]guarding{g},
		Shell:   shellFor(aside),
	}
	switch {
	case changed:
		return nil, conflict("%s is the guard's hook, but it has been modified. Undo the change or move the file "+
			"elsewhere, and try again.", safe(full))
	case old != nil:
	case fi != nil && asideInfo != nil && !f.twins(name, data, aside) && !supersedes(data, aside):
		return nil, conflict("There are two other hooks: %s, which an earlier guard saved, and %s, which has since "+
			"replaced that guard. Delete the one that you no longer want, and try again.", safe(full+behind), safe(full))
	case fi != nil:
		p.keep, p.before, h.Shell = true, true, shellFor(data)
	}
	if p.text, err = h.render(); err != nil {
		return nil, err
	}
	p.same = old != nil && bytes.Equal(data, p.text) && fi.Mode().Perm()&0o100 != 0
	p.stale, err = f.stale(name, file)
	return p, err
}

// twins reports whether the hook and its renamed copy are the same, as they are after an interrupted installation.
func (f *hooksFolder) twins(name string, a, b []byte) bool {
	x, errX := f.root.Lstat(name)
	y, errY := f.root.Lstat(name + behind)
	return errX == nil && errY == nil && (os.SameFile(x, y) || x.Mode() == y.Mode() && x.Size() == y.Size() && bytes.Equal(a, b) && len(a) > 0)
}

// write carries out a plan. It first gives the existing hook a second name. If the process is killed, the folder
// contains either the earlier hook under its original name, or the guard's hook together with the renamed earlier hook.
func (f *hooksFolder) write(p *plan) (string, error) {
	full := safe(filepath.Join(f.dir, p.file))
	if p.keep {
		if err := f.copyAside(p.name); err != nil {
			return "", fileError("Cannot save the hook "+p.name, err)
		}
	}
	if !p.same {
		if err := f.replace(p.file, p.text); err != nil {
			return "", fileError("Cannot write the hook "+p.file, err)
		}
	}
	for _, copied := range p.stale {
		if err := f.root.Remove(copied); err != nil {
			return "", fileError("Cannot remove the outdated hook "+copied, err)
		}
	}
	switch {
	case p.same && len(p.stale) > 0:
		return full + " is already installed; removed outdated copies: " + strings.Join(p.stale, ", "), nil
	case p.same && p.file != p.name:
		return full + " is already installed, and the pre-commit framework's hook runs it: nothing changed", nil
	case p.same:
		return full + " is already installed: nothing changed", nil
	case p.before:
		return "installed " + full + "; the earlier hook is saved as " + p.name + behind + " and runs first", nil
	}
	return "installed " + full, nil
}

// copyAside gives the hook a second name. Both names refer to the same file or, if the hook is a link, are links to the
// same target.
func (f *hooksFolder) copyAside(name string) error {
	aside := name + behind
	if old, err := f.root.Lstat(aside); err == nil {
		is, err := f.root.Lstat(name)
		if err != nil || os.SameFile(old, is) {
			return err // the copy is from an interrupted installation
		}
		if err := f.root.Remove(aside); err != nil { // plan has found that this copy is outdated
			return err
		}
	}
	if to, err := f.root.Readlink(name); err == nil {
		return f.root.Symlink(to, aside)
	}
	return f.root.Link(name, aside)
}

// replace writes a hook atomically. The name of the temporary file is random, so an attacker cannot place a link or a
// pipe there.
func (f *hooksFolder) replace(name string, text []byte) error {
	tmp := "." + name + ".mailtree-" + rand.Text()
	w, err := f.root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o755)
	if err != nil {
		return err
	}
	defer f.root.Remove(tmp)
	if _, err = w.Write(text); err == nil {
		if err = w.Chmod(0o755); err == nil {
			err = w.Sync()
		}
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	return errors.Join(f.root.Rename(tmp, name), f.sync())
}

func (f *hooksFolder) sync() error {
	d, err := f.root.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Uninstall removes the guard's hooks and restores the earlier hooks with their modes. It returns a sentence for each
// change it made. If no guard is installed, it returns one sentence that says so. Uninstall returns ErrNotFound or
// ErrInvalid if the repository is missing or invalid. If one of the guard's hooks was changed, it returns ErrConflict
// and does nothing.
func Uninstall(ctx context.Context, at Site) ([]string, error) {
	r, err := openRepository(ctx, at.Repo, at.Env)
	if err != nil {
		return nil, err
	}
	f, err := openHooks(r)
	if err != nil {
		return nil, err
	}
	defer f.close()
	if err := f.lock(ctx); err != nil {
		return nil, err
	}
	files := map[string]string{} // the files of the guard's hooks, by hook name
	var found, stale []string
	for _, name := range hookNames {
		file, h, changed, err := f.installed(name)
		switch {
		case err != nil:
			return nil, err
		case changed:
			return nil, conflict("%s is the guard's hook, but it has been modified, so nothing was removed. Save your "+
				"changes elsewhere and delete the file. If there was an earlier hook, it is in the same folder: %s.",
				safe(filepath.Join(f.dir, file)), name+behind)
		case h != nil:
			files[name], found = file, append(found, name)
		}
		copies, err := f.stale(name, files[name])
		if err != nil {
			return nil, err
		}
		stale = append(stale, copies...)
	}
	if len(found) == 0 && len(stale) == 0 {
		return []string{"No guard is installed in " + safe(f.dir) + ": nothing changed."}, nil
	}
	var done []string
	for _, name := range found {
		what, err := f.remove(name, files[name])
		if err != nil {
			return done, fileError("Cannot remove the hook "+name, err)
		}
		done = append(done, what)
	}
	for _, file := range stale {
		if err := f.root.Remove(file); err != nil {
			return done, fileError("Cannot remove the outdated hook "+file, err)
		}
		done = append(done, "removed "+safe(filepath.Join(f.dir, file)))
	}
	return done, f.sync()
}

// remove removes one of the guard's hooks from the given file, and restores the earlier hook.
func (f *hooksFolder) remove(name, file string) (string, error) {
	full := safe(filepath.Join(f.dir, file))
	before, fi, err := f.read(name + behind)
	switch {
	case err != nil:
		return "", err
	case fi == nil:
		return "removed " + full, errors.Join(f.root.Remove(file), f.sync())
	case file != name && managerOf(before) == framework: // otherwise, the framework would run its own earlier hook
		return "removed " + full, errors.Join(f.root.Remove(file), f.root.Remove(name+behind), f.sync())
	}
	return "restored the earlier " + full, errors.Join(f.root.Rename(name+behind, file), f.sync())
}
