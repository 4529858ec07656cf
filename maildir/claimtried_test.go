package maildir_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
)

// granted requests a claim, and reports whether it was granted.
func (m sharer) granted(t testing.TB, agent string, r claim.Request) bool {
	t.Helper()
	res, err := m.p.Box(agent, format.Origin{}).Claim(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return len(res.Granted) > 0
}

// movable is a clock that a test can move.
type movable struct {
	stopped time.Time // the time that the clock shows while it is stopped; zero if it is running

	mu sync.Mutex
	by time.Duration
}

func (c *movable) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped.IsZero() {
		return c.stopped.Add(c.by)
	}
	return time.Now().Add(c.by)
}

func (c *movable) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by += d
}

func whoMachine(t testing.TB, m sharer, name string) string {
	info, err := m.p.Agents.Whois(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return info.AgentRow.Machine
}

// TestClaimsUndoneRelease checks that undoing a release checks the shared list first, so that two agents never hold
// the same paths.
func TestClaimsUndoneRelease(t *testing.T) {
	t.Parallel()
	a, b := sharedByTwo(t)
	a.claims(t, "Ann", "app/**")
	a.release(t, "Ann", "app/**")
	a.now(t)
	if by := b.claims(t, "Bob", "app/**"); by != "" {
		t.Fatal(by)
	}
	_, err := a.p.Box("Ann", format.Origin{}).Undo(t.Context(), maildir.Undoing{})
	if err == nil {
		t.Errorf("Ann's release was undone although Bob holds the paths: a says %q, b says %q", a.held(t), b.held(t))
	}
}

// TestClaimsListDeleted checks that a deleted list is recreated from the last versions that the machines have seen.
func TestClaimsListDeleted(t *testing.T) {
	t.Parallel()
	a, b := sharedByTwo(t)
	a.claims(t, "Ann", "app/**")
	level(t, a, b)
	gitIn(t, a.p.Dir(), "push", "-q", "origin", ":refs/mailtree/claims") // simulates a move to a new host
	if by := b.claims(t, "Bob", "app/x.go"); by == "" {
		t.Errorf("Bob gets what Ann holds, although b had recorded that she holds it: a says %q", a.held(t))
	}
	if by := b.claims(t, "Bob", "lib"); by != "" {
		t.Errorf("held by %s", by)
	}
}

// TestClaimsListRewound checks that an agent gets a notice if it loses a claim because the shared list was reset to
// an earlier version.
func TestClaimsListRewound(t *testing.T) {
	t.Parallel()
	a, b := sharedByTwo(t)
	a.claims(t, "Ann", "one")
	level(t, a, b)
	old := gitIn(t, a.p.Dir(), "rev-parse", "refs/mailtree/claims")
	a.claims(t, "Ann", "two")
	level(t, a, b)
	gitIn(t, a.p.Dir(), "push", "-qf", "origin", old+":refs/mailtree/claims")
	got := b.granted(t, "Bob", claim.Request{Patterns: []string{"two"}})
	level(t, a, b)
	level(t, a, b)
	if told := a.subjects(t, "Ann"); got && len(told) == 0 {
		t.Errorf("Bob gets what Ann holds, and Ann gets no notice: a says %q", a.held(t))
	}
}

// TestClaimsClockSweeps checks that after the wall clock has jumped ahead, the sweep of expired claims does not remove
// other machines' claims.
func TestClaimsClockSweeps(t *testing.T) {
	t.Parallel()
	clock := &movable{by: -10 * 24 * time.Hour} // the network sets the clock right after the machine has started
	a, b, _ := sharedWith(t, storetest.Config{Now: clock.now})
	a.claims(t, "Ann", "app/**")
	level(t, a, b)
	clock.move(10 * 24 * time.Hour) // now the clock shows the right time
	b.now(t)
	if b.granted(t, "Bob", claim.Request{Patterns: []string{"app/**"}}) {
		t.Fatal("before the sweep")
	}
	maildir.Sweep(b.p) // as the server does every hour
	b.now(t)
	b.now(t)
	if b.granted(t, "Bob", claim.Request{Patterns: []string{"app/**"}}) {
		t.Errorf("the wall clock ended Ann's live claim: a says %q, b says %q", a.held(t), b.held(t))
	}
}

// TestClaimsOffOn checks that a released claim stays released even if sync was off on another machine when the claim
// was released.
func TestClaimsOffOn(t *testing.T) {
	t.Parallel()
	a, b := sharedByTwo(t)
	b.claims(t, "Bob", "lib/**")
	level(t, a, b)
	if err := a.p.Sync.Set(false); err != nil {
		t.Fatal(err)
	}
	b.release(t, "Bob", "lib/**")
	b.now(t)
	if err := a.p.Sync.Set(true); err != nil {
		t.Fatal(err)
	}
	level(t, a, b)
	level(t, a, b)
	if got := b.held(t); got != "" {
		t.Errorf("Bob released the claim but holds it again: %q", got)
	}
	b.release(t, "Bob", "lib/**")
	level(t, a, b)
	level(t, a, b)
	if got := a.held(t) + b.held(t); got != "" {
		t.Errorf("released again, but still held: %q", got)
	}
}

// TestClaimsOffOnLost checks that the holder of a claim does not get a false notice when another machine turns sync on
// again.
func TestClaimsOffOnLost(t *testing.T) {
	t.Parallel()
	a, b := sharedByTwo(t)
	b.register(t, "Cid")
	level(t, a, b)
	b.claims(t, "Bob", "lib/**")
	level(t, a, b)
	if err := a.p.Sync.Set(false); err != nil {
		t.Fatal(err)
	}
	b.release(t, "Bob", "lib/**")
	b.claims(t, "Cid", "lib/**")
	if err := a.p.Sync.Set(true); err != nil {
		t.Fatal(err)
	}
	level(t, a, b)
	level(t, a, b)
	if got := b.subjects(t, "Bob"); len(got) > 0 {
		t.Errorf("Bob released the claim correctly, but got the notice %q", got)
	}
}

// TestClaimsTwinReleases checks that an agent cannot release the claims of another agent with the same name before
// their mail has been merged.
func TestClaimsTwinReleases(t *testing.T) {
	t.Parallel()
	a, b := sharedByTwo(t)
	a.register(t, "Twin")
	b.register(t, "Twin")
	b.claims(t, "Twin", "lib/**")
	a.now(t) // the claims are synchronized, but b's mail has not been pushed
	a.release(t, "Twin")
	a.now(t)
	if a.granted(t, "Ann", claim.Request{Patterns: []string{"lib/**"}}) {
		t.Errorf("Ann gets what b's Twin holds: b says %q", b.held(t))
	}
}

// TestClaimsTwinsShare checks that shared claims on the same path by two agents with the same name are separate
// claims.
func TestClaimsTwinsShare(t *testing.T) {
	t.Parallel()
	a, b := sharedByTwo(t)
	a.register(t, "Twin")
	b.register(t, "Twin")
	for _, m := range []sharer{a, b} {
		if !m.granted(t, "Twin", claim.Request{Patterns: []string{"lib/**"}, Shared: true}) {
			t.Fatal("not granted")
		}
	}
	b.release(t, "Twin")
	if b.granted(t, "Bob", claim.Request{Patterns: []string{"lib/**"}}) {
		t.Errorf("Bob gets exclusively what a's Twin shares: a says %q", a.held(t))
	}
}

// TestClaimsUndoneRenewal checks that after a renewal is undone, the claim expires at the same time on every machine.
func TestClaimsUndoneRenewal(t *testing.T) {
	t.Parallel()
	a, b := sharedByTwo(t)
	for _, ttl := range []time.Duration{10 * time.Minute, 30 * 24 * time.Hour} {
		if !a.granted(t, "Ann", claim.Request{Patterns: []string{"lib/**"}, TTL: ttl}) {
			t.Fatal("not granted")
		}
	}
	level(t, a, b)
	if _, err := a.p.Box("Ann", format.Origin{}).Undo(t.Context(), maildir.Undoing{}); err != nil {
		t.Fatal(err)
	}
	level(t, a, b)
	level(t, a, b)
	for i, m := range []sharer{a, b} {
		all, err := m.p.Claims.List(t.Context(), false)
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		if left := time.Until(all[0].Expires); left > time.Hour {
			t.Errorf("on machine %d, the claim is valid for %v more", i, left.Round(time.Hour))
		}
	}
}

// TestClaimsFileInTheWay checks what happens if something else exists at the path of another machine's claim file.
// Other claims must still work.
func TestClaimsFileInTheWay(t *testing.T) {
	t.Parallel()
	a, b := sharedByTwo(t)
	for _, m := range []sharer{b} {
		if err := os.MkdirAll(filepath.Join(m.p.Dir(), format.ClaimPath("app/**", "Ann", "")), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	a.claims(t, "Ann", "app/**")
	res, err := b.p.Box("Bob", format.Origin{}).Claim(t.Context(), claim.Request{Patterns: []string{"lib/**"}})
	list := gitIn(t, b.p.Dir(), "ls-tree", "--name-only", "refs/mailtree/claims")
	if err != nil && strings.Contains(list, "-Bob.json") {
		t.Errorf("Bob got the notices %v, but has the claim; held: %q", err, b.held(t))
	}
	_ = res
	a.claims(t, "Ann", "doc/**")
	_, _ = b.p.Sync.Now(t.Context())
	if got := b.held(t); !strings.Contains(got, "doc/**") {
		t.Errorf("other machines' claims no longer reach b: %q", got)
	}
}

// TestClaimsByCase checks that patterns on two machines overlap if they differ only in case.
func TestClaimsByCase(t *testing.T) {
	t.Parallel()
	bare, all := shared(t, 1, onlyAsked)
	a, b := all[0], sharer{}
	code := t.TempDir()
	gitIn(t, code, "init", "-q")
	gitIn(t, code, "config", "core.ignorecase", "true")
	b.Store = storetest.Open(t, storetest.Config{Sync: onlyAsked})
	var err error
	if b.p, err = b.Join(t.Context(), bare, code); err != nil {
		t.Fatal(err)
	}
	a.register(t, "Ann")
	b.register(t, "Bob")
	level(t, a, b)
	b.claims(t, "Bob", "App/main.go")
	if a.granted(t, "Ann", claim.Request{Patterns: []string{"app/main.go"}}) {
		t.Error("two claims on paths that are one file on b")
	}
}

// TestClaimsForAnother checks that if a user claims a path on behalf of another machine's agent, that agent gets the
// claim.
func TestClaimsForAnother(t *testing.T) {
	t.Parallel()
	a, b := sharedByTwo(t)
	r := claim.Request{Patterns: []string{"app/**"}}
	res, err := b.p.Box("Ann", format.Origin{}).Claim(format.Through(t.Context(), format.DoorPage), r)
	if err != nil || len(res.Granted) == 0 {
		t.Fatal(res, err)
	}
	level(t, a, b)
	if by := a.claims(t, "Ann", "app/x.go"); by != "" {
		t.Errorf("Ann holds app/**, but is refused because of %q", by)
	}
}

// TestClaimsHandedOver checks that an agent keeps its claims when it is transferred to another machine.
func TestClaimsHandedOver(t *testing.T) {
	t.Parallel()
	a, b := sharedByTwo(t)
	a.claims(t, "Ann", "app/**")
	level(t, a, b)
	profile := filepath.Join(b.p.Dir(), "agents", "Ann", "profile.json")
	data, err := os.ReadFile(profile)
	text := strings.ReplaceAll(string(data), whoMachine(t, b, "Ann"), whoMachine(t, b, "Bob"))
	if err = errors.Join(err, os.WriteFile(profile, []byte(text), 0o600), b.p.Rescan(t.Context())); err != nil {
		t.Fatal(err)
	}
	level(t, b, a)
	if by := b.claims(t, "Ann", "app/**"); by != "" {
		t.Errorf("Ann's claim is refused because of %q", by)
	}
}

// TestClaimsStaleFiles checks that other machines' claim files are not treated as requests if they come from an old
// commit.
func TestClaimsStaleFiles(t *testing.T) {
	t.Parallel()
	a, b := sharedByTwo(t)
	a.claims(t, "Ann", "app/**")
	a.now(t)
	a.send(t, "Ann", "Bob", "which pushes the commit of the claim")
	level(t, a, b)
	a.release(t, "Ann", "app/**")
	level(t, a, b)
	gitIn(t, b.p.Dir(), "fetch", "-q", "origin", "main")
	gitIn(t, b.p.Dir(), "reset", "-q", "--hard", "FETCH_HEAD")
	if err := b.p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	level(t, b, a)
	if got := a.held(t); got != "" {
		t.Errorf("held: %q", got)
	}
}

// TestClaimsOffOnFreed checks that if a claim is released while sync is off on this machine, the former holder can
// claim the path again.
func TestClaimsOffOnFreed(t *testing.T) {
	t.Parallel()
	a, b := sharedByTwo(t)
	b.claims(t, "Bob", "lib/**")
	level(t, a, b)
	if err := a.p.Sync.Set(false); err != nil {
		t.Fatal(err)
	}
	b.release(t, "Bob", "lib/**")
	b.now(t)
	if err := a.p.Sync.Set(true); err != nil {
		t.Fatal(err)
	}
	level(t, a, b)
	if by := b.claims(t, "Bob", "lib/x.go"); by != "" {
		t.Errorf("Bob's claim is refused because of %q", by)
	}
}

// TestClaimsEdited checks that the file of another machine's claim is rewritten if a user's edit would make the claim
// expire.
func TestClaimsEdited(t *testing.T) {
	t.Parallel()
	a, b := sharedByTwo(t)
	a.claims(t, "Ann", "app/**")
	level(t, a, b)
	file := filepath.Join(b.p.Dir(), format.ClaimPath("app/**", "Ann", ""))
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := format.ParseClaim(data)
	c.Expires = time.Now().Add(-time.Minute).UTC()
	if err = errors.Join(err, os.WriteFile(file, format.FormatClaim(c, nil), 0o600), b.p.Rescan(t.Context())); err != nil {
		t.Fatal(err)
	}
	level(t, b, a)
	level(t, b, a)
	if a.held(t) != b.held(t) {
		t.Errorf("a says %q, and b's guard says %q", a.held(t), b.held(t))
	}
}

// TestClaimsClockHides checks that the files of other machines' claims are rewritten if the wall clock is set
// forward.
func TestClaimsClockHides(t *testing.T) {
	t.Parallel()
	clock := &movable{by: -2 * time.Hour}
	a, b, _ := sharedWith(t, storetest.Config{Now: clock.now})
	a.claims(t, "Ann", "app/**")
	b.claims(t, "Bob", "lib/**")
	level(t, a, b)
	clock.move(2 * time.Hour)
	level(t, a, b)
	level(t, a, b)
	if got := b.held(t); got != a.held(t) {
		t.Errorf("a says %q, and b's guard says %q", a.held(t), got)
	}
	b.release(t, "Bob")
	level(t, b, a)
	if got := a.held(t); got != "Ann app/**" {
		t.Errorf("Bob has released everything; a says %q", got)
	}
}
