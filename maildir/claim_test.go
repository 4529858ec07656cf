package maildir_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
)

// wantHeld checks which claims are live. For each live claim, want contains "Agent pattern", in order.
func wantHeld(t *testing.T, p *maildir.Project, want []string) {
	t.Helper()
	all, err := p.Claims.List(t.Context(), false)
	var got []string
	for _, c := range all {
		got = append(got, c.Agent+" "+c.Pattern)
	}
	if slices.Sort(got); err != nil || !slices.Equal(got, want) {
		t.Errorf("held: %q, want %q; %v", got, want, err)
	}
}

// TestRegisterConcurrently checks that no two agents get the same name, regardless of case.
func TestRegisterConcurrently(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{})
	var all sync.WaitGroup
	var mu sync.Mutex
	names := map[string]bool{}
	for i := range 16 {
		all.Go(func() {
			hint := []string{"BlueLake", "bluelake", "BLUELAKE", ""}[i%4]
			r, err := p.Agents.Register(t.Context(), maildir.Registration{Program: "x", NameHint: hint})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if low := strings.ToLower(r.Name); names[low] {
				t.Errorf("%s twice", r.Name)
			} else {
				names[low] = true
			}
			if hint != "" && !strings.EqualFold(r.Name, hint) && r.Note == nil {
				t.Error("a hint was not used, and there is no note about it")
			}
		})
	}
	all.Wait()
	if len(names) != 16 || !names["bluelake"] {
		t.Errorf("%v", names)
	}
}

