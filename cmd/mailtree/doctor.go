package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	"mailtree/guard"
	"mailtree/maildir"
	"mailtree/maildir/attachment"
	"mailtree/maildir/claim"
	"mailtree/maildir/folders"
	"mailtree/maildir/format"
	"mailtree/maildir/gitlog"
	"mailtree/maildir/index"
	"mailtree/maildir/storedir"
	"mailtree/maildir/tree"
	mcpserver "mailtree/mcp"
	"mailtree/mcp/tool"
)

func doctorCommand(p *program) *cobra.Command {
	d := &doctor{p: p}
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check the store and its clients for problems",
		Long: "Check the store and the clients that are set up here for problems, and explain how to fix them. The command changes\n" +
			"nothing and also works while a server is running.\n" +
			"Each line begins with ok, -- (information) or !! (a problem that you need to fix); problems come last.\n" +
			"The exit status is 0 if there are no problems, otherwise 1.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !storedir.IsStore(p.cfg.Store) {
				return p.begin()
			}
			d.examine(c.Context())
			d.clients(c.Context())
			return d.tellWrong()
		},
	}
	c.Flags().BoolVar(&d.json, "json", false, "print the result as JSON")
	c.Flags().BoolVar(&d.all, "all", false, "list every finding instead of the first twenty of each kind")
	return c
}

// doctor prints one line for each finding. The line begins with "ok", with "--" for a remark, or with "!!" for a
// problem. Problems come last, and say what to do.
type doctor struct {
	p   *program
	all bool // list every finding
	bad int  // number of problems

	wrong strings.Builder // lines that report problems, which are printed last

	json  bool           // print the findings as JSON
	found []findingShape // the findings so far, if json is set

	// sends reports whether the running server sends mail to other domains. If no server is running, it reports whether
	// the settings allow such mail.
	sends bool
}

// findingShape is a finding in the JSON that `mailtree doctor` prints.
type findingShape struct {
	Kind string `json:"kind"` // ok, info or problem
	Text string `json:"text"`
}

func (d *doctor) ok(format string, args ...any) { d.add("ok", format, args) }

func (d *doctor) say(format string, args ...any) {
	d.bad++
	d.add("!!", format, args)
}

func (d *doctor) note(format string, args ...any) { d.add("--", format, args) }

// add prints a finding, or stores the finding to be printed at the end.
func (d *doctor) add(mark, format string, args []any) {
	line := finding(mark, format, args)
	switch {
	case d.json:
		kind := map[string]string{"ok": "ok", "--": "info", "!!": "problem"}[mark]
		d.found = append(d.found, findingShape{kind, strings.TrimSpace(strings.TrimPrefix(line, mark))})
	case mark == "!!":
		d.wrong.WriteString(line)
	default:
		d.print(line)
	}
}

func (d *doctor) print(text string) { cli.NewScreen(d.p.std.out, d.p.variable).Tell("%s", text) }

// finding formats one line. Because args may contain text written by others, finding escapes characters that could end
// the line or control the terminal.
func finding(mark, form string, args []any) string {
	for i, a := range args {
		switch a := a.(type) {
		case string:
			args[i] = format.Printable(a)
		case error:
			args[i] = format.Printable(words.Explain(a))
		}
	}
	return fmt.Sprintf(mark+"  "+form+"\n", args...)
}

// tellWrong prints the problems or, with --json, all findings. If there are problems, it returns an error.
func (d *doctor) tellWrong() error {
	if d.json {
		err := d.p.printJSON(map[string]any{"problems": d.bad, "findings": d.found})
		if err == nil && d.bad > 0 {
			err = &exitError{exitFailed, nil}
		}
		return err
	}
	if d.bad == 0 {
		return nil
	}
	d.print(d.wrong.String())
	return &exitError{1, fmt.Errorf("%s (marked !! above)", count(d.bad, "problem"))}
}

// most is the maximum number of findings of one kind that are listed without --all.
const most = 20

// listed returns how many of n findings of one kind doctor prints.
func (d *doctor) listed(n int) int {
	if d.all {
		return n
	}
	return min(n, most)
}

