package folders

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/maildir/refusal"
)

// TestFile checks that rewriting the file preserves a user's comments and unreadable lines, and that unreadable lines
// have no effect.
func TestFile(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	text := "# mine\nlink shop 2026-02-03 /home/me/shop 2\nlnik shop 2026-02-03 /home/me/shop 3\nclone shop 2026-02-03 relative\n" +
		"link shop 03.02.2026 /home/me/shop 4\nworktree shop 2026-02-03 /home/me/wt\n" +
		"repository 0123456789012345678901234567890123456789 example.org%2Fme%2Fshop /home/me/shop\n"
	if err := os.WriteFile(filepath.Join(root, FileName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f := Open(root)
	m, err := f.Load()
	if err != nil {
		t.Fatal(err)
	}
	if l, ok := m.Linked("/home/me/shop 2/app"); !ok || l.Project != "shop" {
		t.Errorf("%v %v", l, ok)
	}
	if l, ok := m.Linked("/home/me/shop 22"); ok {
		t.Errorf("%v", l)
	}
	for _, gone := range []bool{true, false} {
		if _, ok := m.Noted("/home/me/wt/x", func(l Line) bool { return gone && l.Kind == Worktree }); ok != gone {
			t.Errorf("a worktree that is gone: %v: %v", gone, ok)
		}
	}
	if d := cmp.Diff([]string{"lnik shop 2026-02-03 /home/me/shop 3", "clone shop 2026-02-03 relative", "link shop 03.02.2026 /home/me/shop 4"}, m.Wrong()); d != "" {
		t.Error(d)
	}
	if r, ok := m.Repository("/home/me/shop"); !ok || r.Remote != "example.org/me/shop" {
		t.Errorf("%v %v", r, ok)
	}
	err = f.Change(func(m *Map) (*Map, error) {
		return m.With(Line{Link, "other", time.Date(2026, 2, 4, 9, 0, 0, 0, time.UTC), "/home/me/wt"}), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(root, FileName))
	if err != nil {
		t.Fatal(err)
	}
	want := header + "# mine\nlnik shop 2026-02-03 /home/me/shop 3\nclone shop 2026-02-03 relative\nlink shop 03.02.2026 /home/me/shop 4\n" +
		"link shop 2026-02-03 /home/me/shop 2\nlink other 2026-02-04 /home/me/wt\n" +
		"repository 0123456789012345678901234567890123456789 example.org%2Fme%2Fshop /home/me/shop\n"
	if d := cmp.Diff(want, string(data)); d != "" {
		t.Error(d)
	}
}

// TestBounds checks that With drops the oldest line of a kind that the program writes, and no other line.
func TestBounds(t *testing.T) {
	t.Parallel()
	m := &Map{}
	m = m.With(Line{Kind: Link, Project: "shop", Folder: "/linked"})
	m = m.With(Line{Kind: Clone, Project: "shop", Folder: "/clone"})
	for range maxNoted {
		m = m.With(Line{Kind: Worktree, Project: "shop", Folder: "/first" + strings.Repeat("x", len(m.Lines))})
	}
	first := m.Lines[2].Folder
	m = m.With(Line{Kind: Worktree, Project: "shop", Folder: "/last"})
	if len(m.Lines) != maxNoted+2 || m.Lines[0].Kind != Link || m.Lines[1].Kind != Clone || m.Lines[2].Folder == first {
		t.Errorf("%d lines, the first worktree is %s", len(m.Lines), m.Lines[2].Folder)
	}
}

// TestRemote checks how Remote normalizes addresses.
func TestRemote(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://Example.org/me/shop.git":       "example.org/me/shop",
		"https://me:secret@example.org/me/shop": "example.org/me/shop",
		"ssh://git@example.org:22/me/shop.git/": "example.org/me/shop",
		"ssh://git@example.org:2222/me/shop":    "example.org:2222/me/shop",
		"git@example.org:me/shop.git":           "example.org/me/shop",
		"example.org:/me/shop":                  "example.org/me/shop",
		"https://example.org/me/Shop":           "example.org/me/Shop",
		"https://example.org/git?repo=shop":     "example.org/git?repo=shop",
		"/srv/git/shop.git":                     "/srv/git/shop.git",
		"../shop":                               "/home/me/shop",
		"file:///srv/git/shop.git":              "/srv/git/shop.git",
		"./a:b":                                 "/home/me/x/a:b",
	} {
		if got, local := Remote(address, "/home/me/x"); got != want || local != (want[0] == '/') {
			t.Errorf("%s: %s %v, want %s", address, got, local, want)
		}
	}
}

// TestFind checks what Find returns for clones, forks, copies and repositories without an identity.
func TestFind(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	run := func(line string) {
		t.Helper()
		c := exec.Command("git", append([]string{"-c", "user.name=p", "-c", "user.email=p@x"}, strings.Fields(line)...)...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", line, err, out)
		}
	}
	for _, line := range []string{
		"init -q --bare hub.git", "clone -q hub.git shop", "-C shop commit -q --allow-empty -m first", "-C shop push -q origin HEAD:main",
		"clone -q -b main hub.git clone", "clone -q shop ofclone", "clone -q -b main hub.git fork",
		"-C fork remote set-url origin https://example.org/other/shop", "clone -q -b main hub.git none", "-C none remote remove origin",
		"clone -q none ofnone", "clone -q -b main hub.git renamed", "-C renamed remote rename origin upstream",
		"clone -q --depth 1 -b main file://" + dir + "/hub.git shallow", "init -q empty", "init -q other",
		"-C other commit -q --allow-empty -m unrelated",
	} {
		run(line)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	projects := []Project{{"shop", at("shop")}, {"none", at("none")}, {"app", at("shop/app")}}
	for folder, want := range map[string]Found{
		"clone":     {Clone: Line{Kind: Clone, Project: "shop", Folder: at("clone")}, Forks: projects[1:2]},
		"clone/app": {Clone: Line{Kind: Clone, Project: "app", Folder: at("clone/app")}, Forks: projects[1:2]},
		"ofclone":   {Clone: Line{Kind: Clone, Project: "shop", Folder: at("ofclone")}, Forks: projects[1:2]},
		"renamed":   {Clone: Line{Kind: Clone, Project: "shop", Folder: at("renamed")}, Forks: projects[1:2]},
		"fork":      {Forks: projects},
		"ofnone":    {Clone: Line{Kind: Clone, Project: "none", Folder: at("ofnone")}, Forks: []Project{projects[0], projects[2]}},
		"shallow":   {},
		"empty":     {},
		"other":     {},
	} {
		top, _, _ := strings.Cut(folder, "/")
		f := Finder{File: Open(t.TempDir()), Now: time.Now, Patience: time.Hour}
		if err := os.MkdirAll(at("shop/app"), 0o700); err != nil {
			t.Fatal(err)
		}
		found, err := f.Find(t.Context(), at(folder), at(top), projects)
		if err != nil {
			t.Error(err)
		}
		found.Clone.Day = time.Time{}
		if d := cmp.Diff(want, found); d != "" {
			t.Errorf("%s: %s", folder, d)
		}
	}
}

// TestUnread checks that Find decides nothing if Git fails for a repository that matters, or takes too long. It records
// the repositories that Git did read.
func TestUnread(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, args := range [][]string{
		{"init", "-q", "shop"}, {"-C", "shop", "-c", "user.name=p", "-c", "user.email=p@x", "commit", "-q", "--allow-empty", "-m", "x"},
		{"clone", "-q", "shop", "clone"}, {"clone", "-q", "shop", "damaged"}, {"clone", "-q", "shop", "fork"},
		{"-C", "fork", "remote", "set-url", "origin", "https://example.org/other/shop"},
	} {
		c := exec.Command("git", args...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	for _, name := range []string{"damaged", "fork"} {
		if err := os.RemoveAll(at(name + "/.git/objects")); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(at(name+"/.git/objects"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	shop, damaged, fork := Project{"shop", at("shop")}, Project{"damaged", at("damaged")}, Project{"fork", at("fork")}
	for _, tt := range []struct {
		name, folder string
		projects     []Project
		patience     time.Duration
		why          string // part of the error; if empty, there is no error
		clone        string // slug of the project that the folder is a clone of
		read         int    // repositories that are recorded
	}{
		{"too slow", "clone", []Project{shop}, time.Nanosecond, "did not finish within 1ns", "", 0},
		{"in time", "clone", []Project{shop}, time.Hour, "", "shop", 2},
		{"damaged", "damaged", []Project{shop}, time.Hour, "fatal: ", "", 0},
		{"damaged, without other projects", "damaged", nil, time.Hour, "", "", 0},
		{"a damaged clone", "clone", []Project{shop, damaged}, time.Hour, "fatal: ", "", 2},
		{"a damaged fork", "clone", []Project{shop, fork}, time.Hour, "", "shop", 2},
	} {
		f := Finder{File: Open(t.TempDir()), Now: time.Now, Patience: tt.patience}
		found, err := f.Find(t.Context(), at(tt.folder), at(tt.folder), tt.projects)
		if (err != nil) != (tt.why != "") || err != nil && !strings.Contains(err.Error(), tt.why) || found.Clone.Project != tt.clone {
			t.Errorf("%s: %+v, %v", tt.name, found, err)
		}
		if err != nil && (!errors.Is(err, refusal.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)) {
			t.Errorf("%s: the wrong kind of error: %v", tt.name, err)
		}
		m, err := f.File.Load()
		if err != nil || len(m.Repositories) != tt.read {
			t.Errorf("%s: recorded %v, %v", tt.name, m.Repositories, err)
		}
		if unread := slices.Contains(tt.projects, fork); (found.Unread != nil) != unread {
			t.Errorf("%s: unread: %v", tt.name, found.Unread)
		}
	}
}

// TestMoved checks that Find recognizes a moved code base by its entry in the map.
func TestMoved(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	old, moved := filepath.Join(dir, "old"), filepath.Join(dir, "new")
	for _, args := range [][]string{{"init", "-q", old}, {"-C", old, "-c", "user.name=p", "-c", "user.email=p@x", "commit", "-q", "--allow-empty", "-m", "x"}} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	f := Finder{File: Open(t.TempDir()), Now: time.Now, Patience: time.Hour}
	if _, err := f.Find(t.Context(), old, old, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(old, moved); err != nil {
		t.Fatal(err)
	}
	want := Found{Moved: []Project{{"shop", old}}}
	found, err := f.Find(t.Context(), moved, moved, want.Moved)
	if d := cmp.Diff(want, found); err != nil || d != "" {
		t.Error(err, d)
	}
}