// TestClaimsNeverBothWin checks that only one claim is granted if 16 goroutines make overlapping exclusive claims.
func TestClaimsNeverBothWin(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 16 {
		names = append(names, fmt.Sprintf("Agent%02d", i))
	}
	p := project(t, storetest.Config{}, names...)
	same := []string{"src/**", "src/a.go", "src/*.go", "s*/a.go"} // any two of these patterns overlap
	some := []string{"lib/[a-m]*", "lib/{k,x}/y", "lib/n*.go", "l?b/**/y", "lib/x", "doc/*.md", "doc/a*", "{doc,lib}/z"}
	var all sync.WaitGroup
	var won atomic.Int64
	claim := func(n string, patterns ...string) bool {
		r, err := p.Box(n, format.Origin{}).Claim(t.Context(), claim.Request{Patterns: patterns})
		if err != nil {
			t.Error(err)
			return false
		}
		return len(r.Granted) > 0
	}
	for i, n := range names {
		all.Go(func() {
			if claim(n, same[i%4], "own/"+n) {
				won.Add(1)
			}
			for k := range some {
				claim(n, some[(i+k)%len(some)])
				if (i+k)%3 == 0 {
					if _, err := p.Box(n, format.Origin{}).Release(t.Context(), []string{some[(i+k)%len(some)]}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	held := 0
	for _, c := range storetest.LiveClaims(t, p) {
		if strings.HasPrefix(c.Pattern, "s") || strings.HasPrefix(c.Pattern, "own/") {
			held++
		}
	}
	if won.Load() != 1 || held != 2 {
		t.Errorf("%d won, %d claims are held", won.Load(), held)
	}
}

// TestClaimLife checks that several agents can hold shared claims, that a renewal keeps keys that a user added to the
// file, and that dry runs claim nothing. After a release or an expiry, the paths must be free.
func TestClaimLife(t *testing.T) {
	t.Parallel()
	var jump atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(jump.Load())) }
	p := project(t, storetest.Config{Now: now}, "Ann", "Bob")
	cl := func(agent string, r claim.Request) *claim.Result {
		t.Helper()
		r.Agent = agent
		res, err := p.Box(r.Agent, format.Origin{}).Claim(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	doc := []string{"doc"}
	if r := cl("Ann", claim.Request{Patterns: doc, DryRun: true}); len(r.Granted) != 1 {
		t.Errorf("%+v", r)
	}
	if live, _ := p.Claims.List(t.Context(), false); len(live) != 0 {
		t.Errorf("a dry run took %v", live)
	}
	a := cl("Ann", claim.Request{Patterns: doc, Shared: true, Reason: "why"})
	cl("Bob", claim.Request{Patterns: doc, Shared: true})
	if r := cl("Bob", claim.Request{Patterns: []string{"free", "doc/x"}}); len(r.Conflicts) != 1 || len(r.Granted) != 0 || r.Conflicts[0].Held.Reason != "why" {
		t.Errorf("%+v", r)
	}
	file := filepath.Join(p.Dir(), a.Granted[0].Path)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(string(data), "{", "{\n  \"note\": {\"by\":  \"hand\"},", 1)
	if err := os.WriteFile(file, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := cl("Ann", claim.Request{Patterns: doc, Shared: true, TTL: 2 * time.Hour})
	data, _ = os.ReadFile(file)
	if !strings.Contains(string(data), `"note": {"by":  "hand"}`) || r.Granted[0].Reason != "why" || !r.Granted[0].Created.Equal(a.Granted[0].Created) {
		t.Errorf("renewed: %+v\n%s", r.Granted[0], data)
	}
	out, err := exec.Command("git", "-C", p.Dir(), "log", "-p", "--", a.Granted[0].Path).Output()
	if err != nil || !strings.Contains(string(out), `+  "note": {"by":  "hand"}`) {
		t.Errorf("the edit is not in the history before the renewal: %v\n%s", err, out)
	}
	released, err := p.Box("Bob", format.Origin{}).Release(t.Context(), nil)
	if err != nil || len(released.Released) != 1 {
		t.Errorf("%v %v", released, err)
	}
	jump.Store(int64(3 * time.Hour))
	if r := cl("Bob", claim.Request{Patterns: doc}); len(r.Granted) != 1 {
		t.Errorf("an expired claim is still held: %+v", r)
	}
	if r := cl("Bob", claim.Request{Patterns: doc}); len(r.Granted) != 1 {
		t.Errorf("again: %+v", r)
	}
}

// TestSweep checks that the files of claims that ended a week ago are removed. A file must be kept if a user has just
// edited it to make the claim live again, even if the index does not have the change yet.
func TestSweep(t *testing.T) {
	t.Parallel()
	var jump atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(jump.Load())) }
	p := project(t, storetest.Config{Now: now, NoWatcher: true}, "Ann")
	claim := func(pattern string, ttl time.Duration) string {
		t.Helper()
		r, err := p.Box("Ann", format.Origin{}).Claim(t.Context(), claim.Request{Patterns: []string{pattern}, TTL: ttl})
		if err != nil || len(r.Granted) != 1 {
			t.Fatalf("%+v %v", r, err)
		}
		return filepath.Join(p.Dir(), r.Granted[0].Path)
	}
	ended, extended := claim("ended", time.Hour), claim("extended", time.Hour)
	released, unreleased := claim("released", 30*24*time.Hour), claim("unreleased", 30*24*time.Hour)
	if r, err := p.Box("Ann", format.Origin{}).Release(t.Context(), []string{"released", "unreleased"}); err != nil || len(r.Released) != 2 {
		t.Fatalf("%+v %v", r, err)
	}
	jump.Store(int64(8 * 24 * time.Hour))
	data, err := os.ReadFile(extended)
	if err != nil {
		t.Fatal(err)
	}
	data = regexp.MustCompile(`"expires": "[^"]*"`).ReplaceAll(data, []byte(`"expires": "2096-01-01T00:00:00Z"`))
	if err := errors.Join(os.WriteFile(extended, data, 0o600), os.Remove(format.ReleasedMark(unreleased))); err != nil {
		t.Fatal(err)
	}
	there := func(name string) bool { _, err := os.Lstat(name); return err == nil }
	maildir.Sweep(p)
	await(t, func() bool { return !there(ended) && !there(released) && !there(format.ReleasedMark(released)) })
	if !there(extended) || !there(unreleased) {
		t.Errorf("live claims were removed: extended file exists %v, unreleased file exists %v", there(extended), there(unreleased))
	}
	if err := p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	if live, err := p.Claims.List(t.Context(), false); err != nil || len(live) != 2 {
		t.Errorf("%+v %v", live, err)
	}
}

// TestRenewOnOtherBranch checks that an agent can renew, release and reclaim its claims even while nothing can be
// committed.
func TestRenewOnOtherBranch(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann")
	if err := p.FlushHistory(t.Context()); err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) {
		t.Helper()
		await(t, func() bool {
			return exec.Command("git", append([]string{"-C", p.Dir()}, args...)...).Run() == nil
		})
	}
	git("checkout", "-q", "-b", "side")
	for range 3 {
		if _, err := p.Box("Ann", format.Origin{}).Claim(t.Context(), claim.Request{Patterns: []string{"x"}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Box("Ann", format.Origin{}).Release(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if r, err := p.Box("Ann", format.Origin{}).Claim(t.Context(), claim.Request{Patterns: []string{"x"}}); err != nil || len(r.Granted) != 1 {
		t.Fatalf("%+v %v", r, err)
	}
	git("checkout", "-q", "main")
}