const unlisted = "%d more like these: `mailtree doctor --all` lists them"

// sayMore reports that n more findings of one kind are not listed.
func (d *doctor) sayMore(n int) {
	if n > 0 {
		d.bad += n - 1
		d.say(unlisted, n)
	}
}

// noteMore is like sayMore, but for remarks.
func (d *doctor) noteMore(n int) {
	if n > 0 {
		d.note(unlisted, n)
	}
}

func (d *doctor) examine(ctx context.Context) {
	v, err := openTrees(d.p.cfg)
	d.permissions()
	d.files()
	d.watches()
	d.notifications()
	if err != nil {
		d.say("%v", err)
		return
	}
	defer v.close()
	d.sends = len(d.p.cfg.Gateway.Allow) > 0
	if v.running {
		d.server(ctx)
	} else {
		d.ok("server: not running")
		d.refused()
	}
	unindexed := v.openIndex(ctx, d.p.cfg)
	if unindexed == nil {
		d.problems(ctx, v)
	}
	d.projects()
	d.gateway(ctx, v)
	d.unsent(v)
	d.crossing(v)
	for _, slug := range slices.Sorted(maps.Keys(v.trees)) {
		d.locks(slug, v.trees[slug])
		d.claims(slug, v.trees[slug])
		d.names(slug, v.trees[slug])
		d.attachments(ctx, slug, v.trees[slug])
		d.copies(ctx, slug, v.trees[slug])
	}
	if unindexed != nil {
		d.say("%v", unindexed)
		return
	}
	d.index(ctx, v)
}

// refused reports the projects that this version refuses to open because of their format. Call it only if no server is
// running, because a running server reports these projects itself.
func (d *doctor) refused() {
	all, err := storedir.Refused(d.p.cfg.Store)
	if err != nil {
		d.say("cannot check the formats of the projects: %v", err)
	}
	for _, slug := range slices.Sorted(maps.Keys(all)) {
		d.say("project %s was skipped. %v", slug, all[slug])
	}
}

// server checks the running server through its socket.
func (d *doctor) server(ctx context.Context) {
	holder := storedir.Holder(d.p.cfg.Store)
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	c := cli.NewClient(d.p.cfg.dialServer, tool.Caller{})
	var r healthReport
	if err := c.Get(ctx, "/health", &r); err != nil {
		d.note("server: process %s is using the store, but is not responding on %s. It may be a server that is "+
			"starting or has hung, or another mailtree command. If this does not change within a few minutes: `mailtree stop`",
			holder, storedir.SocketPath(d.p.cfg.Store))
		return
	}
	switch {
	case r.Background && r.URL == "":
		d.ok("server: process %s (%s) is running in the background. Its web page is off until you run `mailtree open`", holder, r.Version)
	case r.Background:
		d.ok("server: process %s (%s) is running in the background, with its page at %s", holder, r.Version, r.URL)
	default:
		d.ok("server: process %s (%s) is running at %s", holder, r.Version, r.URL)
	}
	if r.Open != "" {
		d.note("server: %s", r.Open)
	}
	for _, project := range r.Detail {
		if im := project.Import; im != nil {
			d.note("import: %s: %d of %d changed files are committed (not in the index yet: %d; marks without a timestamp: %d)",
				project.Project, im.Committed, im.Committed+im.Left+im.Unindexed, im.Unindexed, im.Untimed)
		}
		for _, u := range project.Unwoken {
			d.note("wake: %s: %s", project.Project, u.Text)
		}
	}
	d.sends = r.Sends
	d.queue(ctx, c)
	for _, reason := range append(r.Reasons(), r.Error, r.Watcher.Reason) {
		if reason != "" {
			d.say("server: %s", reason)
		}
	}
}

