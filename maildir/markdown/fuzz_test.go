package markdown

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// FuzzParse: no body makes anything panic, go out of bounds, or answer twice
// differently; a small body is read whole (it would not be, had goldmark
// panicked).
func FuzzParse(f *testing.F) {
	bodies := hostile(300)
	for _, name := range slices.Sorted(maps.Keys(bodies)) {
		f.Add(bodies[name])
	}
	paths, _ := filepath.Glob("testdata/*.txtar")
	for _, path := range paths {
		if data, err := os.ReadFile(path); err == nil {
			f.Add(string(part(txtar.Parse(data), "body.md")))
		}
	}
	f.Fuzz(func(t *testing.T, body string) {
		got := NewParser().Parse(t.Context(), body)
		checkOutline(t, got)
		if got.Truncated && len(body) < 2000 {
			t.Error("a small body is Truncated")
		}
		if again := NewParser().Parse(t.Context(), body); !got.Truncated && !cmp.Equal(got, again) {
			t.Error(cmp.Diff(got, again))
		}
		checkText(t, FirstHeading(body), headingRunes)
		checkText(t, PlainText(body), textRunes)
	})
}
