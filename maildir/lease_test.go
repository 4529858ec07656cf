package maildir_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
)

// TestLeaseEnds checks that a claim expires when the wall clock reaches the time in the claim's file, even if the
// clock was adjusted before that.
func TestLeaseEnds(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	p := project(t, storetest.Config{Now: now}, "Ann", "Bob")
	for _, step := range []struct {
		ahead   time.Duration // how far the clock is ahead of the start of the test
		agent   string
		granted bool
	}{
		{0, "Ann", true},
		{30 * time.Minute, "Bob", false},
		{59 * time.Minute, "Ann", true}, // the claim has been renewed
		{118 * time.Minute, "Bob", false},
		{120 * time.Minute, "Bob", true},
		{-240 * time.Hour, "Ann", false},
		{240 * time.Hour, "Ann", true},
	} {
		ahead.Store(int64(step.ahead))
		r, err := p.Box(step.agent, format.Origin{}).Claim(t.Context(), claim.Request{Patterns: []string{"x"}})
		if err != nil {
			t.Fatal(err)
		}
		if granted := len(r.Granted) > 0; granted != step.granted {
			t.Errorf("%s, %s: granted %v", step.ahead, step.agent, granted)
		}
		data, err := os.ReadFile(filepath.Join(p.Dir(), append(r.Granted, heldBy(r)...)[0].Path))
		if err != nil {
			t.Fatal(err)
		}
		c, err := format.ParseClaim(data)
		if shown := append(r.Granted, heldBy(r)...)[0].Expires; err != nil || !shown.Equal(c.Expires) {
			t.Errorf("%s, %s: shown to end at %s, but the file says %s (%v)", step.ahead, step.agent, shown, c.Expires, err)
		}
	}
}

func heldBy(r *claim.Result) (held []claim.Row) {
	for _, c := range r.Conflicts {
		held = append(held, c.Held)
	}
	return held
}

// TestIgnoreCase checks that claims overlap regardless of case if the code repository ignores case. To renew or
// release its own claims, an agent must use the exact pattern.
func TestIgnoreCase(t *testing.T) {
	t.Parallel()
	code := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("git", append([]string{"-C", code}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q")
	p, err := storetest.Open(t, storetest.Config{}).EnsureProject(t.Context(), code)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"Ann", "Bob"} {
		if _, err := p.Agents.Register(t.Context(), maildir.Registration{Program: "x", NameHint: n}); err != nil {
			t.Fatal(err)
		}
	}
	claim := func(agent string, dry, want bool, patterns ...string) *claim.Result {
		t.Helper()
		r, err := p.Box(agent, format.Origin{}).Claim(t.Context(), claim.Request{Patterns: patterns, DryRun: dry})
		if err != nil || (len(r.Granted) > 0) != want {
			t.Fatalf("%s %v: %+v %v", agent, patterns, r, err)
		}
		return r
	}
	claim("Ann", false, true, "src/[A-M]*.go")
	claim("Bob", true, true, "SRC/b.go")
	claim("Bob", true, true, "src/b.go")
	git("config", "core.ignorecase", "true")
	claim("Bob", true, false, "SRC/b.go")
	claim("Bob", true, false, "src/b.go")
	claim("Bob", true, true, "src/z.go")
	first := claim("Ann", false, true, "src").Granted[0]
	if second := claim("Ann", false, true, "SRC").Granted[0]; second.Path == first.Path {
		t.Error("another spelling renewed the claim")
	}
	if released, err := p.Box("Ann", format.Origin{}).Release(t.Context(), []string{"SRC"}); err != nil || len(released.Released) != 1 || released.Released[0].Pattern != "SRC" {
		t.Errorf("%v %v", released, err)
	}
	git("config", "core.ignorecase", "false")
	claim("Bob", true, true, "SRC/b.go")
}

// TestClaimOfAFile checks that a path without wildcards also covers everything below it, unless the code repository has
// a file at that path.
func TestClaimOfAFile(t *testing.T) {
	t.Parallel()
	code := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", code).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, f := range []string{"README.md", "src/v1.2/x.go"} {
		name := filepath.Join(code, f)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(".", filepath.Join(code, "link")); err != nil {
		t.Fatal(err)
	}
	s := storetest.Open(t, storetest.Config{})
	p, err := s.EnsureProject(t.Context(), code)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"Ann", "Bob"} {
		if _, err := p.Agents.Register(t.Context(), maildir.Registration{Program: "x", Model: "y", Task: "z", NameHint: n}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		held, asked string
		overlap     bool
	}{
		{"README.md", "**/*.go", false},
		{"README.md", "*.md", true},
		{"README.md", "README.md", true},
		{"README.md", "README.md/x.go", false},
		{"src/v1.2", "**/*.go", true},
		{"new", "**/*.go", true},
		{"link", "**/*.go", false},
	} {
		for _, pair := range [][2]string{{c.held, c.asked}, {c.asked, c.held}} {
			if _, err := p.Box("Ann", format.Origin{}).Claim(t.Context(), claim.Request{Patterns: pair[:1]}); err != nil {
				t.Fatal(err)
			}
			r, err := p.Box("Bob", format.Origin{}).Claim(t.Context(), claim.Request{Patterns: pair[1:], DryRun: true})
			if err != nil {
				t.Fatal(err)
			}
			if got := len(r.Conflicts) > 0; got != c.overlap {
				t.Errorf("%s next to %s: %v", pair[1], pair[0], got)
			}
			if _, err := p.Box("Ann", format.Origin{}).Release(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}
