package markdown

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the wanted parts of testdata/*.txtar")

// TestFixtures runs each testdata/*.txtar: body.md is the input, outline.json
// what Parse makes of it (fields that are zero are left out), heading.txt and
// plain.txt what FirstHeading and PlainText do.
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
	got := NewParser().Parse(t.Context(), body)
	if *update {
		setPart(archive, "outline.json", encode(t, got))
		setPart(archive, "heading.txt", []byte(FirstHeading(body)+"\n"))
		setPart(archive, "plain.txt", []byte(PlainText(body)+"\n"))
		if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	var want Outline
	decoder := json.NewDecoder(bytes.NewReader(part(archive, "outline.json")))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&want); err != nil {
		t.Fatalf("outline.json: %v", err)
	}
	compare(t, "Parse", want, got)
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

// encode writes an outline without its zero fields, keys in alphabetical order.
func encode(t *testing.T, o Outline) []byte {
	t.Helper()
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	fields := make(map[string]any)
	if err := json.Unmarshal(data, &fields); err != nil {
		t.Fatal(err)
	}
	for key, value := range fields {
		if value == nil || value == false {
			delete(fields, key)
		}
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(fields); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
