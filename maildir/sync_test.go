package maildir_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/fixtures/waits"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/index"
)

// gitIn runs git in a folder and returns git's output.
func gitIn(t testing.TB, dir string, args ...string) string {
	t.Helper()
	c := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=Ada", "-c", "user.email=ada@example.org"}, args...)...)
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, &said)
	}
	return strings.TrimSpace(string(out))
}

// sharer is a store that shares a project with other stores.
type sharer struct {
	*storetest.Store
	p *maildir.Project
}

// onlyAsked is the interval for machines that fetch and push only when a test calls Sync.Now.
const onlyAsked = time.Duration(-1)

// shared opens n machines that share a project through a new bare repository.
func shared(t *testing.T, n int, interval time.Duration) (bare string, all []sharer) {
	t.Helper()
	bare = filepath.Join(t.TempDir(), "mail.git")
	gitIn(t, t.TempDir(), "init", "-q", "--bare", "-b", "main", bare)
	for i := range n {
		m := sharer{Store: storetest.Open(t, storetest.Config{Sync: interval})}
		var err error
		if i == 0 {
			if m.p, err = m.EnsureProject(t.Context(), shop); err != nil {
				t.Fatal(err)
			}
			if err := m.p.Sync.Set(true); !errors.Is(err, history.ErrNoRemote) {
				t.Fatalf("sync without a remote: %v", err)
			}
			gitIn(t, m.p.Dir(), "remote", "add", "origin", bare)
			err = m.p.Sync.Set(true)
			m.now(t)
		} else {
			m.p, err = m.Join(t.Context(), bare, fmt.Sprintf("/abs/path/%d/shop", i))
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return bare, all
}

// now runs a sync round.
func (m sharer) now(t testing.TB) {
	t.Helper()
	if _, err := m.p.Sync.Now(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// level runs sync rounds until all machines are at the same commit.
func level(t testing.TB, all ...sharer) {
	t.Helper()
	for range 2 {
		for _, m := range all {
			m.now(t)
		}
	}
	first := files(t, all[0])
	for _, m := range all[1:] {
		if now := files(t, m); now != first {
			t.Fatalf("one machine has\n%s\nanother\n%s", first, now)
		}
	}
}

// files lists a machine's shared files, with the hashes of their contents.
func files(t testing.TB, m sharer) string {
	t.Helper()
	var lines []string
	for line := range strings.Lines(gitIn(t, m.p.Dir(), "ls-tree", "-r", "HEAD")) {
		if path := line[strings.Index(line, "\t")+1:]; !strings.HasPrefix(path, "claims/") && !strings.Contains(path, "/drafts/") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

func (m sharer) register(t testing.TB, name string) {
	t.Helper()
	if _, err := m.p.Agents.Register(t.Context(), maildir.Registration{NameHint: name}); err != nil {
		t.Fatal(err)
	}
}

func (m sharer) send(t testing.TB, from, to, subject string) *maildir.Sent {
	t.Helper()
	return sendFrom(t, m.p.Box(from, format.Origin{}), maildir.Draft{To: []string{to}, Subject: subject, Body: "text"})
}

// subjects returns the subjects in an agent's inbox, oldest first.
func (m sharer) subjects(t testing.TB, agent string) (all []string) {
	t.Helper()
	page, err := m.p.Box(agent, format.Origin{}).Inbox(t.Context(), index.InboxQuery{Limit: maildir.MaxPage, Peek: true}, false, maildir.Waiting{})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range page.Messages {
		all = append([]string{row.Subject}, all...)
	}
	return all
}

// sharedWith is like sharedByTwo, but with a configuration for the second machine. It also returns the shared
// repository.
func sharedWith(t *testing.T, config storetest.Config) (a, b sharer, bare string) {
	t.Helper()
	config.Sync = onlyAsked
	bare, all := shared(t, 1, onlyAsked)
	a, b = all[0], sharer{Store: storetest.Open(t, config)}
	var err error
	if b.p, err = b.Join(t.Context(), bare, "/abs/path/b"); err != nil {
		t.Fatal(err)
	}
	a.register(t, "Ann")
	b.register(t, "Bob")
	level(t, a, b)
	return a, b, bare
}

// sharedByTwo returns two machines that share a project's mail, with the agents Ann and Bob. Both machines are in
// sync.
func sharedByTwo(t *testing.T) (a, b sharer) {
	t.Helper()
	_, all := shared(t, 2, onlyAsked)
	a, b = all[0], all[1]
	a.register(t, "Ann")
	b.register(t, "Bob")
	level(t, a, b)
	return a, b
}

func TestSync(t *testing.T) {
	t.Parallel()
	a, b := sharedByTwo(t)
	if heads := gitIn(t, a.p.Dir(), "rev-parse", "HEAD"); heads != gitIn(t, b.p.Dir(), "rev-parse", "HEAD") {
		t.Error("two machines with nothing new have different commits")
	}
	if key := b.p.HumanKey(); key != "/abs/path/1/shop" {
		t.Errorf("the joined project belongs to %s", key)
	}
	one := a.send(t, "Ann", "Bob", "one")
	b.send(t, "Bob", "Ann", "two")
	level(t, a, b)
	if got := b.subjects(t, "Bob"); fmt.Sprint(got) != "[one]" {
		t.Errorf("Bob has %v", got)
	}
	if got := a.subjects(t, "Ann"); fmt.Sprint(got) != "[two]" {
		t.Errorf("Ann has %v", got)
	}
	row, err := b.p.Message(t.Context(), one.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := maildir.StoreOf(b.p).Verified(&row.Message); ok {
		t.Error("another machine's seal is trusted")
	}

	// The operation can be undone on the machine that performed it, even though the branch has moved to the other
	// machine's merge commit.
	if undone, err := a.p.Box("Ann", format.Origin{}).Undo(t.Context(), maildir.Undoing{}); err != nil || undone.ID != one.ID {
		t.Errorf("undone %+v, %v", undone, err)
	}
	level(t, a, b)
	if got := b.subjects(t, "Bob"); len(got) != 0 {
		t.Errorf("Bob has %v", got)
	}
}

// TestSyncWakes checks that a message from another machine wakes callers that wait for mail, but runs no hook.
func TestSyncWakes(t *testing.T) {
	t.Parallel()
	a, b := sharedByTwo(t)
	hooks := `[{"project": "` + b.p.Slug + `", "mailbox": "Bob", "name": "x", "event": "on_receive", "cmd": ["/bin/true"], ` +
		`"fire_on_untrusted": true, "created": "2026-01-01T00:00:00Z"}]`
	if err := os.WriteFile(filepath.Join(b.Root(), "hooks.json"), []byte(hooks), 0o600); err != nil {
		t.Fatal(err)
	}
	woken := make(chan *maildir.InboxPage, 1)
	go func() {
		page, err := b.p.Box("Bob", format.Origin{}).Inbox(t.Context(), index.InboxQuery{UnreadOnly: true}, false, maildir.Waiting{For: maildir.MaxWait})
		if err != nil {
			t.Error(err)
		}
		woken <- page
	}()
	a.send(t, "Ann", "Bob", "one")
	a.now(t)
	b.now(t)
	if page := <-woken; page == nil || len(page.Messages) != 1 {
		t.Errorf("woken with %+v", page)
	}
	log, err := b.OpenHookLog()
	if err != nil {
		t.Fatal(err)
	}
	missed, err := b.MissedFirings(t.Context(), log)
	if err != nil || len(missed) != 1 {
		t.Fatalf("%+v %v", missed, err)
	}
	if run, why, err := b.Fire(t.Context(), missed[0], log); run != nil || err != nil || !strings.Contains(why, "another machine") {
		t.Errorf("run %+v, %q, %v", run, why, err)
	}
}

// TestSyncKinds checks, for each kind of file, the result of a merge if both machines have changed the file.
func TestSyncKinds(t *testing.T) {
	t.Parallel()
	a, b := sharedByTwo(t)
	one := a.send(t, "Ann", "Bob", "one")
	gone := a.send(t, "Ann", "Bob", "two")
	level(t, a, b)

	at := func(m sharer, path string) string { return filepath.Join(m.p.Dir(), path) }
	write := func(m sharer, path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(at(m, path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at(m, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	edit := func(m sharer, path, old, now string) {
		t.Helper()
		data, err := os.ReadFile(at(m, path))
		if err != nil || !strings.Contains(string(data), old) {
			t.Fatalf("%s: %v", data, err)
		}
		write(m, path, strings.Replace(string(data), old, now, 1))
	}
	row, err := a.p.Message(t.Context(), one.ID)
	if err != nil {
		t.Fatal(err)
	}
	inboxCopy := format.InboxPath("Bob", one.ID, row.Created)
	edit(a, row.Path, "text", "text of a")
	edit(b, row.Path, "text", "text of b")
	write(a, "README.md", "a\n")
	write(b, "notes/deep.txt", "b\n")
	write(a, "agents/Ann/drafts/d.md", "draft\n")
	write(a, "run.sh", "#!/bin/sh\n")
	if err := errors.Join(os.Chmod(at(a, "run.sh"), 0o700), os.Symlink("/etc/passwd", at(a, "link"))); err != nil {
		t.Fatal(err)
	}
	if _, err := b.p.Box("Bob", format.Origin{}).Acknowledge(t.Context(), one.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := a.p.Box("Ann", format.Origin{}).Delete(t.Context(), gone.ID); err != nil {
		t.Fatal(err)
	}
	for _, m := range []sharer{a, b} {
		if err := m.p.Rescan(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	level2 := func() {
		for range 3 {
			a.now(t)
			b.now(t)
		}
	}
	level2()
	for _, m := range []sharer{a, b} {
		if got := m.subjects(t, "Bob"); fmt.Sprint(got) != "[one]" {
			t.Errorf("Bob has %v", got)
		}
		if _, err := os.Stat(at(m, format.AckMark(inboxCopy))); err != nil {
			t.Error(err)
		}
		both, _ := filepath.Glob(at(m, filepath.Dir(row.Path)+"/*.md"))
		text := ""
		for _, f := range both {
			data, _ := os.ReadFile(f)
			text += string(data)
		}
		if len(both) != 2 || !strings.Contains(text, "text of a") || !strings.Contains(text, "text of b") {
			t.Errorf("the message edited on both sides has the files %v: %s", both, text)
		}
		bad, err := m.Problems(t.Context(), m.p.Slug, 10)
		beside := slices.ContainsFunc(bad, func(p format.Problem) bool { return strings.Contains(p.Path, one.ID+".edit-") })
		if err != nil || !beside {
			t.Errorf("problems %v, %v", bad, err)
		}
		for _, path := range []string{"README.md", "notes/deep.txt"} {
			if _, err := os.Stat(at(m, path)); err != nil {
				t.Error(err)
			}
		}
	}
	for _, path := range []string{"agents/Ann/drafts/d.md", "run.sh", "link"} {
		if _, err := os.Lstat(at(a, path)); err != nil {
			t.Errorf("the file is gone from its own machine: %v", err)
		}
		if _, err := os.Lstat(at(b, path)); err == nil {
			t.Errorf("%s reached another machine", path)
		}
	}
	head := gitIn(t, b.p.Dir(), "rev-parse", "HEAD") + gitIn(t, a.p.Dir(), "rev-parse", "HEAD")
	level2()
	if now := gitIn(t, b.p.Dir(), "rev-parse", "HEAD") + gitIn(t, a.p.Dir(), "rev-parse", "HEAD"); now != head {
		t.Error("machines with different drafts merge each other's commits endlessly")
	}
}

// TestSyncMany checks that a merge creates only one merge commit, even if it changes more files than fit into one
// operation.
func TestSyncMany(t *testing.T) {
	t.Parallel()
	a, b := sharedByTwo(t)
	before := gitIn(t, b.p.Dir(), "rev-parse", "HEAD")
	const many = 180 // number of messages; each message has three files
	for range many {
		a.send(t, "Ann", "Bob", "many")
	}
	a.now(t)
	b.send(t, "Bob", "Ann", "back")
	b.now(t)
	if n := len(b.subjects(t, "Bob")); n != many {
		t.Errorf("%d messages arrived", n)
	}
	if merges := gitIn(t, b.p.Dir(), "log", "--merges", "--format=%s", before+".."); merges != "sync: 27 files from other machines" {
		t.Errorf("merges: %s", merges)
	}
	level(t, a, b)
}

// TestSyncAsideThere checks that an interrupted merge can be repeated. Two machines have edited a message. The server
// is killed after the merge has written its files, and the merge is repeated after these files were committed. By
// then, the other version already exists next to the message.
func TestSyncAsideThere(t *testing.T) {
	t.Parallel()
	a, b := sharedByTwo(t)
	one := a.send(t, "Ann", "Bob", "one")
	level(t, a, b)
	row, err := a.p.Message(t.Context(), one.ID)
	if err != nil {
		t.Fatal(err)
	}
	aside := func(m sharer, text string) string { // edits the message on m, and saves the result next to it on b
		file := filepath.Join(m.p.Dir(), row.Path)
		data, err := os.ReadFile(file)
		if err == nil {
			data = bytes.Replace(data, []byte("text"), []byte(text), 1)
			err = os.WriteFile(file, data, 0o600)
		}
		path := filepath.Join(b.p.Dir(), format.EditBeside(row.Path, gitIn(t, m.p.Dir(), "hash-object", row.Path)))
		if err = errors.Join(err, os.WriteFile(path, data, 0o600)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	beside := []string{aside(a, "text of a"), aside(b, "text of b")}
	for _, m := range []sharer{a, b} {
		if err := m.p.Rescan(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	level(t, a, b)
	for _, path := range beside {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

// TestSyncLeavesEdits checks that a merge does not overwrite a file that has a user's uncommitted changes. The merge
// must treat the file as an edit.
func TestSyncLeavesEdits(t *testing.T) {
	t.Parallel()
	_, all := shared(t, 2, onlyAsked)
	a, b := all[0], all[1]
	for _, m := range all {
		m.register(t, "Ann")
		level(t, a, b)
	}
	readme := func(m sharer, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(m.p.Dir(), "README.md"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	readme(a, "first\n")
	if err := a.p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	level(t, a, b)
	readme(b, "of b\n")
	readme(a, "of a\n")
	if err := a.p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.now(t)
	b.now(t) // the newer text from a arrives before the file has been committed here
	if log := gitIn(t, b.p.Dir(), "log", "--format=%H", "--", "README.md"); len(strings.Fields(log)) < 2 {
		t.Errorf("b's edit is in no commit: %s", log)
	}
	versions := ""
	for _, c := range strings.Fields(gitIn(t, b.p.Dir(), "rev-list", "--all")) {
		if out, err := exec.Command("git", "-C", b.p.Dir(), "show", c+":README.md").Output(); err == nil {
			versions += string(out)
		}
	}
	if !strings.Contains(versions, "of b") {
		t.Error("what the user wrote is in no commit")
	}
	level(t, a, b)
}

// TestSyncStorm checks that three machines can send mail to each other while the shared repository is repeatedly
// unavailable and a user commits by hand. In the end, each message must have been delivered once, and all machines
// must have the same files.
func TestSyncStorm(t *testing.T) {
	t.Parallel()
	const messages = 40
	bare, all := shared(t, 3, 200*time.Millisecond)
	for i, m := range all {
		m.register(t, fmt.Sprintf("Agent%c", 'A'+i))
		m.now(t)
	}
	for _, m := range all {
		m.now(t)
	}
	done, stop := context.WithCancel(t.Context())
	var writing, beside sync.WaitGroup
	for i, m := range all {
		writing.Go(func() {
			for n := range messages {
				to := fmt.Sprintf("Agent%c", 'A'+(i+1+n%2)%3)
				m.send(t, fmt.Sprintf("Agent%c", 'A'+i), to, fmt.Sprintf("%d of %d", n, i))
				if n%8 == 0 {
					_, _ = m.p.Sync.Now(t.Context())
				}
			}
		})
	}
	beside.Go(func() { // network failures: without HEAD, Git does not accept the folder as a repository
		for done.Err() == nil {
			waits.Pace(rand.N(80 * time.Millisecond))
			if err := os.Rename(bare+"/HEAD", bare+"/away"); err != nil {
				t.Error(err)
			}
			waits.Pace(rand.N(80 * time.Millisecond))
			if err := os.Rename(bare+"/away", bare+"/HEAD"); err != nil {
				t.Error(err)
			}
		}
	})
	beside.Go(func() { // a user who commits by hand
		dir := all[0].p.Dir()
		for n := 0; done.Err() == nil; n++ {
			file := filepath.Join(dir, fmt.Sprintf("note%d.txt", n%5))
			if err := os.WriteFile(file, []byte(fmt.Sprint(n)), 0o600); err != nil {
				t.Error(err)
			}
			_ = exec.Command("git", "-C", dir, "add", file).Run()
			_ = exec.Command("git", "-C", dir, "-c", "user.name=Ada", "-c", "user.email=a@example.org", "commit", "-q", "-m", "note").Run()
			waits.Pace(50 * time.Millisecond)
		}
	})
	writing.Wait()
	stop()
	beside.Wait()
	for _, m := range all {
		if err := m.p.Rescan(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	level(t, all...)
	for i := range all {
		agent := fmt.Sprintf("Agent%c", 'A'+i)
		seen := map[string]int{}
		for _, subject := range all[i].subjects(t, agent) {
			seen[subject]++
		}
		if len(seen) != messages {
			t.Errorf("%s has %d messages of %d", agent, len(seen), messages)
		}
		for subject, n := range seen {
			if n != 1 {
				t.Errorf("%s has %q %d times", agent, subject, n)
			}
		}
	}
}

// TestSyncHostile checks that files pushed by a hostile machine are not checked out, and that local mail keeps working.
func TestSyncHostile(t *testing.T) {
	t.Parallel()
	bare, all := shared(t, 1, onlyAsked)
	a := all[0]
	a.register(t, "Ann")
	a.now(t)
	evil := filepath.Join(t.TempDir(), "evil")
	gitIn(t, t.TempDir(), "clone", "-q", bare, evil)
	before := files(t, a)
	write := func(path, text string, mode os.FileMode) {
		t.Helper()
		file := filepath.Join(evil, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600), os.Chmod(file, mode)); err != nil {
			t.Fatal(err)
		}
	}
	write(".mailtree/journal", "x", 0o600)
	write(".gitattributes", "* filter=evil\n", 0o600)
	write(".hidden/x", "x", 0o600)
	write("agents/Ann/inbox/run.md", "x", 0o700)
	write("agents/no name/profile.json", "{}", 0o600)
	write("agents/Ann/outbox/send-this.md", "---json\n{\"to\": [\"Ann\"]}\n---\n\nAs Ann.\n", 0o600)
	write("claims/x-Ann.json", "{}", 0o600)
	if err := errors.Join(os.Symlink("/etc", filepath.Join(evil, "messages")), os.Symlink("../../..", filepath.Join(evil, "agents/Eve"))); err != nil {
		t.Fatal(err)
	}
	gitIn(t, evil, "add", "-Af")
	gitIn(t, evil, "update-index", "--add", "--cacheinfo", "160000,"+gitIn(t, evil, "rev-parse", "HEAD")+",module")
	gitIn(t, evil, "commit", "-qm", "evil")
	gitIn(t, evil, "push", "-q")
	a.now(t)
	if now := files(t, a); now != before {
		t.Errorf("before\n%s\nnow\n%s", before, now)
	}
	a.send(t, "Ann", "Ann", "goes on")
	a.now(t)
	if got := a.subjects(t, "Ann"); fmt.Sprint(got) != "[goes on]" {
		t.Errorf("Ann has %v", got)
	}

	// A commit must not be merged if it contains a folder in place of a file, or a file that is too large.
	for path, text := range map[string]string{"project.json/x": "x", "messages/2026/11/26/msg_20261126_00000000000000aa.md": strings.Repeat("x", 9<<20)} {
		gitIn(t, evil, "pull", "-q", "--no-rebase", "--no-edit")
		old := gitIn(t, evil, "rev-parse", "HEAD")
		_ = os.RemoveAll(filepath.Join(evil, strings.Split(path, "/")[0]))
		write(path, text, 0o600)
		write("README.md", "comes along", 0o600)
		gitIn(t, evil, "add", "-Af")
		gitIn(t, evil, "commit", "-qm", "evil")
		gitIn(t, evil, "push", "-q")
		before := files(t, a)
		if _, err := a.p.Sync.Now(t.Context()); err == nil || !strings.Contains(a.p.Sync.State().String(), strings.Split(path, "/")[0]) {
			t.Errorf("%s: %v, state %q", path, err, a.p.Sync.State())
		}
		if now := files(t, a); now != before {
			t.Errorf("%s: before\n%s\nnow\n%s", path, before, now)
		}
		gitIn(t, evil, "reset", "-q", "--hard", old)
		gitIn(t, evil, "push", "-qf")
	}
	a.now(t) // a forced push has removed the commit

	// A commit with a million files needs only three objects, but must be refused.
	mktree := func(n int, entry string) string {
		t.Helper()
		var in strings.Builder
		for i := range n {
			fmt.Fprintf(&in, entry+"\tf%05d\n", i)
		}
		c := exec.Command("git", "-C", evil, "mktree")
		c.Stdin = strings.NewReader(in.String())
		out, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	tree := mktree(1000, "100644 blob "+gitIn(t, evil, "rev-parse", "HEAD:project.json"))
	bomb := gitIn(t, evil, "commit-tree", "-p", gitIn(t, bare, "rev-parse", "main"), "-m", "bomb", mktree(1000, "040000 tree "+tree))
	gitIn(t, evil, "push", "-q", "origin", bomb+":main")
	before = files(t, a)
	if _, err := a.p.Sync.Now(t.Context()); !errors.Is(err, history.ErrTooMany) {
		t.Errorf("a million files: %v", err)
	}
	if now := files(t, a); now != before {
		t.Errorf("before\n%s\nnow\n%s", before, now)
	}
	if _, err := a.Join(t.Context(), bare, "/abs/path/bomb"); !errors.Is(err, history.ErrTooMany) {
		t.Errorf("joined a million files: %v", err)
	}
	// A thousand files with the same large content take up little space in Git, but would fill the disk.
	zeros := filepath.Join(t.TempDir(), "zeros")
	if err := errors.Join(os.WriteFile(zeros, nil, 0o600), os.Truncate(zeros, 9<<20)); err != nil {
		t.Fatal(err)
	}
	old := gitIn(t, bare, "rev-parse", bomb+"~")
	entries := gitIn(t, evil, "ls-tree", old) + "\n040000 tree " + mktree(1000, "100644 blob "+gitIn(t, evil, "hash-object", "-w", zeros)) + "\tzeros\n"
	c := exec.Command("git", "-C", evil, "mktree")
	c.Stdin = strings.NewReader(entries)
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	gitIn(t, evil, "push", "-qf", "origin", gitIn(t, evil, "commit-tree", "-p", old, "-m", "zeros", strings.TrimSpace(string(out)))+":main")
	if _, err := a.p.Sync.Now(t.Context()); !errors.Is(err, history.ErrTooMany) {
		t.Errorf("a thousand large files: %v", err)
	}
	if _, err := a.Join(t.Context(), bare, "/abs/path/zeros"); !errors.Is(err, history.ErrTooMany) {
		t.Errorf("joined a thousand large files: %v", err)
	}
	a.send(t, "Ann", "Ann", "still goes on")
}

// TestSyncRewritten checks that a forced push does not remove anything on other machines, and that the mail of another
// project is not merged.
func TestSyncRewritten(t *testing.T) {
	t.Parallel()
	bare, all := shared(t, 2, onlyAsked)
	a, b := all[0], all[1]
	a.register(t, "Ann")
	level(t, a, b)
	old := gitIn(t, bare, "rev-parse", "main")
	a.send(t, "Ann", "Ann", "one")
	level(t, a, b)
	gitIn(t, bare, "update-ref", "refs/heads/main", old)
	b.register(t, "Bob")
	b.now(t)
	level(t, a, b)
	if !a.p.Sync.State().Rewritten.IsZero() || b.p.Sync.State().Rewritten.IsZero() {
		t.Errorf("only the second machine should have seen the rewritten branch, not %v and %v", a.p.Sync.State(), b.p.Sync.State())
	}
	if got := a.subjects(t, "Ann"); fmt.Sprint(got) != "[one]" {
		t.Errorf("Ann has %v", got)
	}
	gitIn(t, bare, "update-ref", "-d", "refs/heads/main")
	level(t, a, b)
	if a.p.Sync.State().Rewritten.IsZero() {
		t.Error("a machine did not notice that the branch was gone")
	}

	other := filepath.Join(t.TempDir(), "other")
	gitIn(t, t.TempDir(), "init", "-q", "-b", "main", other)
	gitIn(t, other, "commit", "-q", "--allow-empty", "-m", "other")
	gitIn(t, other, "push", "-qf", bare, "main")
	if _, err := a.p.Sync.Now(t.Context()); !errors.Is(err, history.ErrForeign) {
		t.Errorf("another mail: %v", err)
	}
	if _, err := b.Join(t.Context(), bare, "/abs/path/third"); err == nil || !strings.Contains(err.Error(), "has no mail") {
		t.Errorf("joined a repository without mail: %v", err)
	}
}

// TestSyncStops checks that if mail is sent or claims are released just before a server stops, the changes are pushed.
func TestSyncStops(t *testing.T) {
	t.Parallel()
	a, b := sharedByTwo(t)
	a.claims(t, "Ann", "app")
	level(t, a, b)
	a.release(t, "Ann", "app")
	a.send(t, "Ann", "Bob", "last words")
	a.Stop()
	b.now(t)
	if got := b.held(t); got != "" {
		t.Errorf("held: %s", got)
	}
	if got := b.subjects(t, "Bob"); fmt.Sprint(got) != "[last words]" {
		t.Errorf("Bob has %v", got)
	}
}

// TestSyncKeepsNotices checks that a starting server withdraws its own notices about files that were removed, but not
// another machine's notices about files on that machine.
func TestSyncKeepsNotices(t *testing.T) {
	t.Parallel()
	a, b := sharedByTwo(t)
	save := func(m sharer, agent string) {
		t.Helper()
		file := filepath.Join(m.p.Dir(), "agents", agent, "outbox", "bad.md")
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("---json\n{\"to\": [\"Nobody\"]}\n---\n\ntext\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
		until(t, agent+" gets the notice", func() bool { return len(m.subjects(t, agent)) == 1 })
	}
	save(b, "Bob")
	b.now(t)
	a.now(t)
	a.Stop()
	a.Store = storetest.Open(t, storetest.Config{Root: a.Root(), Sync: onlyAsked})
	var err error
	if a.p, err = a.EnsureProject(t.Context(), shop); err != nil {
		t.Fatal(err)
	}
	save(a, "Ann") // the server handles this file after the files that it finds when it starts
	a.now(t)
	b.now(t)
	page, err := b.p.Box("Bob", format.Origin{}).Inbox(t.Context(), index.InboxQuery{UnreadOnly: true}, false, maildir.Waiting{})
	if err != nil || len(page.Messages) != 1 {
		t.Errorf("Bob has %+v, %v", page, err)
	}
}
