package maildir_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
)

// TestStops checks that after a refused claim, an agent is listed as stopped while the conflicting claim is live, but
// for no more than a day. A later refusal because of another claim does not replace the earlier one.
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
	week := 7 * 24 * time.Hour
	claims("Ann", claim.Request{Patterns: []string{"app", "doc", "web"}, TTL: week})
	claims("Bob", claim.Request{Patterns: []string{"app/a"}, DryRun: true})
	stops("")
	claims("Bob", claim.Request{Patterns: []string{"app/a", "app/b", "doc/x", "free"}})
	stops("Bob claim app[app/a app/b] doc[doc/x]")
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
}
