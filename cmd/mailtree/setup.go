package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"mailtree/clients"
	"mailtree/clients/edit"
	"mailtree/cmd/mailtree/cli"
	"mailtree/guard"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/repo"
	"mailtree/maildir/storedir"
)

func setupCommand(p *program) *cobra.Command {
	var o setupOptions
	c := &cobra.Command{
		Use:   "setup [CLIENT]",
		Short: "Configure a client (Claude Code, Codex, …) to use mailtree",
		Long: "Configure a client to use mailtree. The command writes an MCP entry and hooks. The entry runs `mailtree stdio` or, with\n" +
			"--http, contains the server's address. The hooks run `mailtree hook CLIENT`, which notifies the client's sessions of\n" +
			"mail. Everything else in the client's files stays as it is, and each original file is backed up once. A second run\n" +
			"changes nothing.\n" +
			"CLIENT is one of " + strings.Join(clientNames(), ", ") + ".\n" +
			"Exit status 0: everything is set up. 1: a file cannot be changed, or --check finds a problem. 2: the command line is wrong.",
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: clientNames(),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.conflict(args); err != nil {
				return &exitError{2, err}
			}
			if o.plugin != "" {
				return p.writePlugins(o)
			}
			if len(args) == 0 && !o.list && !o.check {
				return usageError(c, fmt.Errorf("specify a client: %s (`mailtree setup --list` shows their files)",
					strings.Join(clientNames(), ", ")))
			}
			if err := p.setup(c.Context(), o, args); err != nil || !o.makesProject(args) {
				return err
			}
			return p.projectHere(c.Context())
		},
	}
	f := c.Flags()
	f.BoolVar(&o.list, "list", false, "list the clients and their files")
	f.BoolVar(&o.check, "check", false,
		"check whether the client (default: every configured client) can use mailtree, without changing anything")
	f.BoolVar(&o.json, "json", false, "with --check: print the result as JSON")
	f.BoolVar(&o.user, "user", false, "write the user's own configuration (default)")
	f.BoolVar(&o.project, "project", false, "write the configuration of this code base, and create its mail project")
	f.BoolVar(&o.http, "http", false, "connect over HTTP, at HOST and PORT if one of them is set, otherwise at the running "+
		"server's address; calls fail while no server is running (default: mailtree stdio, which starts one)")
	f.BoolVar(&o.noHooks, "no-hooks", false, "write only the MCP entry, and leave existing hooks unchanged")
	f.BoolVar(&o.instructions, "instructions", false, "also add five lines of instructions for agents to the file that the client "+
		"reads, such as AGENTS.md or CLAUDE.md")
	f.BoolVar(&o.allow, "allow", false, "let the client call mailtree's tools without asking (claude, codex, gemini, qwen)")
	f.StringVar(&o.toolset, "toolset", "", "if set to aimx: write an additional entry \"email\" for that toolset, without hooks")
	f.StringVar(&o.plugin, "plugin", "", "write the plugins for all clients that support plugins to the folder `DIR`")
	f.BoolVar(&o.print, "print", false, "print the entry and the hooks without changing anything")
	f.BoolVar(&o.dryRun, "dry-run", false, "print the changes as a diff without making them")
	f.BoolVar(&o.remove, "remove", false, "remove what this command wrote to the user's own configuration (with --project: to that of this code base)")
	return c
}

type setupOptions struct {
	list, check, print, dryRun, remove bool
	json                               bool // used only together with check
	user, project                      bool
	noHooks, instructions, http, allow bool

	toolset string
	plugin  string // the folder for the plugins
}

// makesProject reports whether setup creates a project for the code base. In a code base without a project, hooks do
// nothing.
func (o setupOptions) makesProject(args []string) bool {
	return o.project && len(args) == 1 && !o.list && !o.check && !o.print && !o.dryRun && !o.remove
}

