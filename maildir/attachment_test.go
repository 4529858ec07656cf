package maildir_test

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/attachment"
	"mailtree/maildir/format"
)

// contentPath returns the path at which the tree stores an attached text file.
func contentPath(text string) string {
	sum := sha1.Sum([]byte(text))
	name := hex.EncodeToString(sum[:])
	return filepath.Join("attachments", name[:2], name+".txt")
}

// TestPlantedAttachment checks that a message is refused if a file with different content already exists at the
// attachment's path. The existing file must not be changed. Once that file is removed, the sender's attachment must be
// delivered.
func TestPlantedAttachment(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann", "Bob")
	tree := p.Dir()
	write := func(text string) func(string) error {
		return func(file string) error { return os.WriteFile(file, []byte(text), 0o600) }
	}
	for what, c := range map[string]struct {
		plant func(file string) error
		why   string
	}{
		"other bytes":  {write("bytes rehto"), "does not match the hash in its name"},
		"more bytes":   {write("other bytes\n"), "does not match the hash in its name"},
		"fewer bytes":  {write("fewer"), "does not match the hash in its name"},
		"no bytes":     {write(""), "does not match the hash in its name"},
		"a named pipe": {func(file string) error { return unix.Mkfifo(file, 0o600) }, "a named pipe"},
		"a folder":     {func(file string) error { return os.Mkdir(file, 0o700) }, "a folder"},
		"a link": {func(file string) error {
			return errors.Join(os.WriteFile(filepath.Join(tree, "elsewhere"), []byte("a link"), 0o600), os.Symlink("../../elsewhere", file))
		}, "a symbolic link"},
	} {
		t.Run(what, func(t *testing.T) {
			at := filepath.Join(tree, contentPath(what))
			if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), c.plant(at), write(what)(filepath.Join(tree, "mine.txt"))); err != nil {
				t.Fatal(err)
			}
			before, err := os.Lstat(at)
			if err != nil {
				t.Fatal(err)
			}
			d := maildir.Draft{To: []string{"Bob"}, Subject: what, Body: "b", Attachments: []string{"mine.txt"}}
			_, err = p.Box("Ann", format.Origin{}).Send(t.Context(), d)
			if !errors.Is(err, maildir.ErrConflict) || !strings.Contains(err.Error(), c.why) || !strings.Contains(err.Error(), contentPath(what)) {
				t.Errorf("got %v", err)
			}
			if after, err := os.Lstat(at); err != nil || !os.SameFile(before, after) || !after.ModTime().Equal(before.ModTime()) {
				t.Errorf("the planted file was changed: %v", err)
			}
			if err := os.Remove(at); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				sent := send(t, p, "Ann", d)
				if data, err := os.ReadFile(filepath.Join(tree, sent.Attachments[0].Path)); err != nil || string(data) != what {
					t.Errorf("%q, %v", data, err)
				}
			}
		})
	}
}

