package indexer

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"mailtree/maildir/tree"
)

var update = flag.Bool("update", false, "rewrite the expected dumps in testdata")

// TestRules runs the scripts in testdata/*.txtar. In a script, "tree/P" is a file that exists from the start. "step
// N/P" is a file that is written at step N, or removed if the content is "(gone)". "want N" is the dump after step N,
// without the rows of files and folders and the rows named sent. A message may be written in short form: "from to,to
// created subject | body".
func TestRules(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal("no scenarios", err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			playRules(t, name)
		})
	}
}

func playRules(t *testing.T, name string) {
	a, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	tr := openTree(t, dir)
	x := openIndex(t)
	attach(t, x, "p", tr)
	var paths []string
	for i, f := range a.Files {
		step, p, is := strings.Cut(f.Name, "/")
		if is && (step == "tree" || strings.HasPrefix(step, "step ")) {
			paths = append(paths, p)
			putFile(t, dir, p, string(f.Data))
			continue
		}
		ingest(t, x, "p", paths...)
		paths = nil
		verify(t, x, map[string]*tree.Tree{"p": tr})
		var got strings.Builder
		for l := range strings.Lines(dump(t, x)) {
			if !strings.HasPrefix(l, `["file"`) && !strings.HasPrefix(l, `["folder"`) && !strings.HasPrefix(l, `["sent"`) {
				got.WriteString(l)
			}
		}
		if *update {
			a.Files[i].Data = []byte(got.String())
		} else if got.String() != string(f.Data) {
			t.Errorf("%s: got\n%s\nwant\n%s", f.Name, got.String(), f.Data)
		}
	}
	if *update {
		if err := os.WriteFile(name, txtar.Format(a), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func putFile(t testing.TB, dir, p, data string) {
	t.Helper()
	at := filepath.Join(dir, p)
	if data == "(gone)\n" {
		if err := os.RemoveAll(at); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(data), 0o666); err != nil {
		t.Fatal(err)
	}
}
