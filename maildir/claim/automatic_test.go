package claim

import (
	"strings"
	"testing"
	"time"

	"mailtree/maildir/format"
)

// TestForEdits: what an edit claims, and renews.
func TestForEdits(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	held := []Row{
		{Claim: format.Claim{Pattern: "docs", Exclusive: true, Reason: "mine", Expires: now.Add(time.Minute)}},
		{Claim: format.Claim{Pattern: "shared", Reason: "read", Expires: now.Add(time.Hour)}},
		{Claim: format.Claim{Pattern: "soon.go", Exclusive: true, Reason: AutomaticReason, Expires: now.Add(5*time.Minute - 1)}},
		{Claim: format.Claim{Pattern: "later.go", Exclusive: true, Reason: AutomaticReason, Expires: now.Add(5 * time.Minute)}},
	}
	for paths, want := range map[string]string{
		"":                          "soon.go",
		"docs/a.md":                 "soon.go",
		"soon.go later.go":          "soon.go",
		"Docs/a.md":                 "soon.go Docs/a.md",
		"shared/a.go new.go new.go": "soon.go shared/a.go new.go",
		"app/[id]/page{1}.tsx":      `soon.go app/\[id\]/page\{1\}.tsx`,
	} {
		if got := strings.Join(ForEdits(held, strings.Fields(paths), false, now), " "); got != want {
			t.Errorf("%s: got %s, want %s", paths, got, want)
		}
	}
	if got := ForEdits(held, []string{"Docs/a.md"}, true, now); len(got) != 1 {
		t.Errorf("whatever the case: got %v", got)
	}
	var many []string
	for range MaxPatterns + 1 {
		many = append(many, strings.Repeat("a", len(many)+1))
	}
	if got := ForEdits(nil, many, false, now); len(got) != MaxPatterns {
		t.Errorf("%d patterns", len(got))
	}
}
