package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mailtree/clients"
	"mailtree/clients/plugin"
	"mailtree/cmd/mailtree/cli"
	"mailtree/cmd/mailtree/installed"
	"mailtree/cmd/mailtree/service"
	"mailtree/guard"
	"mailtree/maildir"
	"mailtree/maildir/folders"
	"mailtree/maildir/repo"
	"mailtree/maildir/storedir"
)

func uninstallCommand(p *program) *cobra.Command {
	var dry, yes bool
	c := &cobra.Command{
		Use:   "uninstall [STORE]",
		Short: "Remove everything that mailtree wrote outside its store",
		Long: "Remove what mailtree wrote outside its store: the entries, hooks and instructions in clients' files, the guard's hooks,\n" +
			"the service's unit, and the lists of row numbers. The command stops the server first. It checks the store's own\n" +
			"records, all clients' files in your home folder, and the folders of all projects. At the end, it lists what it does\n" +
			"not remove. The store and its mail are kept, unless you specify STORE.\n" +
			"Exit status 0: everything was removed. 1: something could not be removed.",
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(c *cobra.Command, args []string) error {
			u := &uninstall{p: p, dry: dry, screen: cli.NewScreen(p.std.out, p.variable)}
			if len(args) > 0 {
				if err := u.named(args[0], yes); err != nil {
					return err
				}
			}
			return u.run(c.Context(), len(args) > 0)
		},
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "print what would be removed, without changing anything")
	c.Flags().BoolVar(&yes, "yes", false, "remove the store without asking")
	return c
}

// uninstall is one run of `mailtree uninstall`.
type uninstall struct {
	p      *program
	dry    bool
	screen *cli.Screen
	found  bool     // something was removed or, with --dry-run, would be removed
	shown  []string // the changes that the dry run has printed so far
	failed bool
	kept   []installed.Entry // what stays in the store's list
}

// named checks the store given on the command line, and asks the user whether to remove it.
func (u *uninstall) named(store string, yes bool) error {
	store, err := filepath.Abs(store)
	switch {
	case err != nil:
		return err
	case store != u.p.cfg.Store:
		return &exitError{exitUsage, fmt.Errorf("%q is not the store that this command uses (%s): omit it, or add --store %q", store,
			u.p.cfg.Store, store)}
	case !storedir.IsStore(store):
		return &exitError{exitNothing, fmt.Errorf("there is no store at %s", store)}
	case isLink(store):
		return fmt.Errorf("%s is a symbolic link: replace it with the folder that it points to, or remove that folder yourself", store)
	case yes || u.dry:
		return nil
	case !cli.IsTerminal(u.p.std.in):
		return fmt.Errorf("this would remove the store %s with all mail and its history. It cannot be undone: add --yes to confirm", store)
	}
	fmt.Fprintf(u.p.std.err, "Remove the store %s with all mail and its history? This cannot be undone. [y/N] ", store)
	answer, _ := bufio.NewReader(u.p.std.in).ReadString('\n')
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return errors.New("nothing was removed")
	}
	return nil
}

func (u *uninstall) run(ctx context.Context, store bool) error {
	noted, err := installed.Read(u.p.cfg.Store)
	u.check(err)
	at, err := u.p.clientSite()
	if err != nil {
		return err
	}
	u.service(ctx)
	switch held := storedir.Held(u.p.cfg.Store); {
	case held && u.dry:
		u.report("would stop the server")
	case held:
		if _, err := u.p.stop(ctx); err != nil && !errors.Is(err, errNoServer) {
			return fmt.Errorf("the server cannot be stopped: %w", err)
		}
		u.report("stopped the server")
	}
	dirs := u.folders(at, noted)
	u.clients(at, dirs, noted)
	u.guards(ctx, dirs)
	u.plugins(noted)
	u.lists()
	switch {
	case store && u.failed:
		u.report("kept the store %s, because it contains the list of items that still need to be removed", u.p.cfg.Store)
	case store:
		u.remove(u.p.cfg.Store, os.RemoveAll)
	}
	if !u.found {
		u.report("nothing to remove")
	}
	u.tellRest(store)
	if u.failed {
		return fmt.Errorf("some things could not be removed: fix the problems above, then run `mailtree uninstall` again")
	}
	if u.dry || store {
		return nil
	}
	err = installed.Forget(u.p.cfg.Store)
	for _, e := range u.kept {
		err = errors.Join(err, installed.Note(u.p.cfg.Store, e))
	}
	return err
}