func (d *doctor) permissions() {
	good := true
	for name, want := range map[string]fs.FileMode{".": 0o700, "token": 0o600, "key": 0o600, "server.sock": 0o600} {
		fi, err := os.Stat(filepath.Join(d.p.cfg.Store, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			d.say("permissions: %v", err)
			good = false
		} else if fi.Mode().Perm()&^want != 0 {
			d.say("permissions: %s has mode %04o, which grants more access than necessary. Set the mode to %04o with chmod",
				filepath.Join(d.p.cfg.Store, name), fi.Mode().Perm(), want)
			good = false
		}
	}
	if good {
		d.ok("permissions of %s", d.p.cfg.Store)
	}
}

// files checks that the store's own files are readable. Users may have replaced these files.
func (d *doctor) files() {
	bad := maildir.FileProblems(d.p.cfg.Store)
	for _, err := range bad {
		d.say("store: %v", err)
	}
	if len(bad) == 0 {
		d.ok("store: no errors in the server's files")
	}
	for _, dir := range besideStore(d.p.cfg.Store, freshSuffix) {
		d.say("store: `mailtree restore` was killed and left %s, which may be your previous store. `mailtree help howto/backup` explains "+
			"how to find out", dir)
	}
}

// notifications checks that the program in NOTIFY_COMMAND exists. A server that cannot run the program only logs the
// failure.
func (d *doctor) notifications() {
	if len(d.p.cfg.Notify) == 0 {
		return
	}
	path, err := exec.LookPath(d.p.cfg.Notify[0])
	if err != nil {
		d.say("notifications: cannot find the program %q in NOTIFY_COMMAND. Install it, or specify its absolute path", d.p.cfg.Notify[0])
		return
	}
	d.ok("notifications: NOTIFY_COMMAND runs %s", path)
}

// watches compares the number of folders in all trees with the kernel's limit on inotify watches for each OS user.
func (d *doctor) watches() {
	if runtime.GOOS != "linux" {
		return
	}
	data, err := os.ReadFile("/proc/sys/fs/inotify/max_user_watches")
	if err != nil {
		return
	}
	limit, _ := strconv.Atoi(strings.TrimSpace(string(data)))
	folders := 0
	filepath.WalkDir(filepath.Join(d.p.cfg.Store, storedir.ProjectsDir), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if e.IsDir() && strings.HasPrefix(e.Name(), ".") {
			return fs.SkipDir
		}
		if e.IsDir() {
			folders++
		}
		return nil
	})
	if folders*5 > limit*4 {
		d.say("inotify: there are %d folders to watch, more than 80%% of fs.inotify.max_user_watches (%d). Raise the limit "+
			"with `sudo sysctl fs.inotify.max_user_watches=%d`. To make the change permanent, also set the limit in /etc/sysctl.d",
			folders, limit, max(524288, folders*4))
		return
	}
	d.ok("inotify: %d folders to watch, %d allowed", folders, limit)
}

// invalid lists the invalid files. It asks the running server, which also knows why it did not send a file. If no
// server responds, the list comes from the index.
func (d *doctor) invalid(ctx context.Context, v *view) ([]format.Problem, error) {
	if v.running {
		asking, cancel := context.WithTimeout(ctx, grace)
		defer cancel()
		var found mcpserver.Problems
		err := cli.NewClient(d.p.cfg.dialServer, tool.Caller{}).Ask(asking, "problems", struct{}{}, &found)
		if err == nil && !found.More {
			return found.Problems, nil
		}
	}
	return v.index.Problems(ctx, "", index.AllProblems)
}

func (d *doctor) problems(ctx context.Context, v *view) {
	all, err := d.invalid(ctx, v)
	if err != nil {
		d.say("cannot list the problems: %v", err)
		return
	}
	if len(all) == 0 {
		d.ok("files: all valid")
	}
	listed := d.listed(len(all))
	for _, p := range all[:listed] {
		d.say("file %s in %s: %s", placeOf(format.Printable(p.Path), p.Line), p.Project, p.Reason)
	}
	d.sayMore(len(all) - listed)
}

