package claim

import (
	"strings"
	"testing"

	"mailtree/maildir/format"
)

// TestNewRelease checks that a claim can be released by the text that was used to request it, even if the folder with
// brackets in its name no longer exists.
func TestNewRelease(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ held, text, normalized, released, notHeld string }{
		{`a b`, `a`, `a`, `a`, ``},
		{`a b`, ``, ``, `a b`, ``},
		{`a`, `c`, `c`, ``, `c`},
		{`app/\[id\]/**`, `app/[id]/**`, `app/\[id\]/**`, `app/\[id\]/**`, ``},
		{`app/\[id\]/**`, `app/[id]/**`, `app/[id]/**`, `app/\[id\]/**`, ``},
		{`app/\[id\]/** app/[id]/**`, `app/[id]/**`, `app/[id]/**`, `app/[id]/**`, ``},
		{`src/*/**`, `src/*/`, `src/*/**`, `src/*/**`, ``},
		{`src/*`, `src/*/`, `src/*/**`, ``, `src/*/**`},
		{`docs/d.md`, `.wt/foo/docs/d.md`, `docs/d.md`, `docs/d.md`, ``},
		{`.wt/foo/docs/d.md`, `.wt/foo/docs/d.md`, `docs/d.md`, `.wt/foo/docs/d.md`, ``}, // claimed by an earlier version
	} {
		var held []Row
		for _, p := range strings.Fields(c.held) {
			held = append(held, Row{Claim: format.Claim{Pattern: p}})
		}
		r := NewRelease(held, strings.Fields(c.text), map[string][]string{c.text: strings.Fields(c.normalized)})
		var released []string
		for _, row := range r.Released {
			released = append(released, row.Pattern)
		}
		if got, not := strings.Join(released, " "), strings.Join(r.NotHeld, " "); got != c.released || not != c.notHeld {
			t.Errorf("%q of %q: released %q, not held %q", c.text, c.held, got, not)
		}
	}
}
