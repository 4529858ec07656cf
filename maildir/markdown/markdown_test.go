package markdown

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the wanted parts of testdata/*.txtar")

// TestFixtures checks the results for each file testdata/*.txtar. In the file, body.md is the input, and heading.txt
// and plain.txt are the expected results of FirstHeading and PlainText.
func TestFixtures(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			fixture(t, path)
		})
	}
}

func fixture(t *testing.T, path string) {
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	body := string(part(archive, "body.md"))
	if *update {
		setPart(archive, "heading.txt", []byte(FirstHeading(body)+"\n"))
		setPart(archive, "plain.txt", []byte(PlainText(body)+"\n"))
		if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	compare(t, "FirstHeading", line(archive, "heading.txt"), FirstHeading(body))
	compare(t, "PlainText", line(archive, "plain.txt"), PlainText(body))
}

func compare(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func part(a *txtar.Archive, name string) []byte {
	for _, f := range a.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

func line(a *txtar.Archive, name string) string {
	return strings.TrimSuffix(string(part(a, name)), "\n")
}

func setPart(a *txtar.Archive, name string, data []byte) {
	for i := range a.Files {
		if a.Files[i].Name == name {
			a.Files[i].Data = data
			return
		}
	}
	a.Files = append(a.Files, txtar.File{Name: name, Data: data})
}