// projects reports projects that share a path, and projects whose folder is below the top of a working tree. In the
// second case, agents in other folders of the working tree belong to another project.
func (d *doctor) projects() {
	names, err := storedir.ProjectNames(d.p.cfg.Store)
	if err != nil {
		d.say("cannot read the projects: %v", err)
		return
	}
	d.folders()
	slices.SortStableFunc(names, func(a, b storedir.ProjectName) int { return a.Created.Compare(b.Created) })
	oldest := map[string]string{}
	for _, n := range names {
		if n.HumanKey == "" {
			continue
		}
		if first := oldest[n.HumanKey]; first != "" {
			d.say("projects %s and %s have the same path, %s. Calls with that path use the older project, %s. To "+
				"keep only that project, move the other project's folder out of %s", first, n.Slug, n.HumanKey, first,
				filepath.Join(d.p.cfg.Store, storedir.ProjectsDir))
			continue
		}
		oldest[n.HumanKey] = n.Slug
		switch top, err := d.p.cfg.Scope.Above(n.HumanKey); {
		case err != nil:
			d.say("cannot check the folder of project %s, %s: %v", n.Slug, n.HumanKey, err)
		case top != "":
			d.note("project %s covers only %s: other folders in the working tree %s belong to a different project", n.Slug, n.HumanKey, top)
		}
	}
}

// folders reports invalid lines in the map of folders, and a code base that was moved to this folder.
func (d *doctor) folders() {
	known, err := folders.Open(d.p.cfg.Store).Load()
	if err != nil {
		return // d.files reports the error
	}
	for _, line := range known.Wrong() {
		d.say("the file %s contains an invalid line, which is ignored. Fix or delete it: %s",
			filepath.Join(d.p.cfg.Store, folders.FileName), cli.Line(line))
	}
	if here, err := os.Getwd(); err == nil {
		for _, from := range d.p.movedHere(context.Background(), here) {
			d.say("%s", movedLine(from))
		}
	}
}

// crossing reports mail that is queued for other projects. If a server is running, it reports only mail that has been
// waiting for more than a minute.
func (d *doctor) crossing(v *view) {
	all, err := maildir.CrossingWaits(d.p.cfg.Store, slices.Sorted(maps.Keys(v.trees)))
	if err != nil {
		d.say("cannot read the mail queued for other projects: %v", err)
	}
	for _, w := range all {
		since := w.Since.Local().Format("2006-01-02 15:04")
		switch {
		case !v.running:
			d.note("mail: %s from project %s to project %s, queued since %s. The server delivers queued mail when it next starts",
				count(w.Messages, "message"), w.From, w.To, since)
		case time.Since(w.Since) > time.Minute:
			d.say("mail: %s from project %s to project %s, queued since %s. The server keeps trying; its log shows why delivery fails",
				count(w.Messages, "message"), w.From, w.To, since)
		}
	}
}

// locks reports old lock files, which may be left over from a crashed Git command.
func (d *doctor) locks(slug string, t *tree.Tree) {
	dir := filepath.Join(t.Dir(), ".git")
	stale := 0
	for _, name := range []string{"index.lock", "HEAD.lock", "packed-refs.lock", "config.lock"} {
		fi, err := os.Lstat(filepath.Join(dir, name))
		if err == nil && time.Since(fi.ModTime()) > time.Minute {
			d.say("git lock %s is %s old: if no git command is running there, delete it",
				filepath.Join(dir, name), time.Since(fi.ModTime()).Round(time.Second))
			stale++
		}
	}
	if _, err := os.Lstat(dir); tree.FaultOf(err) == tree.FaultGone {
		d.say("project %s has no Git repository (%s): mail works there, but nothing is committed. Restart the server to "+
			"create the repository", slug, dir)
	} else if mode, reason := gitlog.Look(t.Dir()); mode != "committing" {
		d.say("Git in %s: %s", slug, reason)
	} else if reason != "" {
		d.note("Git in %s: ready to commit, but %s", slug, reason)
	} else if stale == 0 {
		d.ok("Git in %s: ready to commit, no stale locks", slug)
	}
}

// names reports agents whose name is reserved for the server.
func (d *doctor) names(slug string, t *tree.Tree) {
	folders, err := t.List(format.AgentsDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.say("cannot read the agents of %s: %v", slug, err)
	}
	for _, f := range folders {
		if format.ServerName(f.Name()) {
			d.say("agents/%s in %s has a name that is reserved for the server. The agent's mail can be read, but the "+
				"agent cannot send mail. Rename the folder", f.Name(), slug)
		}
	}
}

