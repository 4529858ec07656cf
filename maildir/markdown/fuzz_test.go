package markdown

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/rogpeppe/go-internal/txtar"
)

// FuzzRead checks that no body causes a panic or a result that exceeds the limits. It also checks that Render succeeds
// for each small body. If Render fails for such a body, goldmark has panicked.
func FuzzRead(f *testing.F) {
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
		checkText(t, FirstHeading(body), headingRunes)
		checkText(t, PlainText(body), textRunes)
		if _, ok := Render(body); !ok && len(body) < 2000 {
			t.Error("a small body is not rendered")
		}
		text, ok := narrow().Render(body)
		if !ok && len(body) < 2000 || strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }) {
			t.Errorf("for a terminal: %q", text)
		}
	})
}
