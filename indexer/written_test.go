package indexer

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"mailtree/maildir/tree"
)

// TestWrittenIsProven checks that a starting server does not reread a file that it wrote before, unless the file's
// times show that another program may have changed it since.
func TestWrittenIsProven(t *testing.T) {
	t.Parallel()
	const path, data = "agents/Ann/profile.json", `{"name": "Ann"}`
	dir := t.TempDir()
	tr := openTree(t, dir)
	x := openIndex(t)
	attach(t, x, "p", tr)
	at := filepath.Join(dir, path)
	differing := func() bool {
		paths, err := x.Differing(t.Context(), "p")
		if err != nil {
			t.Fatal(err)
		}
		return slices.Contains(paths, path)
	}
	putFile(t, dir, path, data)
	was := time.Now().Add(-time.Second)
	if err := os.Chtimes(at, was, was); err != nil { // simulate a file that was staged before it was renamed
		t.Fatal(err)
	}
	st, err := tr.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	written := map[string]tree.Written{path: {Data: []byte(data), Stat: st}}
	if _, err := x.Ingest(t.Context(), "p", []string{path}, written); err != nil {
		t.Fatal(err)
	}
	if differing() {
		t.Error("the file would be reread")
	}
	f, err := os.OpenFile(at, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteAt([]byte("Bob"), 10) // the same length as the name that it replaces
	}
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if !differing() {
		t.Error("a write by another program was not noticed")
	}
	ingest(t, x, "p", path)
	if st, err = tr.Stat(path); err != nil {
		t.Fatal(err)
	}
	st.MTime = st.CTime // simulate a file that was staged and renamed in the same clock tick
	written[path] = tree.Written{Data: []byte(data), Stat: st}
	if _, err := x.Ingest(t.Context(), "p", []string{path}, written); err != nil {
		t.Fatal(err)
	}
	if !differing() {
		t.Error("times that leave room for another write were treated as proof")
	}
	ingest(t, x, "p", path)
	verify(t, x, map[string]*tree.Tree{"p": tr})
}
