package maildir_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
)

// TestWrittenInto checks that the server detects a change to a file even if the file's size and times look unchanged.
// A program writes to the file while the server renames it into place, and then sets the file's time back. The server
// must detect this by comparing the content.
func TestWrittenInto(t *testing.T) {
	t.Parallel()
	var h halts
	p := project(t, storetest.Config{Step: h.pass}, "Ann", "Bob")
	renamed := h.at(isStep("sync renamed"))
	sent := make(chan error, 1)
	go func() {
		_, err := p.Box("Ann", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "the xtext of Ann"})
		sent <- err
	}()
	<-renamed.reached
	files, err := filepath.Glob(filepath.Join(p.Dir(), "messages/*/*/*/*.md"))
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
		_, err = f.WriteAt([]byte("words"), int64(bytes.Index(data, []byte("xtext of"))))
	}
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := os.Chtimes(files[0], fi.ModTime(), fi.ModTime()); err != nil {
		t.Fatal(err)
	}
	close(renamed.goOn)
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	until(t, "the words are found", func() bool {
		found, err := p.Search(t.Context(), maildir.SearchRequest{Text: "words", Limit: 1})
		return err == nil && len(found.Hits) == 1
	})
}
