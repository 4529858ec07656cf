package maildir_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
)

// TestStops checks that after a claim is refused, the agent is listed as stopped while the conflicting claim is live,
// but for no more than a day. A later refusal because of another claim must not replace the earlier one. A refusal
// must also remove old records and invalid files.
func TestStops(t *testing.T) {
	t.Parallel()
	var jump atomic.Int64
	p := project(t, storetest.Config{Now: func() time.Time { return time.Now().Add(time.Duration(jump.Load())) }}, "Ann", "Bob")
	claims := func(agent string, r claim.Request) {
		t.Helper()
		r.Agent = agent
		if _, err := p.Box(r.Agent, format.Origin{}).Claim(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	stops := func(want string) {
		t.Helper()
		all, err := p.Claims.Stops(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, s := range all {
			got += s.Agent + " " + s.Doing
			for _, by := range s.By {
				got += fmt.Sprint(" ", by.Claim.Pattern, by.Paths)
			}
		}
		if got != want {
			t.Errorf("stopped is %q, not %q", got, want)
		}
	}
	dir := filepath.Join(p.Dir(), filepath.FromSlash(format.StoppedDir))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	earlier := fmt.Sprintf(`{"at": %q, "agent": "Bob", "doing": "claim", "by": []}`, time.Now().Format(time.RFC3339))
	if err := os.WriteFile(filepath.Join(dir, "claim-Bob"), []byte(earlier), 0o600); err != nil {
		t.Fatal(err)
	}
	files := func(want int) {
		t.Helper()
		if all, err := os.ReadDir(dir); err != nil || len(all) != want {
			t.Errorf("%d files of stops instead of %d: %v %v", len(all), want, all, err)
		}
	}
	week := 7 * 24 * time.Hour
	claims("Ann", claim.Request{Patterns: []string{"app", "doc", "web"}, TTL: week})
	claims("Bob", claim.Request{Patterns: []string{"app/a"}, DryRun: true})
	stops("")
	claims("Bob", claim.Request{Patterns: []string{"app/a", "app/b", "doc/x", "free"}})
	stops("Bob claim app[app/a app/b] doc[doc/x]")
	files(2)
	claims("Bob", claim.Request{Patterns: []string{"web/y"}})
	stops("Bob claim web[web/y]Bob claim app[app/a app/b] doc[doc/x]")
	if _, err := p.Box("Ann", format.Origin{}).Release(t.Context(), []string{"app", "web"}); err != nil {
		t.Fatal(err)
	}
	stops("Bob claim doc[doc/x]")
	claims("Ann", claim.Request{Patterns: []string{"app"}, TTL: week})
	stops("Bob claim doc[doc/x]")
	jump.Store(int64(25 * time.Hour))
	stops("")
	files(3)
	claims("Bob", claim.Request{Patterns: []string{"app/c"}})
	stops("Bob claim app[app/c]")
	files(1)
}