func (u *uninstall) report(format string, a ...any) { u.screen.Tell(format+"\n", a...) }

// check reports err if err is not nil. The command then continues with its remaining steps.
func (u *uninstall) check(err error) {
	if err != nil {
		u.failed = true
		u.p.remark("%s", words.Explain(err))
	}
}

// remove removes a file or folder with the given function. It reports nothing if the file or folder does not exist.
func (u *uninstall) remove(path string, by func(string) error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return
	}
	u.found = true
	if u.dry {
		u.report("would remove %s", path)
		return
	}
	if err := by(path); err != nil {
		u.check(fmt.Errorf("cannot remove %s: %w", path, plainCause(err)))
		return
	}
	u.report("removed %s", path)
}

// service stops and removes the service if the service's file was written by `mailtree service` for this store. It also
// stops and disables the service of a Debian or RPM package, which uses the default store, but keeps the package's file.
func (u *uninstall) service(ctx context.Context) {
	s, err := u.p.service()
	if errors.Is(err, service.ErrSystem) {
		return
	}
	if err != nil {
		u.check(fmt.Errorf("cannot check whether the service is installed: %w", err))
		return
	}
	enabled := filepath.Join(filepath.Dir(s.Path), "default.target.wants", filepath.Base(s.Path))
	text, err := os.ReadFile(s.Path)
	packaged := errors.Is(err, fs.ErrNotExist) && isLink(enabled)
	switch {
	case packaged && u.p.namedStore() != "":
		u.report("kept %s, which starts the server of the default store", enabled)
		return
	case packaged:
	case err != nil || !strings.Contains(string(text), "Written by `mailtree service`"):
		return
	case !s.RunsStore(string(text)):
		u.report("kept %s, which runs the server of another store", s.Path)
		return
	}
	file, _ := filepath.EvalSymlinks(enabled)
	u.remove(enabled, os.Remove) // systemctl does not remove the link if systemd is not running
	if u.dry {
		u.report("would run %s", s.Stop)
	} else {
		ctx, cancel := context.WithTimeout(ctx, longestStop)
		defer cancel()
		if err := exec.CommandContext(ctx, "sh", "-c", s.Stop).Run(); err == nil {
			u.report("stopped the service")
		}
	}
	if packaged && file != "" {
		u.report("kept %s, which a package installed", file)
	}
	u.remove(s.Path, os.Remove)
}