// conflict returns an error if the options contradict each other.
func (o setupOptions) conflict(args []string) error {
	instead := slices.DeleteFunc([]bool{o.list, o.check, o.print, o.remove}, func(set bool) bool { return !set })
	switch {
	case len(instead) > 1:
		return errors.New("use only one of --list, --check, --print and --remove")
	case o.plugin != "" && (len(args) > 0 || o != setupOptions{plugin: o.plugin, dryRun: o.dryRun}):
		return errors.New("--plugin writes the plugins of all clients: omit the client and all other flags except --dry-run")
	case o.json && !o.check:
		return errors.New("--json requires --check")
	case o.user && o.project:
		return errors.New("use only one of --user and --project")
	case o.toolset != "" && o.toolset != clients.Email:
		return fmt.Errorf("--toolset is %q, but must be aimx: omit it to set up the mail tools", o.toolset)
	case o.toolset != "" && (o.http || o.instructions || o.list):
		return errors.New("--toolset aimx cannot be used with --http, --instructions or --list")
	case len(args) == 1 && !slices.Contains(clientNames(), args[0]):
		names := clientNames()
		return fmt.Errorf("unknown client %q%s. Clients: %s", args[0], meant(format.Near(args[0], names)), strings.Join(names, ", "))
	}
	return nil
}

func clientNames() (names []string) {
	for _, c := range clients.List() {
		names = append(names, c.Name)
	}
	return names
}

// setup runs `mailtree setup`. Errors name the file that caused them, and tell the user what to do.
func (p *program) setup(ctx context.Context, o setupOptions, args []string) error {
	at, err := p.clientSite()
	if err != nil {
		return err
	}
	if o.list {
		return p.listClients(ctx, at)
	}
	if o.check {
		return p.checkClients(ctx, o, at, args)
	}
	if !o.remove && !o.print && !o.dryRun {
		if _, err := guard.Program(); err != nil {
			return err
		}
	}
	s := clients.Setup{
		Site:   at,
		Client: clientNamed(args[0]),
		Scope:  o.scopes()[0],
		Store:  p.namedStore(),

		Toolset: o.toolset,
	}
	if o.remove {
		changes, err := s.Remove()
		return p.changeClient(o, s, changes, err)
	}
	if o.allow && !s.Client.CanAllow() {
		return &exitError{2, fmt.Errorf("--allow: setup cannot write permissions for %s. Omit --allow, and allow mailtree's tools when "+
			"%s asks", s.Client.Title, s.Client.Title)}
	}
	want := clients.Wanted{NoHooks: o.noHooks, Instructions: o.instructions, Allow: o.allow}
	if want.Server, err = p.serverFor(ctx, s.Client, o); err != nil {
		return err
	}
	if o.print {
		return p.printClient(s, want)
	}
	changes, err := s.Add(want)
	if err := p.changeClient(o, s, changes, err); err != nil {
		return err
	}
	if _, leads, err := s.Entry(); err == nil && leads != nil && leads.String() == want.Server.String() && !o.dryRun && len(changes) > 0 {
		p.lines([]string{whyTransport(want.Server)})
	}
	if asks, err := s.AsksFor(); err == nil && asks && !o.dryRun && len(changes) > 0 {
		p.lines([]string{asksForTools(s.Client, o.http)})
	}
	if s.Client.Restart && !o.dryRun && len(changes) > 0 {
		p.lines([]string{"Restart " + s.Client.Title + ": an open session keeps the configuration that it started with"})
	}
	hooks, err := s.Hooks()
	if hooks.Trust != "" && !o.noHooks && !o.dryRun && len(changes) > 0 {
		p.lines([]string{hooks.Trust})
	}
	if missing := p.projectMissing(at); missing != "" && hooks.Want > 0 && !o.noHooks && !o.dryRun && !o.project {
		p.lines([]string{missing})
	}
	if _, missing := exec.LookPath("mailtree"); missing != nil && (want.Server.URL == "" || hooks.Want > 0) {
		fmt.Fprintln(p.std.err, "mailtree is not on the PATH, so the client cannot find it. Add its folder to the PATH")
	}
	return err
}