// TestPlantedShard is like TestPlantedAttachment, but one of the folders in the path has been replaced by something
// else.
func TestPlantedShard(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann")
	tree := p.Dir()
	shard := filepath.Join(tree, filepath.Dir(contentPath("mine")))
	if err := errors.Join(os.WriteFile(filepath.Join(tree, "mine.txt"), []byte("mine"), 0o600), os.Mkdir(filepath.Join(tree, "attachments"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, plant := range []func() error{
		func() error { return os.Symlink("..", shard) },
		func() error { return os.WriteFile(shard, nil, 0o600) },
	} {
		if err := plant(); err != nil {
			t.Fatal(err)
		}
		_, err := p.Box("Ann", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"Ann"}, Subject: "s", Body: "b", Attachments: []string{"mine.txt"}})
		if !errors.Is(err, maildir.ErrConflict) {
			t.Errorf("got %v", err)
		}
		if err := os.Remove(shard); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAttachmentPlantedMeanwhile is like TestPlantedAttachment, but the other file is created after the send is
// planned and before the send's files are renamed into place.
func TestAttachmentPlantedMeanwhile(t *testing.T) {
	t.Parallel()
	var h halts
	p := project(t, storetest.Config{NoWatcher: true, Step: h.pass}, "Ann", "Bob")
	tree := p.Dir()
	if err := os.WriteFile(filepath.Join(tree, "mine.txt"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	rename := h.at(func(step string) bool { return step == "rename "+contentPath("mine") })
	answer := make(chan error, 1)
	go func() {
		_, err := p.Box("Ann", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "b", Attachments: []string{"mine.txt"}})
		answer <- err
	}()
	<-rename.reached
	if err := os.WriteFile(filepath.Join(tree, contentPath("mine")), []byte("else"), 0o600); err != nil {
		t.Fatal(err)
	}
	close(rename.goOn)
	if err := <-answer; !errors.Is(err, maildir.ErrConflict) {
		t.Errorf("got %v", err)
	}
	if page := inbox(t, p, "Bob"); page.Total != 0 {
		t.Errorf("delivered: %+v", page)
	}
}

// TestForwardedAttachment checks that a message can forward an attachment by its path in the tree only if the content
// matches the hash in the path.
func TestForwardedAttachment(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann", "Bob")
	tree := p.Dir()
	if err := os.WriteFile(filepath.Join(tree, "mine.txt"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	first := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "b", Attachments: []string{"mine.txt"}})
	at := first.Attachments[0].Path
	for _, name := range []string{at, filepath.Join(tree, at)} {
		forward := maildir.Draft{To: []string{"Ann"}, Subject: "s", Body: "b", Attachments: []string{name}}
		if sent := send(t, p, "Bob", forward); sent.Attachments[0].Path != at {
			t.Errorf("%+v", sent.Attachments)
		}
		if err := os.WriteFile(filepath.Join(tree, at), []byte("else"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Box("Bob", format.Origin{}).Send(t.Context(), forward); !errors.Is(err, maildir.ErrConflict) || !strings.Contains(err.Error(), "does not match the hash in its name") {
			t.Errorf("%s: got %v", name, err)
		}
		if err := os.WriteFile(filepath.Join(tree, at), []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAttachedTwice checks that two attachments with the same content share one file in the tree.
func TestAttachedTwice(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann")
	for _, name := range []string{"one.txt", "two.txt"} {
		if err := os.WriteFile(filepath.Join(p.Dir(), name), []byte("the same"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, files := range [][]string{{"one.txt", "two.txt"}, {"one.txt, two.txt"}, {"one.txt\ntwo.txt"}} {
		sent := send(t, p, "Ann", maildir.Draft{To: []string{"Ann"}, Subject: "s", Body: "b", Attachments: files})
		if l := sent.Attachments; len(l) != 2 || l[0].Path != l[1].Path || l[0].Name != "one.txt" || l[1].Name != "two.txt" {
			t.Errorf("%q: %+v", files, l)
		}
	}
}

// TestAttachmentWithComma checks that a file name containing a comma is not treated as a list. A list may end with a
// comma. If any file in a list does not exist, the whole list must be refused.
func TestAttachmentWithComma(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann")
	if err := os.WriteFile(filepath.Join(p.Dir(), "a, b.txt"), []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	draft := maildir.Draft{To: []string{"Ann"}, Subject: "s", Body: "b", Attachments: []string{"a, b.txt"}}
	if l := send(t, p, "Ann", draft).Attachments; len(l) != 1 || l[0].Name != "a, b.txt" {
		t.Errorf("%+v", l)
	}
	for list, want := range map[string]int{"project.json,": 1, " , project.json, project.json\n": 2, "project.json; project.json;": 2} {
		draft.Attachments = []string{list}
		if l := send(t, p, "Ann", draft).Attachments; len(l) != want {
			t.Errorf("%q: %+v", list, l)
		}
	}
	draft.Attachments = []string{"project.json, c.txt"}
	if _, err := p.Box("Ann", format.Origin{}).Send(t.Context(), draft); !errors.Is(err, maildir.ErrNotFound) || !strings.Contains(err.Error(), `"c.txt"`) {
		t.Errorf("got %v", err)
	}
	draft.Attachments = []string{strings.Repeat("project.json,", 51)}
	if _, err := p.Box("Ann", format.Origin{}).Send(t.Context(), draft); !errors.Is(err, maildir.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
}

// TestAttachmentTooLarge checks that the refusal says whether a single file is too large or the files together are too
// large.
func TestAttachmentTooLarge(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true, Attachments: attachment.Settings{MaxFile: 1000, MaxTotal: 1500}}, "Ann")
	for name, size := range map[string]int{"large": 1001, "one": 900, "two": 901} {
		if err := os.WriteFile(filepath.Join(p.Dir(), name), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		files []string
		want  string
	}{
		{[]string{"large"}, `The file "large" is 1001 bytes long, over the limit of 1000 for one file.`},
		{[]string{"one", "two"}, `The file "two" is 901 bytes long and would take this message's attachments over ` +
			`the limit of 1500 bytes: send it in another message.`},
	} {
		_, err := p.Box("Ann", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"Ann"}, Subject: "s", Body: "b", Attachments: tt.files})
		if !errors.Is(err, maildir.ErrTooLarge) || err.Error() != tt.want {
			t.Errorf("%s: got %v, want %s", tt.files, err, tt.want)
		}
	}
}
