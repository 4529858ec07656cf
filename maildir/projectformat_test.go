package maildir_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
)

// upgradeText is part of every error about a format that is too new.
const upgradeText = "has format 2, and the version of mailtree on this machine supports formats up to 1. " +
	"Upgrade mailtree on this machine."

// isNewer fails the test unless err says that a format is too new.
func isNewer(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, maildir.ErrUnavailable) || !strings.Contains(err.Error(), upgradeText) {
		t.Errorf("%s: %v", what, err)
	}
}

// setFormat writes a project.json with the given format to a folder. If value is "", the file specifies no format.
func setFormat(t *testing.T, dir, value string) {
	t.Helper()
	file := filepath.Join(dir, format.ProjectFile)
	text := fmt.Sprintf("{\"human_key\": %q, \"slug\": \"s\", \"created\": \"2026-01-01T00:00:00Z\"", shop)
	if value != "" {
		text += ", \"format\": " + value
	}
	if err := os.WriteFile(file, []byte(text+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// formatOf returns the format that the project.json in a folder specifies.
func formatOf(t *testing.T, dir string) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, format.ProjectFile))
	if err != nil {
		t.Fatal(err)
	}
	n, err := format.ProjectFormat(data)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// filesBelow returns the paths, modes, times and sizes of all files below a folder.
func filesBelow(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err == nil {
			fmt.Fprintln(&all, path, fi.Mode(), fi.ModTime(), fi.Size())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// TestFormatAtStart checks that a starting server leaves out a project whose format is too new or invalid, changes
// nothing in it, and opens the other projects. A call for the project's path must be refused, and must not create a
// second project.
func TestFormatAtStart(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"2":   upgradeText,
		"0":   "\"format\" must be a positive whole number",
		"1.5": "\"format\" has the wrong type",
		`"2"`: "\"format\" has the wrong type",
		"1":   "",
		"":    "",
	} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			root := filepath.Join(t.TempDir(), "store")
			s := storetest.Open(t, storetest.Config{Root: root})
			p := projectIn(t, s.Store, "Ann")
			if _, err := s.EnsureProject(t.Context(), "/abs/other"); err != nil {
				t.Fatal(err)
			}
			s.Stop()
			dir := filepath.Join(root, "projects", "copied", "repo") // this slug is not derived from the project's path
			if err := errors.Join(os.Mkdir(filepath.Dir(dir), 0o700), os.Rename(p.Dir(), dir)); err != nil {
				t.Fatal(err)
			}
			setFormat(t, dir, value)
			before := filesBelow(t, dir)

			s = storetest.Open(t, storetest.Config{Root: root})
			left := s.LeftOut()
			p, err := s.EnsureProject(t.Context(), shop)
			if want == "" {
				if err != nil || len(left) > 0 || p.Slug != "copied" {
					t.Errorf("left out %v, %v", left, err)
				}
				return
			}
			if len(left) != 1 || left["copied"] == nil || !strings.Contains(left["copied"].Error(), want) {
				t.Errorf("left out: %v", left)
			}
			if !errors.Is(err, maildir.ErrUnavailable) || !strings.Contains(err.Error(), want) {
				t.Errorf("create: %v", err)
			}
			if other := project2(t, s.Store); len(s.Projects()) != 1 || other == nil {
				t.Errorf("%d other projects", len(s.Projects()))
			}
			s.Stop()
			if after := filesBelow(t, dir); after != before {
				t.Errorf("the project was changed:\n%s\n%s", before, after)
			}
		})
	}
}

// project2 returns the project /abs/other after sending a message in it.
func project2(t *testing.T, s *maildir.Store) *maildir.Project {
	t.Helper()
	p, err := s.Project(t.Context(), "/abs/other")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Agents.EnsureAgent(t.Context(), "Ann", maildir.Registration{}); err != nil {
		t.Fatal(err)
	}
	send(t, p, "Ann", maildir.Draft{To: []string{"Ann"}, Subject: "s", Body: "b"})
	return p
}