// printClient prints the entries for the client's files. If there are several files, it also prints their names.
func (p *program) printClient(s clients.Setup, want clients.Wanted) error {
	files, err := s.Alone(want)
	if err != nil {
		return whatToDo(err, s)
	}
	for i, f := range files {
		if i > 0 {
			fmt.Fprintln(p.std.out)
		}
		if len(files) > 1 {
			fmt.Fprintf(p.std.out, "# %s\n", f.Name)
		}
		p.std.out.Write(f.Data)
	}
	return nil
}

// changeClient writes the changes to the files. In a dry run, it only prints the changes.
func (p *program) changeClient(o setupOptions, s clients.Setup, changes []*clients.Change, err error) error {
	if err != nil {
		return whatToDo(err, s)
	}
	if len(changes) == 0 {
		fmt.Fprintf(p.std.out, "%s: nothing to change\n", s.Client.Title)
	} else if !o.dryRun && !o.remove {
		p.noteClient(s)
	}
	for _, c := range changes {
		if o.dryRun {
			p.std.out.Write(c.Diff())
			continue
		}
		if err := c.Apply(); err != nil {
			return cannotWrite(c, whatToDo(err, s))
		}
		p.lines(done(c))
	}
	return nil
}

// namedStore returns the store that commands have to specify, or "" if the store is the default store.
func (p *program) namedStore() string {
	if home, err := os.UserHomeDir(); err == nil && p.cfg.Store == filepath.Join(home, ".mailtree") {
		return ""
	}
	return p.cfg.Store
}

// done returns lines that describe a change that has been made.
func done(c *clients.Change) (lines []string) {
	if c.Gone() {
		return []string{"removed " + c.File() + ", which contained nothing else"}
	}
	lines = []string{"wrote " + c.File()}
	if c.Backup() != "" {
		lines = append(lines, "saved the original file as "+c.Backup())
	}
	return lines
}

// cannotWrite returns a system error that contains the name of the client's file instead of the name of the temporary
// file.
func cannotWrite(c *clients.Change, err error) error {
	if of := (*fs.PathError)(nil); errors.As(err, &of) {
		return fmt.Errorf("cannot write %s: %w. Make sure that you can write to the file and its folder, then try again", c.File(), of.Err)
	}
	return err
}

// whatToDo adds to an error from setup advice on what the user can do.
func whatToDo(err error, s clients.Setup) error {
	var syntax *clients.SyntaxError
	advice := ""
	switch {
	case errors.As(err, &syntax):
		advice = "Nothing was changed: fix the file, then try again"
	case errors.Is(err, clients.ErrNotOurs):
		advice = "Nothing was changed: remove or rename that entry, then try again"
	case errors.Is(err, clients.ErrNotOurFile):
		advice = "Nothing was changed: move the file elsewhere, then try again"
	case errors.Is(err, edit.ErrByHand), errors.Is(err, clients.ErrReadOnly), errors.Is(err, clients.ErrOutside):
		advice = "Nothing was changed: `mailtree setup " + s.Client.Name + " --print` shows what to add by hand"
	case errors.Is(err, clients.ErrChanged):
		advice = "Nothing was written: try again"
	case errors.Is(err, clients.ErrNoFile) && s.Scope == clients.Project:
		advice = "Use --user"
	case errors.Is(err, clients.ErrNoFile):
		advice = "Use --project"
	default:
		return err
	}
	return fmt.Errorf("%w. %s", err, advice)
}

// scopes returns the scopes that the command line selects. If the command line selects none, the user scope comes
// first.
func (o setupOptions) scopes() []clients.Scope {
	switch {
	case o.project:
		return []clients.Scope{clients.Project}
	case o.user:
		return []clients.Scope{clients.User}
	}
	return []clients.Scope{clients.User, clients.Project}
}

func clientNamed(name string) clients.Client {
	all := clients.List()
	return all[slices.IndexFunc(all, func(c clients.Client) bool { return c.Name == name })]
}

// clientSite returns the home folder and the code base for which clients are set up.
func (p *program) clientSite() (at clients.Site, err error) {
	at = clients.Site{
		Env: p.variable,
		Mac: runtime.GOOS == "darwin",
	}
	if at.Home, err = os.UserHomeDir(); err != nil {
		return at, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return at, err
	}
	return siteOf(at, dir)
}

