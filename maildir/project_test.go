package maildir_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
)

// TestVerified checks that a message written by the server is verified, and that a message edited by hand is not.
func TestVerified(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Config{})
	p, err := s.EnsureProject(t.Context(), shop)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"Ann", "Bob"} {
		if _, err := p.Agents.Register(t.Context(), maildir.Registration{NameHint: n}); err != nil {
			t.Fatal(err)
		}
	}
	m := sendFrom(t, p.Box("Ann", format.Origin{Auth: "token"}), maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "text"})
	row, err := p.Message(t.Context(), m.ID)
	if err != nil {
		t.Fatal(err)
	}
	if auth, ok := maildir.StoreOf(p).Verified(&row.Message); !ok || auth.String() != "token" {
		t.Errorf("auth %q, verified %v", auth, ok)
	}
	file := filepath.Join(p.Dir(), row.Path)
	data, _ := os.ReadFile(file)
	if err := os.WriteFile(file, []byte(strings.Replace(string(data), "text", "test", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	row, err = p.Message(t.Context(), m.ID)
	if err != nil || row.Body != "test" {
		t.Fatalf("%+v %v", row, err)
	}
	if _, ok := maildir.StoreOf(p).Verified(&row.Message); ok {
		t.Error("an edited message is verified")
	}
}

// TestAttachments checks that a file from the code base can be attached, and that its name in the tree depends on its
// content. Files outside the code base must be refused.
func TestAttachments(t *testing.T) {
	t.Parallel()
	code := t.TempDir()
	for name, text := range map[string]string{"docs/flow.txt": "flow", ".env": "SECRET=1", "sub/.hidden/x": "x"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(code, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(code, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(code, "link")); err != nil {
		t.Fatal(err)
	}
	s := storetest.Open(t, storetest.Config{})
	p, err := s.EnsureProject(t.Context(), code)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Agents.Register(t.Context(), maildir.Registration{NameHint: "Ann"}); err != nil {
		t.Fatal(err)
	}
	d := maildir.Draft{To: []string{"Ann"}, Subject: "s", Body: "b", Attachments: []string{"docs/flow.txt"}}
	if _, err := p.Box("Ann", format.Origin{}).Send(t.Context(), d); !errors.Is(err, maildir.ErrNotFound) {
		t.Errorf("a folder that is not a Git work tree was read: %v", err)
	}
	if err := os.Mkdir(filepath.Join(code, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		m := send(t, p, "Ann", d)
		data, err := os.ReadFile(filepath.Join(p.Dir(), m.Attachments[0].Path))
		if err != nil || string(data) != "flow" || m.Attachments[0].Bytes != 4 || m.Attachments[0].Name != "flow.txt" {
			t.Errorf("%q %v %+v", data, err, m.Attachments)
		}
	}
	for _, bad := range []string{".env", "sub/.hidden/x", "link", "/etc/passwd", "../x", ".git/config", "docs", "", filepath.Join(code, ".env")} {
		d.Attachments = []string{bad}
		if _, err := p.Box("Ann", format.Origin{}).Send(t.Context(), d); err == nil || refusal.Code(err) == "internal" {
			t.Errorf("attachment %q: %v", bad, err)
		}
	}
}

// TestAttachmentsOfLinkedWorkTree checks that paths from a caller working in a linked worktree refer to files in that
// worktree, even if the worktree is in a hidden folder. A folder that only pretends to be a linked worktree must not
// be accepted.
func TestAttachmentsOfLinkedWorkTree(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	main, linked, liar := filepath.Join(top, "main"), filepath.Join(top, "main/.agents/one"), filepath.Join(top, "liar")
	for _, args := range [][]string{
		{"init", "-q", main},
		{"-C", main, "commit", "-q", "--allow-empty", "-m", "x"},
		{"-C", main, "worktree", "add", "-q", linked},
		{"init", "-q", liar},
	} {
		cmd := exec.Command("git", append([]string{"-c", "user.name=A", "-c", "user.email=a@example.org"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v %s", args, err, out)
		}
	}
	if err := os.RemoveAll(filepath.Join(liar, ".git")); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"main/x": "main", "main/only": "main only", "main/.agents/one/x": "linked", "main/.agents/one/sub/y": "below", "main/.agents/one/z": "linked only",
		"liar/.git": "gitdir: " + main + "/.git/worktrees/one\n", "liar/x": "lie", "liar/secret": "lie",
	} {
		name = filepath.Join(top, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	s := storetest.Open(t, storetest.Config{})
	p, err := s.EnsureProject(t.Context(), linked)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Agents.Register(t.Context(), maildir.Registration{NameHint: "Ann"}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ dir, name, want string }{ // want is "" if the file must not be found
		{"", "x", "main"},
		{main, "x", "main"},
		{linked, "x", "linked"},
		{linked + "/sub", "x", "linked"},
		{linked + "/sub", "sub/y", "below"},
		{linked, linked + "/x", "linked"},
		{linked, main + "/x", "main"},
		{linked, "only", ""},
		{linked, ".git", ""},
		{main, linked + "/z", "linked only"},
		{"", linked + "/z", "linked only"},
		{main, ".agents/one/z", "linked only"},
		{main, linked + "/.git", ""},
		{main, liar + "/secret", ""},
		{liar, "x", "main"},
		{liar, "secret", ""},
		{liar, liar + "/secret", ""},
		{"sub", "x", "main"},
	} {
		m, err := p.Box("Ann", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"Ann"}, Subject: "s", Body: "b", Attachments: []string{tt.name}, WorkDir: tt.dir})
		if tt.want == "" || err != nil {
			if tt.want != "" || !errors.Is(err, maildir.ErrNotFound) {
				t.Errorf("%q in %q: %v", tt.name, tt.dir, err)
			}
			continue
		}
		if data, err := os.ReadFile(filepath.Join(p.Dir(), m.Attachments[0].Path)); err != nil || string(data) != tt.want {
			t.Errorf("%q in %q: %q %v; want %q", tt.name, tt.dir, data, err, tt.want)
		}
	}
}

// TestCancelledAtFirst checks that a project is created even if the call that creates it is canceled. If a call is
// canceled while it is opening a project that was copied into the store, the next call must be able to use that
// project.
func TestCancelledAtFirst(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := storetest.Open(t, storetest.Config{NoWatcher: true, Index: func(x index.Index) index.Index { return &watched{Index: x, compare: cancel} }})
	if _, err := s.EnsureProject(ctx, "/abs/path/new"); err != nil {
		t.Fatal(err)
	}
	repo := filepath.Join(s.Root(), "projects", format.Slug("/abs/path/shop"), "repo")
	if err := os.MkdirAll(repo, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(repo, "project.json"), []byte(`{"human_key":"/abs/path/shop","created":"2026-01-02T03:04:05Z"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.EnsureProject(ctx, "/abs/path/shop"); !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled: %v", err)
	}
	for range 32 { // reuses the file descriptors that were closed
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
	}
	p, err := s.EnsureProject(t.Context(), "/abs/path/shop")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Agents.EnsureAgent(t.Context(), "Ann", maildir.Registration{}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Box("Ann", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"Ann"}, Subject: "s"}); err != nil {
		t.Fatal(err)
	}
	if err := p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestAdoptHalfCopied checks that a project is not opened while its project.json is still being written. Otherwise,
// the project would have no key until the next start.
func TestAdoptHalfCopied(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Config{NoWatcher: true})
	file := filepath.Join(s.Root(), "projects", "copy", "repo", "project.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Project(t.Context(), "copy"); !errors.Is(err, maildir.ErrNotFound) {
		t.Fatalf("with an empty project.json: %v", err)
	}
	if err := os.WriteFile(file, []byte(`{"human_key":"/abs/path/shop"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := s.Project(t.Context(), "copy"); err != nil || p.HumanKey() != "/abs/path/shop" {
		t.Fatalf("after it was written: %v", err)
	}
}

// TestWorktreesShare checks that a path in a linked Git worktree identifies the same project as the main worktree.
func TestWorktreesShare(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir()) // resolves symbolic links, as Git does
	if err != nil {
		t.Fatal(err)
	}
	main := filepath.Join(dir, "main")
	linked := filepath.Join(t.TempDir(), "linked")
	for _, args := range [][]string{
		{"init", "-q", main},
		{"-C", main, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "x"},
		{"-C", main, "worktree", "add", "-q", linked},
	} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	s := storetest.Open(t, storetest.Config{NoWatcher: true})
	a, err := s.EnsureProject(t.Context(), main)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := s.EnsureProject(t.Context(), linked); err != nil || b != a {
		t.Errorf("%v %v", b, err)
	}
	if c, err := s.EnsureProject(t.Context(), filepath.Join(linked, "sub")); err != nil || c != a {
		t.Errorf("%v %v", c.HumanKey(), err)
	}
	if err := os.MkdirAll(filepath.Join(main, "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	links, plain := t.TempDir(), t.TempDir()
	for name, to := range map[string]string{"main": main, "linked": linked, "deep": filepath.Join(main, "deep"), "plain": plain} {
		if err := os.Symlink(to, filepath.Join(links, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "late"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "late"), filepath.Join(links, "late")); err != nil {
		t.Fatal(err)
	}
	if p, err := s.EnsureProject(t.Context(), filepath.Join(links, "late")); err != nil || p.HumanKey() != links+"/late" {
		t.Errorf("%s, %v", p.HumanKey(), err)
	}
	if out, err := exec.Command("git", "init", "-q", filepath.Join(dir, "late")).CombinedOutput(); err != nil {
		t.Fatalf("%s", out)
	}
	for path, want := range map[string]string{
		"late": links + "/late", // the project that has the mail
		"main": main, "main/deep": main, "main/not/there": main, "linked": main, "linked/sub": main,
		"deep": main, "deep/nor/this": main, "plain": links + "/plain", // outside a working tree, the path itself is the key
	} {
		if p, err := s.EnsureProject(t.Context(), filepath.Join(links, path)); err != nil || p.HumanKey() != want {
			t.Errorf("%s: %s, want %s (%v)", path, p.HumanKey(), want, err)
		}
	}
}

// TestMailboxes checks that users can list, delete and recreate their own mailboxes, but not other users' mailboxes.
// Root must be able to do all of this with any mailbox.
func TestMailboxes(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann")
	me, other, root := maildir.Caller{UID: 1000}, maildir.Caller{UID: 1001}, maildir.Caller{Root: true}
	for range 2 {
		m, err := p.As(me, format.Origin{}).CreateMailbox(t.Context(), "task-42")
		if err != nil || m.Owner != 1000 || !m.Registered {
			t.Fatalf("%+v %v", m, err)
		}
	}
	for name, by := range map[string]maildir.Caller{"task-42": other, "TASK-42": other, "Ann": me} {
		if _, err := p.As(by, format.Origin{}).CreateMailbox(t.Context(), name); !errors.Is(err, maildir.ErrDenied) {
			t.Errorf("%s by %d: %v", name, by.UID, err)
		}
	}
	if _, err := p.As(me, format.Origin{}).CreateMailbox(t.Context(), "../x"); !errors.Is(err, maildir.ErrInvalid) {
		t.Errorf("%v", err)
	}
	for by, want := range map[maildir.Caller]int{me: 1, other: 0, root: 2} {
		if l, err := p.As(by, format.Origin{}).Mailboxes(t.Context()); err != nil || len(l) != want {
			t.Errorf("%+v sees %v, %v", by, l, err)
		}
	}
	m := send(t, p, "Ann", maildir.Draft{To: []string{"task-42"}, Subject: "s", Body: "b"})
	if _, err := p.As(other, format.Origin{}).DeleteMailbox(t.Context(), "task-42", true); !errors.Is(err, maildir.ErrDenied) {
		t.Errorf("%v", err)
	}
	if _, err := p.As(me, format.Origin{}).DeleteMailbox(t.Context(), "task-42", false); !errors.Is(err, maildir.ErrConflict) {
		t.Errorf("%v", err)
	}
	if _, err := p.As(me, format.Origin{}).DeleteMailbox(t.Context(), "task-42", true); err != nil {
		t.Fatal(err)
	}
	if l, err := p.As(root, format.Origin{}).Mailboxes(t.Context()); err != nil || len(l) != 1 {
		t.Errorf("%v %v", l, err)
	}
	if _, err := p.Message(t.Context(), m.ID); err != nil {
		t.Errorf("the sender's message was deleted with the mailbox: %v", err)
	}
}

// TestFirstContact checks that an agent is created only once if many calls use it for the first time at the same time,
// even if other calls register its name. It also checks that the default project does not need a path.
func TestFirstContact(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Config{})
	p, err := s.EnsureProject(t.Context(), maildir.DefaultProject)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.Project(t.Context(), maildir.DefaultProject); again != p || err != nil || p.HumanKey() != "" || p.Slug != "default" {
		t.Errorf("default project: %v, %v, %q, %q", again, err, p.HumanKey(), p.Slug)
	}
	if problems, err := s.Problems(t.Context(), "", 1); len(problems) > 0 || err != nil {
		t.Errorf("problems: %v, %v", problems, err)
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := p.Agents.EnsureAgent(t.Context(), "bob", maildir.Registration{Program: "postal"}); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if r, err := p.Agents.Register(t.Context(), maildir.Registration{Program: "x", Model: "y", Task: "z", NameHint: "bob"}); err != nil || r.Name == "" {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	rows, err := p.Agents.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	bobs := 0
	for _, a := range rows {
		if a.Name == "bob" && a.HasProfile {
			bobs++
		}
	}
	if bobs != 1 || len(rows) < 20 {
		t.Errorf("bob occurs %d times among %d agents", bobs, len(rows))
	}
	names := []string{"zoe", "Zoe", "zOe", "zoE", "ZOE"}
	errs := make([]error, len(names))
	for i, n := range names {
		wg.Go(func() { errs[i] = p.Agents.EnsureAgent(t.Context(), n, maildir.Registration{}) })
	}
	wg.Wait()
	if errs = slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, maildir.ErrConflict) }); len(errs) != 1 || errs[0] != nil {
		t.Errorf("of five names that differ only in case, none was created: %v", errs)
	}
	for name, kind := range map[string]error{
		"Bob":        maildir.ErrConflict,
		"":           maildir.ErrInvalid,
		"a/b":        maildir.ErrInvalid,
		"postmaster": maildir.ErrInvalid,
		"NUL":        maildir.ErrInvalid,
	} {
		if err := p.Agents.EnsureAgent(t.Context(), name, maildir.Registration{}); !errors.Is(err, kind) {
			t.Errorf("%q: %v, want %v", name, err, kind)
		}
	}
}
