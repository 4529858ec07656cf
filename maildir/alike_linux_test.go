package maildir_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/tree"
)

// TestWrittenInto checks that the server detects a change to a file even if the file's size and times look unchanged.
// A program writes to the file while the server renames it into place, and then sets the file's time back. The server
// must detect this by comparing the content, even if the watcher has lost the event or the first write to the index
// fails.
func TestWrittenInto(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		watcher, refused bool
		report           func(p *maildir.Project, path string)
	}{
		"watched":  {watcher: true, report: func(*maildir.Project, string) {}},
		"lost":     {report: func(p *maildir.Project, _ string) { p.Edited(nil, true) }},
		"refused":  {report: func(p *maildir.Project, path string) { p.Edited([]string{path}, false) }, refused: true},
		"reported": {report: func(p *maildir.Project, path string) { p.Edited([]string{path}, false) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var h halts
			var refuse atomic.Bool
			p := project(t, storetest.Config{Step: h.pass, NoWatcher: !c.watcher, Index: func(x index.Index) index.Index {
				return refusing{x, &refuse}
			}}, "Ann", "Bob")
			renamed := h.at(isStep("sync renamed"))
			sent := make(chan error, 1)
			go func() {
				d := maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "the xtext of Ann"}
				_, err := p.Box("Ann", format.Origin{}).Send(t.Context(), d)
				sent <- err
			}()
			<-renamed.reached
			file := overwrite(t, p.Dir())
			close(renamed.goOn)
			if err := <-sent; err != nil {
				t.Fatal(err)
			}
			refuse.Store(c.refused)
			c.report(p, file)
			until(t, "the words are found", func() bool {
				found, err := p.Search(t.Context(), maildir.SearchRequest{Text: "words", Limit: 1})
				return err == nil && len(found.Hits) == 1
			})
		})
	}
}

// refusing is an index whose next Ingest fails if refuse is set. The failing call clears refuse.
type refusing struct {
	index.Index
	refuse *atomic.Bool
}

func (r refusing) Ingest(ctx context.Context, project string, paths []string, written map[string]tree.Written) (index.Ingested, error) {
	if r.refuse.CompareAndSwap(true, false) {
		return index.Ingested{}, errors.New("the index is broken")
	}
	return r.Index.Ingest(ctx, project, paths, written)
}

// overwrite replaces the text of the only message below dir, and sets the file's time back. It returns the file's path.
func overwrite(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "messages/*/*/*/*.md"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v %v", files, err)
	}
	fi, err := os.Stat(files[0])
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(files[0], os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteAt([]byte("words"), int64(bytes.Index(data, []byte("xtext"))))
		f.Close()
	}
	if err == nil {
		err = os.Chtimes(files[0], fi.ModTime(), fi.ModTime())
	}
	if err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Rel(dir, files[0])
	if err != nil {
		t.Fatal(err)
	}
	return path
}