// siteOf returns a copy of at that refers to the code base that contains the folder.
func siteOf(at clients.Site, dir string) (_ clients.Site, err error) {
	if at.Dir, err = codeBase(dir); err == nil {
		at.Git, _, err = repo.GitFolders(at.Dir)
	}
	if err != nil {
		return at, fmt.Errorf("cannot find the Git working tree of %s: %w. Try again", dir, err)
	}
	return at, nil
}

// codeBase returns the top of a folder's working tree, or the folder itself if it is not in a working tree.
func codeBase(dir string) (top string, err error) {
	if dir, err = repo.WithoutLinks(dir); err != nil {
		return "", err
	}
	if top, err = repo.WorkTree(dir); err != nil || top == "" {
		return dir, err
	}
	return top, nil
}

// projectMissing returns a sentence if hooks do nothing in this code base because the code base has no project yet. It
// returns "" if there is a project, or if the folder is not a code base.
func (p *program) projectMissing(at clients.Site) string {
	if tree, err := repo.WorkTree(at.Dir); err != nil || tree == "" {
		return ""
	}
	t, _, err := storedir.OpenProject(p.cfg.Store, at.Dir, p.cfg.Scope)
	if err == nil {
		t.Close()
	}
	if !errors.Is(err, maildir.ErrNotFound) {
		return ""
	}
	return "no project for " + at.Dir + " yet: agents there get no mail until `mailtree new project` creates one"
}

// serverFor returns how a client reaches the server. If the user has asked for HTTP, the client connects over HTTP.
// Otherwise, the client uses the bridge, which starts a server if none is running.
func (p *program) serverFor(ctx context.Context, c clients.Client, o setupOptions) (clients.Server, error) {
	if o.http {
		return p.direct(ctx, c)
	}
	bridge := clients.Server{Args: []string{"stdio"}}
	if o.toolset != "" {
		bridge.Args = append(bridge.Args, "--toolset", o.toolset)
	}
	if store := p.namedStore(); store != "" {
		bridge.Args = append(bridge.Args, "--store", store)
	}
	return bridge, nil
}

// direct returns the address at which a client reaches the server over HTTP. If the user has set neither HOST nor PORT
// and a server is running, this is the address of that server. Otherwise, it is the address in the settings. direct
// warns the user if the server is running at a different address.
func (p *program) direct(ctx context.Context, c clients.Client) (clients.Server, error) {
	direct := clients.Server{URL: p.url()}
	at := p.servedURL(ctx)
	chosen := p.cfg.Port != 0 && (p.cfg.source("HOST") != "default" || p.cfg.source("PORT") != "default")
	if at != "" && !chosen {
		direct.URL = at
	} else if p.cfg.Port == 0 {
		return direct, &exitError{exitUsage, fmt.Errorf("%s is \"0\", which clients cannot connect to, and the store's server is not "+
			"serving HTTP: specify the port of the server, or first run `mailtree serve`", p.cfg.given("PORT"))}
	}
	if p.cfg.RequireToken || !onLoopback(direct.URL) { // a server that other users can reach requires the token
		direct.Headers = clients.HeadersCommand(p.namedStore())
		if !c.TakesHeaders() {
			return direct, &exitError{exitUsage, errors.New("the server requires its token over HTTP, and the client's " +
				"file would contain that token: omit --http")}
		}
	}
	if at != "" && at != direct.URL {
		if err := p.serves(ctx, direct); err != nil {
			fmt.Fprintf(p.std.err, "%s: %v. The server is running at %s: to use that server, omit --host, --port, HOST and PORT\n", direct.URL, err, at)
		}
	}
	return direct, nil
}

// servedURL returns the URL at which clients reach the running server. It returns "" if no server is running. It also
// returns "" for a background server, because such a server opens a port only for the page.
func (p *program) servedURL(ctx context.Context) string {
	if r := p.running(ctx); r != nil && r.URL != "" && !r.Background {
		return r.URL + "/mcp"
	}
	return ""
}

// onLoopback reports whether a URL contains a loopback address.
func onLoopback(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback())
}

