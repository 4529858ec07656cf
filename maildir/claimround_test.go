package maildir_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
)

// claims requests exclusive claims on paths for an agent. It returns "" if the claims were granted, and otherwise the
// holder of the conflicting claim.
func (m sharer) claims(t testing.TB, agent string, paths ...string) (holder string) {
	t.Helper()
	res, err := m.p.Box(agent, format.Origin{}).Claim(t.Context(), claim.Request{Patterns: paths})
	if err != nil {
		t.Error(err)
		return "error"
	}
	if len(res.Conflicts) > 0 {
		return res.Conflicts[0].Held.Agent
	}
	if len(res.Granted) != len(paths) {
		t.Errorf("granted %+v of %v", res.Granted, paths)
	}
	return ""
}

// held lists the live claims in a machine's files, as "agent pattern".
func (m sharer) held(t testing.TB) string {
	t.Helper()
	files, bad, err := claim.Files(maildir.TreeOf(m.p), func(r *claim.Row) bool { return r.Live(maildir.Now(m.p)) })
	if err != nil || len(bad) > 0 {
		t.Fatal(bad, err)
	}
	var all []string
	for _, f := range files {
		all = append(all, f.Agent+" "+f.Pattern)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func (m sharer) release(t testing.TB, agent string, paths ...string) {
	t.Helper()
	if _, err := m.p.Box(agent, format.Origin{}).Release(t.Context(), paths); err != nil {
		t.Fatal(err)
	}
}

// writeClaim writes a claim file by hand and waits until it is indexed.
func (m sharer) writeClaim(t testing.TB, agent, pattern string) {
	t.Helper()
	file := filepath.Join(m.p.Dir(), format.ClaimPath(pattern, agent, ""))
	now := time.Now().UTC()
	data := format.FormatClaim(format.Claim{Pattern: pattern, Agent: agent, Exclusive: true, Created: now, Expires: now.Add(time.Hour)}, nil)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, data, 0o600), m.p.Rescan(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// TestSharedClaims checks that a conflicting claim is refused immediately on every machine. Each machine must get the
// claim's file in its next sync round. The same applies to a release, to a renewal, and to undoing either of them.
func TestSharedClaims(t *testing.T) {
	t.Parallel()
	a, b := sharedByTwo(t)
	if by := a.claims(t, "Ann", "app/**"); by != "" {
		t.Fatalf("held by %s", by)
	}
	if by := b.claims(t, "Bob", "app/x.go", "lib/y.go"); by != "Ann" {
		t.Errorf("the conflict with another machine's claim names %q as the holder", by)
	}
	if by := b.claims(t, "Bob", "lib/y.go"); by != "" {
		t.Errorf("held by %s", by)
	}
	a.now(t)
	for _, m := range []sharer{a, b} {
		if got := m.held(t); got != "Ann app/**, Bob lib/y.go" {
			t.Errorf("held: %s", got)
		}
	}
	until := func(m sharer, pattern string) time.Time {
		t.Helper()
		all, err := m.p.Claims.List(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(all, func(c claim.Row) bool { return c.Pattern == pattern })
		return all[i].Expires
	}
	before := until(b, "app/**")
	if _, err := a.p.Box("Ann", format.Origin{}).Claim(t.Context(), claim.Request{Patterns: []string{"app/**"}, TTL: 3 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	b.now(t)
	if longer := until(b, "app/**").Sub(before); longer < time.Hour {
		t.Errorf("the renewal added only %v", longer)
	}
	if longer := until(b, "app/**").Sub(until(a, "app/**")); longer < 50*time.Second || longer > 2*time.Minute {
		t.Errorf("the other machine ends the claim %v later than the holder's", longer)
	}

	a.release(t, "Ann", "app/**")
	if by := a.claims(t, "Ann", "other"); by != "" { // the next push includes the release
		t.Errorf("held by %s", by)
	}
	if by := b.claims(t, "Bob", "app/**"); by != "" {
		t.Errorf("released, but still held by %s", by)
	}
	if _, err := b.p.Box("Bob", format.Origin{}).Undo(t.Context(), maildir.Undoing{}); err != nil {
		t.Fatal(err)
	}
	a.release(t, "Ann", "other")
	level(t, a, b)
	if got := b.held(t); got != "Bob lib/y.go" {
		t.Errorf("held: %s", got)
	}
	if _, err := a.p.Box("Ann", format.Origin{}).Undo(t.Context(), maildir.Undoing{}); err != nil {
		t.Fatal(err)
	}
	level(t, a, b)
	for _, m := range []sharer{a, b} {
		if got := m.held(t); got != "Ann other, Bob lib/y.go" {
			t.Errorf("held: %s", got)
		}
	}
	level(t, a, b) // commits the files that the last round wrote
	head := gitIn(t, b.p.Dir(), "rev-parse", "HEAD") + gitIn(t, a.p.Dir(), "rev-parse", "HEAD")
	level(t, a, b)
	if now := gitIn(t, b.p.Dir(), "rev-parse", "HEAD") + gitIn(t, a.p.Dir(), "rev-parse", "HEAD"); now != head {
		t.Error("machines without any changes write claims again")
	}
}

// TestClaimsByHand checks that a user can claim a path by writing a claim file by hand, and can release it by removing
// the file.
func TestClaimsByHand(t *testing.T) {
	t.Parallel()
	a, b := sharedByTwo(t)
	if by := a.claims(t, "Ann", "app/**"); by != "" {
		t.Fatalf("held by %s", by)
	}
	a.rewrite(t, "app/**", func(c *format.Claim) { c.Reason = "by hand" })
	b.writeClaim(t, "Bob", "app/x.go")
	b.writeClaim(t, "Bob", "free")
	b.now(t)
	a.now(t)
	for _, m := range []sharer{a, b} {
		if got := m.held(t); got != "Ann app/**, Bob free" {
			t.Errorf("held: %s", got)
		}
	}
	if why := a.claimFile(t, "app/**").Reason; why != "by hand" {
		t.Errorf("the reason is %q", why)
	}
	if got := b.subjects(t, "Bob"); fmt.Sprint(got) != "[Your claim is not valid: app/x.go]" {
		t.Errorf("Bob got the notices %v", got)
	}
	for _, m := range []sharer{b, a} { // the file of another machine's claim must be rewritten
		file := filepath.Join(m.p.Dir(), format.ClaimPath("app/**", "Ann", ""))
		if err := errors.Join(os.Remove(file), m.p.Rescan(t.Context())); err != nil {
			t.Fatal(err)
		}
		m.now(t)
		if got := b.held(t); m.p == b.p && got != "Ann app/**, Bob free" {
			t.Errorf("held: %s", got)
		}
	}
	edited := filepath.Join(a.p.Dir(), format.ClaimPath("free", "Bob", ""))
	if err := errors.Join(os.WriteFile(edited, []byte("{"), 0o600), a.p.Rescan(t.Context())); err != nil {
		t.Fatal(err)
	}
	b.now(t)
	a.now(t)
	for _, m := range []sharer{a, b} {
		if got := m.held(t); got != "Bob free" {
			t.Errorf("held: %s", got)
		}
	}
	b.rewrite(t, "free", func(c *format.Claim) { c.Expires = time.Now().UTC().Add(-time.Minute) })
	b.now(t)
	a.now(t)
	for _, m := range []sharer{a, b} {
		if got := m.held(t); got != "" {
			t.Errorf("held: %s", got)
		}
	}
}

// claimFile returns the claim on a pattern, as stored in the claim's file.
func (m sharer) claimFile(t testing.TB, pattern string) claim.Row {
	t.Helper()
	files, bad, err := claim.Files(maildir.TreeOf(m.p), func(r *claim.Row) bool { return r.Pattern == pattern })
	if err != nil || len(bad) > 0 || len(files) != 1 {
		t.Fatal(files, bad, err)
	}
	return files[0]
}

// rewrite changes the file of the claim on a pattern, as a user would.
func (m sharer) rewrite(t testing.TB, pattern string, change func(*format.Claim)) {
	t.Helper()
	f := m.claimFile(t, pattern)
	change(&f.Claim)
	data := format.FormatClaim(f.Claim, nil)
	if err := errors.Join(os.WriteFile(filepath.Join(m.p.Dir(), f.Path), data, 0o600), m.p.Rescan(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// TestClaimsBefore checks that claims are added to the shared list even if they were made before sync was turned on,
// or while it was off.
func TestClaimsBefore(t *testing.T) {
	t.Parallel()
	a, b := sharedByTwo(t)
	if err := a.p.Sync.Set(false); err != nil {
		t.Fatal(err)
	}
	if by := a.claims(t, "Ann", "one"); by != "" {
		t.Errorf("held by %s", by)
	}
	if by := b.claims(t, "Bob", "two"); by != "" {
		t.Errorf("held by %s", by)
	}
	if err := a.p.Sync.Set(true); err != nil {
		t.Fatal(err)
	}
	level(t, a, b)
	for _, m := range []sharer{a, b} {
		if got := m.held(t); got != "Ann one, Bob two" {
			t.Errorf("held: %s", got)
		}
	}
	gitIn(t, a.p.Dir(), "push", "-q", "origin", ":refs/mailtree/claims") // as if the repository had been recreated
	level(t, a, b)
	level(t, a, b)
	for _, m := range []sharer{a, b} {
		if got := m.held(t); got != "Ann one, Bob two" {
			t.Errorf("held: %s", got)
		}
	}
}

// TestClaimsOutOfReach checks claims made while the shared repository cannot be reached. Depending on the setting,
// these claims must be refused, or be valid only on the machine where they were made. If such a claim later conflicts
// with an earlier one, its holder must get a notice.
func TestClaimsOutOfReach(t *testing.T) {
	t.Parallel()
	a, b, bare := sharedWith(t, storetest.Config{ClaimAlone: true})
	leads := func(m sharer, to string) { gitIn(t, m.p.Dir(), "remote", "set-url", "origin", to) }
	leads(a, bare+".away")
	leads(b, bare+".away")
	if res, err := a.p.Box("Ann", format.Origin{}).Claim(t.Context(), claim.Request{Patterns: []string{"app"}}); !errors.Is(err, maildir.ErrUnavailable) {
		t.Errorf("granted %+v, %v", res, err)
	}
	if got := a.held(t); got != "" {
		t.Errorf("held: %s", got)
	}
	res, err := b.p.Box("Bob", format.Origin{}).Claim(t.Context(), claim.Request{Patterns: []string{"app", "lib"}})
	if err != nil || len(res.Granted) != 2 || res.Alone == "" {
		t.Errorf("granted %+v, %v", res, err)
	}
	leads(a, bare)
	if by := a.claims(t, "Ann", "app/main.go"); by != "" {
		t.Errorf("held by %s", by)
	}
	leads(b, bare)
	b.now(t)
	level(t, a, b)
	for _, m := range []sharer{a, b} {
		if got := m.held(t); got != "Ann app/main.go, Bob lib" {
			t.Errorf("held: %s", got)
		}
	}
	if got := b.subjects(t, "Bob"); fmt.Sprint(got) != "[Your claim is not valid: app]" {
		t.Errorf("Bob got the notices %v", got)
	}
}

// TestClaimsUnsure checks that if the server does not know whether a push succeeded, it reads the shared list. If the
// list cannot be read either, the error must tell the agent that it may hold the claim.
func TestClaimsUnsure(t *testing.T) {
	t.Parallel()
	bare, all := shared(t, 1, onlyAsked)
	a := all[0]
	a.register(t, "Ann")
	a.now(t)
	hook := filepath.Join(bare, "hooks", "post-receive")
	dies := func(before string) { // simulates a remote side that dies after it has accepted the push
		if err := errors.Join(os.MkdirAll(filepath.Dir(hook), 0o700),
			os.WriteFile(hook, []byte("#!/bin/sh\n"+before+"\nkill -9 $PPID\n"), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	dies("rm hooks/post-receive")
	if by := a.claims(t, "Ann", "app"); by != "" {
		t.Errorf("refused by %q", by)
	}
	away := bare + ".away"
	dies("mv '" + bare + "' '" + away + "'")
	_, err := a.p.Box("Ann", format.Origin{}).Claim(t.Context(), claim.Request{Patterns: []string{"lib"}})
	if !errors.Is(err, maildir.ErrUnavailable) || !strings.Contains(err.Error(), "may or may not have received the claim") {
		t.Errorf("claimed: %v", err)
	}
	if err := errors.Join(os.Rename(away, bare), os.Remove(hook)); err != nil {
		t.Fatal(err)
	}
	a.now(t)
	if got := a.held(t); got != "Ann app, Ann lib" {
		t.Errorf("held: %s", got)
	}
}

// TestClaimsEnd checks that another machine's claim expires one minute after the end of its lease. The lease must
// start when this machine first sees the claim. The wall clocks of the machines must not matter.
func TestClaimsEnd(t *testing.T) {
	t.Parallel()
	clock := &movable{stopped: time.Now()}
	a, b, _ := sharedWith(t, storetest.Config{Monotonic: clock.now, Now: func() time.Time { return time.Now().Add(time.Hour) }})
	if _, err := a.p.Box("Ann", format.Origin{}).Claim(t.Context(), claim.Request{Patterns: []string{"app"}, TTL: 10 * time.Minute}); err != nil {
		t.Fatal(err)
	}
	b.now(t) // according to b's clock, the claim expired 50 minutes ago
	clock.move(10*time.Minute + 59*time.Second)
	if by := b.claims(t, "Bob", "app"); by != "Ann" {
		t.Errorf("refused by %q", by)
	}
	clock.move(time.Second)
	if by := b.claims(t, "Bob", "app"); by != "" {
		t.Errorf("the claim has not expired, but the refusal names %q as its holder", by)
	}
	a.now(t)
	if got := a.held(t); got != "Bob app" {
		t.Errorf("held: %s", got)
	}
}

// TestClaimsRenewed checks that a renewal with the same duration restarts the lease on other machines.
func TestClaimsRenewed(t *testing.T) {
	t.Parallel()
	clock := &movable{stopped: time.Now()}
	a, b, _ := sharedWith(t, storetest.Config{Monotonic: clock.now})
	for range 2 {
		clock.move(9 * time.Minute)
		if _, err := a.p.Box("Ann", format.Origin{}).Claim(t.Context(), claim.Request{Patterns: []string{"app"}, TTL: 10 * time.Minute}); err != nil {
			t.Fatal(err)
		}
		b.now(t)
	}
	clock.move(9 * time.Minute)
	if by := b.claims(t, "Bob", "app"); by != "Ann" {
		t.Errorf("refused by %q", by)
	}
	b.claims(t, "Bob", "lib")
	clock.move(24 * time.Hour)
	b.now(t)
	if got, told := b.held(t), b.subjects(t, "Bob"); got != "" || len(told) > 0 { // expired claims cause no notice
		t.Errorf("held: %s; Bob got the notices %v", got, told)
	}
}

// TestClaimsRestarted checks that a machine's own claim expires at the time in its file, even after a restart, and that
// the restart pushes nothing.
func TestClaimsRestarted(t *testing.T) {
	t.Parallel()
	config := storetest.Config{Root: t.TempDir(), Sync: onlyAsked}
	_, b, bare := sharedWith(t, config)
	b.claims(t, "Bob", "app")
	b.now(t)
	end, list := b.claimFile(t, "app").Expires, gitIn(t, bare, "rev-parse", "refs/mailtree/claims")
	b.Stop()
	config.Now = func() time.Time { return time.Now().Add(10 * time.Minute) }
	b.Store = storetest.Open(t, config)
	var err error
	if b.p, err = b.Project(t.Context(), "/abs/path/b"); err != nil {
		t.Fatal(err)
	}
	b.now(t)
	if got := b.claimFile(t, "app").Expires; !got.Equal(end) {
		t.Errorf("the claim ends at %v, not at %v", got, end)
	}
	if now := gitIn(t, bare, "rev-parse", "refs/mailtree/claims"); now != list {
		t.Error("the restart has changed the list")
	}
}

// TestClaimsContested checks that exactly one claim is granted when agents on several machines claim the same path at
// the same time, even if one machine's clock is an hour off.
func TestClaimsContested(t *testing.T) {
	t.Parallel()
	bare, all := shared(t, 2, onlyAsked)
	late := sharer{Store: storetest.Open(t, storetest.Config{Sync: onlyAsked, Now: func() time.Time { return time.Now().Add(time.Hour) }})}
	var err error
	if late.p, err = late.Join(t.Context(), bare, "/abs/path/late"); err != nil {
		t.Fatal(err)
	}
	all = append(all, late)
	for i, m := range all {
		m.register(t, fmt.Sprint("Agent", i))
	}
	level(t, all...)
	won := make([]int, len(all))
	for n := range 8 {
		var asking sync.WaitGroup
		holders := make([]string, len(all))
		for i, m := range all {
			asking.Go(func() { holders[i] = m.claims(t, fmt.Sprint("Agent", i), fmt.Sprintf("path%d/**", n)) })
		}
		asking.Wait()
		winner := slices.Index(holders, "")
		for i, by := range holders {
			if winner < 0 || i != winner && by != fmt.Sprint("Agent", winner) {
				t.Fatalf("contest %d: %q", n, holders)
			}
		}
		won[winner]++
	}
	t.Logf("won: %v", won)
	level(t, all...)
	for _, m := range all[1:] {
		if m.held(t) != all[0].held(t) {
			t.Errorf("held: %s, elsewhere %s", m.held(t), all[0].held(t))
		}
	}
}

// TestClaimsHostile checks that an invalid entry in the shared list has no effect, and that the next claim removes
// it. If the list cannot be read, claims must be refused with an error that says so, but mail must still work.
func TestClaimsHostile(t *testing.T) {
	t.Parallel()
	a, b := sharedByTwo(t)
	a.claims(t, "Ann", "app")
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return gitIn(t, a.p.Dir(), "hash-object", "-w", name)
	}
	list := func(lines ...string) string {
		scratch := "alias.scratch=!GIT_INDEX_FILE=" + filepath.Join(t.TempDir(), "index") + " git"
		for _, line := range lines {
			gitIn(t, a.p.Dir(), "-c", scratch, "scratch", "update-index", "--add", "--cacheinfo", line)
		}
		return gitIn(t, a.p.Dir(), "-c", scratch, "scratch", "write-tree")
	}
	lease := `{"path": "lib", "agent": "Eve", "created": "2026-11-20T10:00:00Z", "seconds": 3600, "machine": "00"}`
	hostile := list("100644,"+file(lease)+",ok.json", "100644,"+file(lease)+",..%2F..%2F..%2Fout.json", "100644,"+file(lease)+",.git%2Fhooks%2Fx.json",
		"100644,"+file(lease)+",note.md", "120000,"+file("/etc/passwd")+",link.json", "100755,"+file(lease)+",run.json", "100644,"+file("{")+",bad.json",
		"100644,"+file(strings.Repeat(" ", format.MaxSmall)+lease)+",long.json", "100644,"+file(lease)+",deep/x.json", "100644,"+file(lease)+",%zz.json")
	gitIn(t, a.p.Dir(), "push", "-qf", "origin", hostile+":refs/mailtree/claims")
	level(t, a, b)
	level(t, a, b)
	if got := b.held(t); got != "Ann app, Eve lib" {
		t.Errorf("held: %s", got)
	}
	if by := b.claims(t, "Bob", "lib/x"); by != "Eve" {
		t.Errorf("held by %s", by)
	}
	if by := b.claims(t, "Bob", "doc"); by != "" {
		t.Errorf("held by %s", by)
	}
	names := strings.Fields(gitIn(t, b.p.Dir(), "ls-tree", "--name-only", "refs/mailtree/claims"))
	if len(names) != 4 || !slices.Contains(names, "README") {
		t.Errorf("the list has %v", names)
	}
	for _, m := range []sharer{a, b} {
		if got, _ := filepath.Glob(filepath.Join(m.Root(), "*out.json")); len(got) > 0 {
			t.Error(got)
		}
	}

	gitIn(t, a.p.Dir(), "push", "-qf", "origin", file("a list")+":refs/mailtree/claims")
	b.send(t, "Bob", "Ann", "one")
	for _, m := range []sharer{b, a} {
		if _, err := m.p.Sync.Now(t.Context()); err == nil {
			t.Error("a list that cannot be read is not reported as a problem")
		}
	}
	if got := a.subjects(t, "Ann"); fmt.Sprint(got) != "[one]" {
		t.Errorf("Ann has %v", got)
	}
	if res, err := a.p.Box("Ann", format.Origin{}).Claim(t.Context(), claim.Request{Patterns: []string{"x"}}); !errors.Is(err, maildir.ErrUnavailable) {
		t.Errorf("granted %+v, %v", res, err)
	}
	gitIn(t, a.p.Dir(), "push", "-q", "origin", ":refs/mailtree/claims")
	level(t, a, b)
	level(t, a, b)
	if got := b.held(t); got != "Ann app, Bob doc, Eve lib" {
		t.Errorf("held: %s", got)
	}
}

// TestClaimsOfNamesakes checks that two agents with the same name are treated as different agents until their machines
// have merged their mail. Another machine's agent must not be able to claim paths on this machine. A user's agent must
// be the same agent on all machines.
func TestClaimsOfNamesakes(t *testing.T) {
	t.Parallel()
	a, b := sharedByTwo(t)
	a.register(t, "Twin")
	b.register(t, "Twin")
	for _, m := range []sharer{a, b} {
		if _, _, err := m.p.Agents.Person(t.Context(), "pat"); err != nil {
			t.Fatal(err)
		}
	}
	if by := a.claims(t, "Twin", "app"); by != "" {
		t.Errorf("held by %s", by)
	}
	if by := b.claims(t, "Twin", "app/x.go"); by != "Twin" {
		t.Errorf("held by %q", by)
	}
	if by := a.claims(t, "pat", "doc"); by != "" {
		t.Errorf("held by %s", by)
	}
	if by := b.claims(t, "pat", "doc"); by != "" {
		t.Errorf("held by %s", by)
	}
	if res, err := b.p.Box("Ann", format.Origin{}).Claim(t.Context(), claim.Request{Patterns: []string{"x"}}); !errors.Is(err, maildir.ErrConflict) {
		t.Errorf("granted %+v, %v", res, err)
	}
	level(t, a, b)
	level(t, a, b)
	for _, m := range []sharer{a, b} {
		if got := m.held(t); got != "Twin app, pat doc" {
			t.Errorf("held: %s", got)
		}
	}
	b.writeClaim(t, "Twin", "lib") // the agent that was called Twin on b has a new name
	level(t, a, b)
	if list := gitIn(t, a.p.Dir(), "ls-tree", "--name-only", "refs/mailtree/claims"); !strings.Contains(list, "-Twin.json") {
		t.Errorf("the list has %s", list)
	}
}

// TestClaimsBlockedMark checks that a folder at the path of a claim's release mark does not affect other claims.
func TestClaimsBlockedMark(t *testing.T) {
	t.Parallel()
	a, b := sharedByTwo(t)
	a.claims(t, "Ann", "app")
	level(t, a, b)
	mark := filepath.Join(b.p.Dir(), format.ReleasedMark(format.ClaimPath("app", "Ann", "")))
	if err := os.Mkdir(mark, 0o700); err != nil {
		t.Fatal(err)
	}
	a.release(t, "Ann", "app")
	a.claims(t, "Ann", "lib")
	level(t, a, b)
	if got := b.held(t); got != "Ann app, Ann lib" {
		t.Errorf("held: %s", got)
	}
}