// folders returns the folders that may contain files written by mailtree. These are the current code base, the code
// bases of the store's projects, and the folders in the store's list and in its map of folders.
func (u *uninstall) folders(at clients.Site, noted []installed.Entry) (dirs []string) {
	all := []string{at.Dir}
	names, err := storedir.ProjectNames(u.p.cfg.Store)
	if !errors.Is(err, fs.ErrNotExist) {
		u.check(err)
	}
	for _, n := range names {
		all = append(all, n.HumanKey)
	}
	known, err := folders.Open(u.p.cfg.Store).Load()
	u.check(err)
	if err == nil {
		for _, l := range known.Lines {
			all = append(all, l.Folder)
		}
		for _, r := range known.Repositories {
			all = append(all, r.Folder)
		}
	}
	for _, e := range noted {
		if e.Kind == installed.Client || e.Kind == installed.Guard {
			all = append(all, e.Dir)
		}
	}
	for _, dir := range all {
		if fi, err := os.Stat(dir); filepath.IsAbs(dir) && err == nil && fi.IsDir() && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// clients removes everything that setup wrote to the user's own files and to the code bases.
func (u *uninstall) clients(at clients.Site, dirs []string, noted []installed.Entry) {
	for _, c := range clients.List() {
		sites := []clients.Site{at}
		for _, e := range noted {
			if e.Client == c.Name && len(e.Env) > 0 {
				site := at
				site.Env = func(name string) string { return e.Env[name] }
				sites = append(sites, site)
			}
		}
		for _, toolset := range []string{"", clients.Email} {
			for _, site := range sites {
				u.client(clients.Setup{Site: site, Client: c, Scope: clients.User, Toolset: toolset})
			}
			for _, dir := range dirs {
				site, err := siteOf(at, dir)
				if err != nil {
					u.check(err)
					continue
				}
				u.client(clients.Setup{Site: site, Client: c, Scope: clients.Project, Toolset: toolset})
			}
		}
	}
}

// client removes everything that `mailtree setup` wrote for s, except what it wrote for another store.
func (u *uninstall) client(s clients.Setup) {
	uses, err := s.Uses()
	switch {
	case errors.Is(err, clients.ErrNoFile):
		return
	case err != nil && !errors.Is(err, clients.ErrNotOurs):
		u.check(whatToDo(err, s))
		return
	}
	if other := u.others(uses.Stores); other != "" {
		u.report("kept the configuration of %s for the store %s. To remove it, run `mailtree uninstall --store %s`", s.Client.Title, other, other)
		return
	}
	changes, err := s.Remove()
	if err != nil {
		u.check(whatToDo(err, s))
		return
	}
	for _, c := range changes {
		u.found = true
		if u.dry {
			u.preview(c)
		} else if err := c.Apply(); err != nil {
			u.check(whatToDo(err, s))
		} else {
			u.p.lines(done(c))
			if kept := c.Kept(); kept != "" {
				u.report("kept %s, the backup of your original file, because the file has been changed since", kept)
			}
		}
	}
	if uses.ByHand != "" {
		file, _, _ := s.Entry()
		u.report("kept your own entry in %s: %s", file, uses.ByHand)
	}
}

// preview prints the changes that would be made to a file. If two code bases share a file, preview prints the changes
// only once.
func (u *uninstall) preview(c *clients.Change) {
	text := string(c.Diff())
	switch {
	case slices.Contains(u.shown, text):
		return
	case c.Gone():
		u.report("would remove %s, which contains nothing else", c.File())
	default:
		fmt.Fprint(u.p.std.out, text)
	}
	u.shown = append(u.shown, text)
}

// others returns one of the given stores, or "" if this command's store is among them.
func (u *uninstall) others(stores []string) (other string) {
	for _, store := range stores {
		if store == u.p.namedStore() {
			return ""
		}
		other = cmp.Or(store, "~/.mailtree")
	}
	return other
}

// guards removes the guard's hooks from the repositories.
func (u *uninstall) guards(ctx context.Context, dirs []string) {
	for _, dir := range dirs {
		at, err := site([]string{dir}, u.p.env)
		if err != nil {
			u.check(err)
			continue
		}
		hooks, err := guard.Find(ctx, at)
		if errors.Is(err, maildir.ErrInvalid) || errors.Is(err, maildir.ErrNotFound) || err == nil && len(hooks) == 0 {
			continue // the folder is not in a working tree, or has no guard
		}
		if guard.NoGit(err) {
			if top, _ := repo.WorkTree(dir); top != "" {
				u.check(fmt.Errorf("git was not found on the PATH, so any guard hooks in %s were kept. Install Git "+
					"2.34 or newer, then run `mailtree uninstall` again", dir))
			}
			continue
		}
		if err != nil {
			u.check(err)
			continue
		}
		if other := hooks[0].Store; other != "" && other != u.p.cfg.Store {
			u.report("kept the guard in %s, which belongs to the store %s", dir, other)
			continue
		}
		u.found = true
		if u.dry {
			for _, h := range hooks {
				u.report("would remove %s", h.File)
			}
			continue
		}
		done, err := guard.Uninstall(ctx, at)
		u.p.lines(done)
		u.check(err)
	}
}

// plugins removes the plugins that setup wrote to folders. Folders that still contain a plugin's file stay in the list.
func (u *uninstall) plugins(noted []installed.Entry) {
	for _, e := range noted {
		if e.Kind != installed.Plugins || !filepath.IsAbs(e.Dir) {
			continue
		}
		top, err := repo.WorkTree(e.Dir)
		inRepository := err == nil && top != ""
		removed, kept, err := plugin.Remove(e.Dir, u.dry || inRepository)
		u.check(err)
		switch {
		case len(removed) > 0 && inRepository:
			u.report("kept the plugins in %s: the folder is in a Git repository, so they may be under version control", e.Dir)
		case len(removed) > 0:
			u.found = true
			u.report("%s the plugins in %s", map[bool]string{true: "would remove", false: "removed"}[u.dry], e.Dir)
		}
		for _, name := range kept {
			u.report("kept %s, which has changed since it was written", filepath.Join(e.Dir, name))
		}
		if len(kept) > 0 || len(removed) > 0 && inRepository {
			u.kept = append(u.kept, e)
		}
	}
}

func isLink(name string) bool {
	fi, err := os.Lstat(name)
	return err == nil && fi.Mode()&fs.ModeSymlink != 0
}

// lists removes the folder that contains the last list of each terminal.
func (u *uninstall) lists() {
	if state := u.p.stateFolder(); state != "" {
		u.remove(state, os.RemoveAll)
	}
}

// tellRest lists what the command does not remove, and what it cannot find.
func (u *uninstall) tellRest(store bool) {
	if !store && storedir.IsStore(u.p.cfg.Store) {
		u.report("kept the store %s. To remove it too, with all mail:\n  mailtree uninstall %s", u.p.cfg.Store, guard.ShellWord(u.p.cfg.Store))
	}
	for _, dir := range besideStore(u.p.cfg.Store, asideSuffix) {
		u.report("kept the store %s, with its mail and keys. `mailtree restore` moved it aside", dir)
	}
	for _, dir := range besideStore(u.p.cfg.Store, freshSuffix) {
		u.report("kept the store %s, with its mail and keys. `mailtree restore` was killed and left it", dir)
	}
	program, _ := guard.Program()
	u.report("This command does not remove:")
	for _, line := range []string{
		"the program itself: " + cmp.Or(program, "mailtree"),
		"lines that you added to your shell's startup files, and units that you saved elsewhere",
		"a plugin that you installed in a client: remove it with the client's own command",
		"guards and client configurations in code bases without a project, if they were written before the store existed or by an older " +
			"version: run `mailtree uninstall` there",
		"sessions that are still open in a client: they keep the configuration that they started with",
	} {
		u.report("  - %s", line)
	}
}

// noteInstalled records in the store that a command is about to write files outside the store. If this fails,
// noteInstalled only prints a remark.
func (p *program) noteInstalled(e installed.Entry) {
	if err := installed.Note(p.cfg.Store, e); err != nil {
		p.remark("%v. `mailtree uninstall` may not find what this command writes", err)
	}
}

// noteClient records in the store that setup is about to write a client's files.
func (p *program) noteClient(s clients.Setup) {
	e := installed.Entry{Kind: installed.Client, Client: s.Client.Name}
	if s.Scope == clients.Project {
		e.Dir = s.Dir
	}
	for _, name := range clients.Variables() {
		if v := s.Env(name); v != "" && s.Scope == clients.User {
			if e.Env == nil {
				e.Env = map[string]string{}
			}
			e.Env[name] = v
		}
	}
	p.noteInstalled(e)
}