// whyTransport explains what happens to the client's calls while no server is running, for example after a reboot.
func whyTransport(server clients.Server) string {
	if server.URL != "" {
		return "The client connects over HTTP, so its calls fail if no server is running. Without --http, the client starts a server " +
			"itself. To start the server at login, see `mailtree service`"
	}
	return "The client runs `mailtree stdio`, which starts a server if none is running, so calls also work after a crash or a " +
		"reboot; with --http they would fail"
}

// url returns the URL at which clients on this machine reach the server.
func (p *program) url() string {
	host := p.cfg.Host
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(p.cfg.Port)) + "/mcp"
}

// serves returns nil if this store's server is listening at a URL. Otherwise, it returns an error that says what is
// listening at that URL.
func (p *program) serves(ctx context.Context, server clients.Server) error {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(server.URL, "/mcp")+"/health", nil)
	if err != nil {
		return err
	}
	if server.Headers != "" {
		token, err := p.token()
		if err != nil {
			return err
		}
		r.Header.Set(authorization, bearer+token)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return errors.New("no server is responding at this address")
	}
	defer res.Body.Close()
	var h healthReport
	if err := json.NewDecoder(res.Body).Decode(&h); err != nil || h.Store == "" {
		return fmt.Errorf("the server at this address is not a mailtree server, or refuses your requests (%s)", res.Status)
	}
	if h.Store != p.cfg.Store {
		return fmt.Errorf("the server at this address uses another store, %q", h.Store)
	}
	return nil
}

func (p *program) listClients(ctx context.Context, at clients.Site) error {
	screen := cli.NewScreen(p.std.out, p.variable)
	rows := []cli.Row{{Cells: []string{"CLIENT", "NAME", "INSTALLED", "SETUP WRITES", "USER FILE", "PROJECT FILE"}}}
	for _, c := range clients.List() {
		found := "-"
		if (clients.Setup{Site: at, Client: c, Scope: clients.User}).Found() {
			found = "found"
		}
		hooks := "entry"
		if h, _ := (clients.Setup{Site: at, Client: c, Scope: clients.User}).Hooks(); h.Want > 0 {
			hooks = "entry, hooks"
		}
		row := cli.Row{Cells: []string{c.Name, c.Title, found, hooks}}
		yours := ""
		for _, scope := range []clients.Scope{clients.User, clients.Project} {
			file, leads, err := clients.Setup{Site: at, Client: c, Scope: scope}.Entry()
			same := sameFile(file, yours)
			yours = file
			switch {
			case errors.Is(err, clients.ErrNoFile), same:
				file = "-"
			case leads != nil:
				file += " (set up)"
			}
			row.Cells = append(row.Cells, file)
		}
		rows = append(rows, row)
	}
	if screen.Width > 0 { // the file names are too long for columns
		for i, r := range rows {
			rows[i].Cells, rows[i].Below = r.Cells[:4], r.Cells[4]+" "+r.Cells[5]
		}
		rows[0].Below = "USER FILE, PROJECT FILE"
	}
	return screen.Paged(ctx, func(s *cli.Screen) error {
		s.Table(rows)
		return nil
	})
}

// sameFile reports whether two paths refer to the same file. In the home folder, some of a client's user files are also
// its project files.
func sameFile(a, b string) bool {
	if a == b {
		return true
	}
	fa, errA := os.Stat(a)
	fb, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(fa, fb)
}

// setupAgain returns the command that sets up a client again in the same files, without changing the transport of the
// client's entry.
func setupAgain(c clients.Client, http bool, scope clients.Scope) string {
	command := "mailtree setup " + c.Name
	if http {
		command += " --http"
	}
	if scope == clients.Project {
		command += " --project"
	}
	return command
}

// asksForTools returns a warning for clients that ask the user before each tool call. In such a client, a turn that is
// started by mail waits for the user. http is set if the client's entry contains a URL.
func asksForTools(c clients.Client, http bool) string {
	return c.Title + " may ask you before it calls a mailtree tool, and a session woken by mail will wait at that prompt. " +
		"To allow the tools in advance: `" + setupAgain(c, http, clients.User) + " --allow`"
}
