package maildir_test

import (
	"errors"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/fixtures/trap"
	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
)

// TestCodebaseFault checks that while the server cannot read a code base, it makes no decision that depends on the
// code base. It must not choose another project for a linked worktree, or grant a claim on the assumption that paths
// are case-sensitive.
func TestCodebaseFault(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	main, linked := filepath.Join(top, "main"), filepath.Join(top, "linked")
	for _, args := range [][]string{{"init", "-q", main}, {"-C", main, "commit", "-q", "--allow-empty", "-m", "x"},
		{"-C", main, "config", "core.ignorecase", "true"}, {"-C", main, "worktree", "add", "-q", linked}} {
		if out, err := exec.Command("git", append([]string{"-c", "user.name=A", "-c", "user.email=a@example.org"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v %s", args, err, out)
		}
	}
	s := storetest.Open(t, storetest.Config{})
	p, err := s.EnsureProject(t.Context(), main)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"Ann", "Bob"} {
		if _, err := p.Agents.Register(t.Context(), maildir.Registration{NameHint: n}); err != nil {
			t.Fatal(err)
		}
	}
	claim := func(agent, path string) (*claim.Result, error) {
		return p.Box(agent, format.Origin{}).Claim(t.Context(), claim.Request{Patterns: []string{path}, TTL: time.Hour})
	}
	if _, err := claim("Ann", "docs/readme"); err != nil {
		t.Fatal(err)
	}
	for file, ask := range map[string]func() error{
		filepath.Join(linked, ".git"): func() error { _, err := s.EnsureProject(t.Context(), linked); return err },
		filepath.Join(main, ".git/config"): func() error {
			_, err := claim("Bob", "docs/README")
			return err
		},
	} {
		back := trap.Unreadable(t, file)
		if err := ask(); !errors.Is(err, maildir.ErrUnavailable) {
			t.Errorf("%s cannot be read: %v", filepath.Base(file), err)
		}
		back()
	}
	if q, err := s.EnsureProject(t.Context(), linked); err != nil || q != p {
		t.Errorf("the project of the linked work tree: %v", err)
	}
	if all := s.Projects(); len(all) != 1 {
		t.Errorf("%d projects", len(all))
	}
	if res, err := claim("Bob", "docs/README"); err != nil || len(res.Conflicts) != 1 {
		t.Errorf("another agent's claim in different case: %+v, %v", res, err)
	}
}