// claims reports active claims whose holder is not an agent. Such a claim blocks every agent, and no agent can release
// it.
func (d *doctor) claims(slug string, t *tree.Tree) {
	now := time.Now()
	all, _, err := claim.Files(t, func(c *claim.Row) bool { return c.Live(now) })
	if err != nil {
		d.say("cannot read the claims of %s: %v", slug, err)
		return
	}
	var lost []claim.Row
	for _, c := range all {
		name, _, err := storedir.AgentNamed(t, c.Agent)
		if err != nil {
			d.say("cannot check the claims of %s: %v", slug, err)
			return
		}
		if name == "" {
			lost = append(lost, c)
		}
	}
	slices.SortFunc(lost, func(a, b claim.Row) int { return strings.Compare(a.Path, b.Path) })
	listed := d.listed(len(lost))
	for _, c := range lost[:listed] {
		d.say("the holder of claim %s in %s, %q, is not an agent. The claim lasts another %s; to end it: `touch %s`",
			c.Path, slug, c.Agent, format.TimeLeft(c.Expires.Sub(now)),
			guard.ShellWord(filepath.Join(t.Dir(), filepath.FromSlash(format.ReleasedMark(c.Path)))))
	}
	d.sayMore(len(lost) - listed)
}

// attachments reports files whose bytes do not match their names. Messages that refer to such a file no longer have
// the bytes that their senders sent.
func (d *doctor) attachments(ctx context.Context, slug string, t *tree.Tree) {
	var bad [][2]string
	good, err := attachment.Check(ctx, t, func(path, why string) { bad = append(bad, [2]string{path, why}) })
	if err != nil {
		d.say("cannot read the attachments of %s: %v", slug, err)
		return
	}
	listed := d.listed(len(bad))
	for _, b := range bad[:listed] {
		d.say("attachment %s in %s: %s. The server cannot provide the attachment's original content, and new messages cannot "+
			"attach that content. Restore the original file (`git log -- attachments` in %s shows changes), or move this file elsewhere",
			b[0], slug, b[1], t.Dir())
	}
	d.sayMore(len(bad) - listed)
	if len(bad) == 0 && good > 0 {
		d.ok("attachments of %s: %s, all intact", slug, count(good, "file"))
	}
}

// copies reports inbox and outbox copies that differ from their message because a user edited one of them. It also
// reports messages without a canonical file. It does not change any files.
func (d *doctor) copies(ctx context.Context, slug string, t *tree.Tree) {
	found, err := maildir.CheckCopies(ctx, t)
	if err != nil {
		d.say("cannot compare the copies of %s: %v", slug, err)
		return
	}
	listed := d.listed(len(found.Differing))
	for _, path := range found.Differing[:listed] {
		d.note("copy %s in %s differs from the original: one of them was edited. No action needed: the server shows the original in messages/",
			path, slug)
	}
	d.noteMore(len(found.Differing) - listed)
	listed = d.listed(len(found.Orphaned))
	for _, path := range found.Orphaned[:listed] {
		d.note("copy %s in %s has no original in messages/: the original was removed or never written. The server shows this copy. "+
			"To list removed messages: `git log --diff-filter=D -- messages` in %s", path, slug, t.Dir())
	}
	d.noteMore(len(found.Orphaned) - listed)
	if len(found.Differing)+len(found.Orphaned) == 0 {
		d.ok("copies of %s: all unchanged since delivery", slug)
	}
}

func (d *doctor) index(ctx context.Context, v *view) {
	r, err := v.verify(ctx)
	switch {
	case err != nil:
		d.say("index: %v", err)
	case len(r.Differences) > 0 && !v.running:
		d.say("index: differs from the files. This is normal if the files were edited after the server stopped: the next "+
			"`mailtree serve` updates the index. First difference: %s", r.Differences[0])
	case len(r.Differences) > 0:
		d.say("index: differs from the files: stop the server and run `mailtree index rebuild`. First difference: %s", r.Differences[0])
	default:
		d.ok("index: matches the files (%s)", count(r.Rows, "row"))
	}
}
