package maildir_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
)

// watch is a wall clock that somebody sets, and the time that passes meanwhile: what a test says, and hardly what it takes itself.
type watch struct {
	start       time.Time
	set, passed atomic.Int64
}

func (w *watch) elapsed() time.Duration {
	return time.Since(w.start)/1000 + time.Duration(w.passed.Load())
}

func (w *watch) now() time.Time {
	return w.start.Round(0).Add(w.elapsed() + time.Duration(w.set.Load()))
}

func (w *watch) pass(d time.Duration) { w.passed.Add(int64(d)) }
func (w *watch) jump(d time.Duration) { w.set.Add(int64(d)) }

// steps are what one agent after the other does: "Ann claims x" is granted, "Bob meets x" is refused, "wait 30m", "set -240h"
// jumps the wall clock, "correct 2s" is a time server's step.
func (w *watch) steps(t *testing.T, p *maildir.Project, script string) {
	t.Helper()
	for line := range strings.SplitSeq(script, ";") {
		f := strings.Fields(line)
		switch f[0] {
		case "wait", "set", "correct":
			d, err := time.ParseDuration(f[1])
			if err != nil {
				t.Fatal(err)
			}
			if f[0] == "wait" {
				w.pass(d)
			} else {
				w.jump(d)
			}
			if _, err := p.Claims(t.Context(), false); err != nil { // somebody looks now and then
				t.Fatal(err)
			}
			continue
		}
		r, err := p.Claim(t.Context(), maildir.ClaimRequest{Agent: f[0], Patterns: f[2:]})
		if err != nil {
			t.Fatal(err)
		}
		if granted := len(r.Granted) > 0; granted != (f[1] == "claims") {
			t.Errorf("%s in %s: granted %v", line, script, granted)
		}
		for _, c := range r.Conflicts {
			if left := c.Held.Expires.Sub(w.now()); left < 0 || left > time.Hour+time.Minute {
				t.Errorf("%s in %s: %s are said to be left", line, script, left)
			}
		}
	}
}

// TestClockJumps: a lease of an hour goes on for an hour, whatever the wall clock is set to.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	for _, script := range []string{
		"Ann claims x; set 240h; Bob meets x; wait 59m; Bob meets x; wait 2m; Bob claims x",
		"Ann claims x; set -240h; Bob meets x; wait 59m; Bob meets x; wait 2m; Bob claims x",
		"Ann claims x; wait 61m; set -240h; Bob claims x; Ann meets x",
		"Ann claims x; wait 61m; set 240h; Bob claims x; Ann meets x",
		"set 240h; Ann claims x; set -240h; Bob meets x; wait 61m; Bob claims x",
		"set -240h; Ann claims x; Bob claims y; set 240h; Bob meets x; wait 30m; Bob claims y; wait 31m; Ann meets y; Bob claims x",
		"Ann claims x; set 240h; wait 30m; Ann claims x; wait 59m; Bob meets x; wait 2m; Bob claims x",
		"Ann claims x; wait 58m; correct 3s; Bob meets x; wait 1m58s; Bob claims x",
		"Ann claims x; wait 58m; correct -3s; Bob meets x; wait 2m1s; Bob meets x; wait 3s; Bob claims x",
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			w := &watch{start: time.Now()}
			p := project(t, storetest.Config{Now: w.now, Elapsed: w.elapsed}, "Ann", "Bob")
			w.steps(t, p, script)
		})
	}
}

// TestIgnoreCase: where the code repository says so, claims overlap whatever the case; what an agent holds it renews and
// releases letter for letter.
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
		if _, err := p.Register(t.Context(), maildir.Registration{Program: "x", NameHint: n}); err != nil {
			t.Fatal(err)
		}
	}
	claim := func(agent string, dry, want bool, patterns ...string) *maildir.ClaimResult {
		t.Helper()
		r, err := p.Claim(t.Context(), maildir.ClaimRequest{Agent: agent, Patterns: patterns, DryRun: dry})
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
	if released, err := p.Release(t.Context(), "Ann", []string{"SRC"}); err != nil || len(released) != 1 || released[0].Pattern != "SRC" {
		t.Errorf("%v %v", released, err)
	}
	git("config", "core.ignorecase", "false")
	claim("Bob", true, true, "SRC/b.go")
}

// TestClaimOfAFile: a path without wildcards stands for all that may lie below it, unless the code repository has a file there.
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
		if _, err := p.Register(t.Context(), maildir.Registration{Program: "x", Model: "y", Task: "z", NameHint: n}); err != nil {
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
			if _, err := p.Claim(t.Context(), maildir.ClaimRequest{Agent: "Ann", Patterns: pair[:1]}); err != nil {
				t.Fatal(err)
			}
			r, err := p.Claim(t.Context(), maildir.ClaimRequest{Agent: "Bob", Patterns: pair[1:], DryRun: true})
			if err != nil {
				t.Fatal(err)
			}
			if got := len(r.Conflicts) > 0; got != c.overlap {
				t.Errorf("%s beside %s: %v", pair[1], pair[0], got)
			}
			if _, err := p.Release(t.Context(), "Ann", nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}