// TestFormatRaisedByHand checks that a running server closes a project when a user raises the project's format, and
// opens it again when the user restores the format. Callers must get the same refusal as after a restart.
func TestFormatRaisedByHand(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Config{})
	p := projectIn(t, s.Store, "Ann")
	if _, err := s.EnsureProject(t.Context(), "/abs/other"); err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() {
		q := index.InboxQuery{UnreadOnly: true}
		_, err := p.Box("Ann", format.Origin{}).Inbox(t.Context(), q, false, maildir.Waiting{For: maildir.MaxWait})
		waited <- err
	}()
	setFormat(t, p.Dir(), "2")
	until(t, "the project is left out", func() bool { return s.LeftOut()[p.Slug] != nil })
	isNewer(t, "left out", s.LeftOut()[p.Slug])
	isNewer(t, "a waiting call", <-waited)
	_, err := p.Box("Ann", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"Ann"}, Subject: "s", Body: "b"})
	isNewer(t, "a call in progress", err)
	for _, key := range []string{shop, p.Slug} {
		_, err := s.Project(t.Context(), key)
		isNewer(t, key, err)
	}
	project2(t, s.Store)

	setFormat(t, p.Dir(), "")
	until(t, "the project is back", func() bool { return s.LeftOut()[p.Slug] == nil })
	p, err = s.Project(t.Context(), shop)
	if err != nil {
		t.Fatal(err)
	}
	send(t, p, "Ann", maildir.Draft{To: []string{"Ann"}, Subject: "s", Body: "b"})
}

// TestFormatAdopted checks that if a user copies a project with a newer format into the store, a running server
// leaves it out, just as a server does when it starts.
func TestFormatAdopted(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Config{})
	dir := filepath.Join(s.WatchRoot(), "copied", "repo")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	setFormat(t, dir, "2")
	until(t, "the project is left out", func() bool { return s.LeftOut()["copied"] != nil })
	isNewer(t, "left out", s.LeftOut()["copied"])
	if err := os.RemoveAll(filepath.Dir(dir)); err != nil {
		t.Fatal(err)
	}
	until(t, "the project is forgotten", func() bool { return s.LeftOut()["copied"] == nil })
}

// raisable opens two machines that share a project. The first machine supports formats up to 2, and the second machine
// supports formats up to ofSecond.
func raisable(t *testing.T, ofSecond int) (a, b sharer, bare string) {
	t.Helper()
	bare = filepath.Join(t.TempDir(), "mail.git")
	gitIn(t, t.TempDir(), "init", "-q", "--bare", "-b", "main", bare)
	a = sharer{Store: storetest.Open(t, storetest.Config{Sync: onlyAsked, Format: 2})}
	a.p = projectIn(t, a.Store.Store, "Ann")
	gitIn(t, a.p.Dir(), "remote", "add", "origin", bare)
	if err := a.p.Sync.Set(true); err != nil {
		t.Fatal(err)
	}
	a.now(t)
	b = sharer{Store: storetest.Open(t, storetest.Config{Sync: onlyAsked, Format: ofSecond})}
	var err error
	if b.p, err = b.Join(t.Context(), bare, "/abs/path/b"); err != nil {
		t.Fatal(err)
	}
	b.register(t, "Bob")
	level(t, a, b)
	return a, b, bare
}

