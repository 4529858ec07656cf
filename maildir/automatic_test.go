package maildir_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/maildir/claim"
	"mailtree/maildir/refusal"
)

// TestClaimEdited: what an agent edits is claimed for ten minutes, renewed when less than five are
// left, and given back; claims that were asked for stay as they are.
func TestClaimEdited(t *testing.T) {
	t.Parallel()
	var clock atomic.Int64
	start := time.Now()
	now := func() time.Time { return start.Add(time.Duration(clock.Load())) }
	p := project(t, storetest.Config{NoWatcher: true, Now: now}, "BlueLake", "GreenCastle")
	if _, err := p.Claim(t.Context(), claim.Request{Agent: "GreenCastle", Patterns: []string{"docs"}, Reason: "manual"}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Claim(t.Context(), claim.Request{Agent: "BlueLake", Patterns: []string{"app"}}); err != nil {
		t.Fatal(err)
	}
	edit := func(files ...string) {
		t.Helper()
		for i, f := range files {
			files[i] = shop + "/" + f
		}
		if err := p.ClaimEdited(t.Context(), "BlueLake", files); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want string) {
		t.Helper()
		rows, err := p.Claims(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, r := range rows {
			if r.Agent == "BlueLake" {
				all = append(all, fmt.Sprintf("%s %.0f", r.Pattern, r.Expires.Sub(now()).Minutes()))
			}
		}
		slices.Sort(all)
		if got := strings.Join(all, ", "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	edit("docs/a.md", "app/a.go", "a b/[x].go", "../elsewhere.go")
	check(`a b/\[x\].go 10, app 60`)
	clock.Add(int64(4 * time.Minute))
	edit("a b/[x].go")
	check(`a b/\[x\].go 6, app 56`)
	clock.Add(int64(2 * time.Minute))
	edit()
	check(`a b/\[x\].go 10, app 54`)
	clock.Add(int64(11 * time.Minute))
	edit("app/a.go")
	check(`app 43`)
	edit("b.go", "c.go")
	check(`app 43, b.go 10, c.go 10`)
	for range 2 {
		if err := p.ReleaseEdited(t.Context(), "BlueLake"); err != nil {
			t.Fatal(err)
		}
		check(`app 43`)
	}
	if err := p.ClaimEdited(t.Context(), "Nobody", []string{shop + "/d.go"}); refusal.Code(err) != "not_found" {
		t.Errorf("got %v", err)
	}
}