// published returns the format that one machine (of) publishes, as read from the tree of another machine (at).
func published(t *testing.T, of, at sharer) string {
	t.Helper()
	id := maildir.StoreOf(of.p).Machine()
	data, err := os.ReadFile(filepath.Join(at.p.Dir(), format.MachineFormatPath(id)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestFormatOfMachines checks that each machine publishes the highest format that it supports, and that a project's
// format is not raised while one of its machines does not support the new format.
func TestFormatOfMachines(t *testing.T) {
	t.Parallel()
	a, b, bare := raisable(t, 1)
	if published(t, a, b) != "2\n" || published(t, b, a) != "1\n" {
		t.Errorf("the machines have published %q and %q", published(t, a, b), published(t, b, a))
	}
	idB := maildir.StoreOf(b.p).Machine()
	keyB, formatB := filepath.Join(a.p.Dir(), format.MachinePath(idB)), filepath.Join(a.p.Dir(), format.MachineFormatPath(idB))
	refused := func(what string) {
		t.Helper()
		_, _, err := a.p.Sync.RaiseFormat(t.Context())
		if !errors.Is(err, maildir.ErrConflict) || !strings.Contains(err.Error(), idB+`" (up to format 1)`) ||
			!strings.Contains(err.Error(), "retired, delete its key from the mail folder: machines/"+idB+".key") {
			t.Errorf("%s: %v", what, err)
		}
		if n := formatOf(t, a.p.Dir()); n != 1 {
			t.Errorf("%s: the format is %d", what, n)
		}
	}
	refused("a machine that supports format 1")
	if err := os.Remove(formatB); err != nil {
		t.Fatal(err)
	}
	refused("a machine that has published no format")

	// The second machine is upgraded.
	root := b.Root()
	b.Stop()
	b.Store = storetest.Open(t, storetest.Config{Root: root, Sync: onlyAsked, Format: 2})
	b.p = b.Projects()[0]
	b.now(t)
	if was, now, err := a.p.Sync.RaiseFormat(t.Context()); err != nil || was != 1 || now != 2 {
		t.Fatalf("raised from %d to %d, %v", was, now, err)
	}
	if was, now, err := a.p.Sync.RaiseFormat(t.Context()); err != nil || was != 2 || now != 2 {
		t.Errorf("raised again from %d to %d, %v", was, now, err)
	}
	b.now(t)
	if n := formatOf(t, b.p.Dir()); n != 2 {
		t.Errorf("the second machine has format %d", n)
	}
	if _, err := os.Stat(keyB); err != nil {
		t.Error(err)
	}

	// A third machine with an older version cannot join.
	c := storetest.Open(t, storetest.Config{Sync: onlyAsked})
	_, err := c.Join(t.Context(), bare, "/abs/path/c")
	isNewer(t, "join", err)
	if left, _ := filepath.Glob(filepath.Join(c.Root(), "*project*", "*")); len(left) > 0 {
		t.Errorf("created %v", left)
	}

	// The second machine is downgraded to the older version, which leaves the project out and changes nothing.
	dir := b.p.Dir()
	b.Stop()
	before := filesBelow(t, dir)
	b.Store = storetest.Open(t, storetest.Config{Root: root, Sync: onlyAsked})
	isNewer(t, "an older version", b.LeftOut()[b.p.Slug])
	b.Stop()
	if after := filesBelow(t, dir); after != before {
		t.Errorf("the project was changed:\n%s\n%s", before, after)
	}
}

// TestFormatPublishedAgain checks that a machine publishes its lower format after it has been downgraded.
func TestFormatPublishedAgain(t *testing.T) {
	t.Parallel()
	a, b, _ := raisable(t, 2)
	root := b.Root()
	b.Stop()
	b.Store = storetest.Open(t, storetest.Config{Root: root, Sync: onlyAsked})
	b.p = b.Projects()[0]
	level(t, a, b)
	if got := published(t, b, a); got != "1\n" {
		t.Errorf("the machine has published %q", got)
	}
}

// TestFormatRaisedElsewhere checks that a machine refuses a merge that raises the format beyond what the machine
// supports. The sync must stop and report the reason, while local mail keeps working. Claims must be refused, because
// they need the other machines. After an upgrade of the machine, the sync must continue.
func TestFormatRaisedElsewhere(t *testing.T) {
	t.Parallel()
	a, b, bare := raisable(t, 1)
	idB := maildir.StoreOf(b.p).Machine()
	for _, path := range []string{format.MachinePath(idB), format.MachineFormatPath(idB)} { // as if b had been retired
		if err := os.Remove(filepath.Join(a.p.Dir(), path)); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := a.p.Sync.RaiseFormat(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.send(t, "Ann", "Bob", "from a newer version")
	a.now(t)

	for range 2 {
		state, err := b.p.Sync.Now(t.Context())
		isNewer(t, "a round", err)
		if !strings.Contains(state.String(), "not been synchronized") || !strings.Contains(state.Problem, upgradeText) {
			t.Errorf("the state is %+v", state)
		}
	}
	if n := formatOf(t, b.p.Dir()); n != 1 || len(b.LeftOut()) > 0 {
		t.Errorf("the format is %d, left out %v", n, b.LeftOut())
	}
	b.send(t, "Bob", "Bob", "local")
	if got := b.subjects(t, "Bob"); fmt.Sprint(got) != "[local]" {
		t.Errorf("Bob has %v", got)
	}
	list := gitIn(t, bare, "rev-parse", "refs/mailtree/claims")
	_, err := b.p.Box("Bob", format.Origin{}).Claim(t.Context(), claim.Request{Patterns: []string{"src"}})
	isNewer(t, "a claim", err)
	if now := gitIn(t, bare, "rev-parse", "refs/mailtree/claims"); now != list {
		t.Error("the list of claims was changed")
	}

	root := b.Root()
	b.Stop()
	b.Store = storetest.Open(t, storetest.Config{Root: root, Sync: onlyAsked, Format: 2})
	b.p = b.Projects()[0]
	b.now(t)
	if got := b.subjects(t, "Bob"); fmt.Sprint(got) != "[local from a newer version]" && fmt.Sprint(got) != "[from a newer version local]" {
		t.Errorf("Bob has %v", got)
	}
}

// TestFormatPulledByHand checks that a server closes a project if a user's `git pull` raises its format, and that the
// machine then stops pushing.
func TestFormatPulledByHand(t *testing.T) {
	t.Parallel()
	a, b, bare := raisable(t, 1)
	idB := maildir.StoreOf(b.p).Machine()
	if err := os.Remove(filepath.Join(a.p.Dir(), format.MachinePath(idB))); err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.p.Sync.RaiseFormat(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.send(t, "Bob", "Bob", "not pushed yet")
	if err := b.p.FlushHistory(t.Context()); err != nil {
		t.Fatal(err)
	}
	pushed := gitIn(t, bare, "rev-parse", "main")
	gitIn(t, b.p.Dir(), "pull", "-q", "--no-rebase", "--no-edit", bare, "main")
	until(t, "the project is left out", func() bool { return b.LeftOut()[b.p.Slug] != nil })
	isNewer(t, "left out", b.LeftOut()[b.p.Slug])
	until(t, "the project is no longer in the index", func() bool {
		stats, err := b.Stats(t.Context())
		return err == nil && stats.Projects == 0
	})
	_, err := b.p.Sync.Now(t.Context())
	isNewer(t, "a round", err)
	b.Stop()
	if now := gitIn(t, bare, "rev-parse", "main"); now != pushed {
		t.Errorf("the machine has pushed %s", gitIn(t, bare, "log", "--oneline", pushed+"..main"))
	}
}

// TestFormatMerged checks that a merge never lowers the format, even if the file with the lower format was changed
// last.
func TestFormatMerged(t *testing.T) {
	t.Parallel()
	a, b, _ := raisable(t, 2)
	for _, first := range []struct{ raises, edits *sharer }{{&a, &b}, {&b, &a}} {
		for _, m := range []sharer{a, b} {
			setFormat(t, m.p.Dir(), "1")
			m.rescan(t)
		}
		level(t, a, b)
		setFormat(t, first.raises.p.Dir(), "2")
		first.raises.rescan(t)
		first.edits.editLater(t)
		level(t, a, b)
		for _, m := range []sharer{a, b} {
			if n := formatOf(t, m.p.Dir()); n != 2 {
				t.Errorf("the format is %d", n)
			}
		}
	}
}

// editLater edits project.json while the machine's server is stopped, and commits the edit with a time in the future.
func (m *sharer) editLater(t *testing.T) {
	t.Helper()
	root, dir := m.Root(), m.p.Dir()
	m.Stop()
	setFormat(t, dir, "1")
	data, err := os.ReadFile(filepath.Join(dir, format.ProjectFile))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, format.ProjectFile), append(data, '\n'), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	commit := exec.Command("git", "-C", dir, "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "-qam", "later")
	commit.Env = append(os.Environ(), "GIT_COMMITTER_DATE=2040-01-01T00:00:00Z")
	if out, err := commit.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	m.Store = storetest.Open(t, storetest.Config{Root: root, Sync: onlyAsked, Format: 2})
	m.p = m.Projects()[0]
}

// rescan waits until the server has indexed and committed a user's edits.
func (m sharer) rescan(t *testing.T) {
	t.Helper()
	if err := errors.Join(m.p.Rescan(t.Context()), m.p.FlushHistory(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// TestFormatRaised checks that raising the format of an unshared project keeps the other keys of project.json. If a
// project has no valid project.json, its format must not be raised.
func TestFormatRaised(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{Format: 2}, "Ann")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(p.Dir(), format.ProjectFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := p.Rescan(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	write("{\"human_key\": 1}\n")
	if _, _, err := p.Sync.RaiseFormat(context.Background()); refusal.Code(err) != "conflict" {
		t.Errorf("an invalid project.json: %v", err)
	}
	write(fmt.Sprintf("{\"human_key\": %q, \"unknown\": {\"a\": [1, 2]}, \"created\": \"2026-01-01T00:00:00Z\"}\n", shop))
	if was, now, err := p.Sync.RaiseFormat(t.Context()); err != nil || was != 1 || now != 2 {
		t.Fatalf("raised from %d to %d, %v", was, now, err)
	}
	data, err := os.ReadFile(filepath.Join(p.Dir(), format.ProjectFile))
	if err != nil || !strings.Contains(string(data), `"unknown": {"a": [1, 2]}`) || formatOf(t, p.Dir()) != 2 || p.HumanKey() != shop {
		t.Errorf("%s, %v", data, err)
	}
	send(t, p, "Ann", maildir.Draft{To: []string{"Ann"}, Subject: "s", Body: "b"})
}
