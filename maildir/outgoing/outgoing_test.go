package outgoing

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

func folder(t *testing.T) *Folder {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, tree.TmpDir), 0o700); err != nil {
		t.Fatal(err)
	}
	tr, err := tree.Open(dir, tree.MaxFile)
	if err != nil {
		t.Fatal(err)
	}
	return &Folder{Tree: tr, Project: "shop", Key: []byte("key"), Log: slog.New(slog.DiscardHandler)}
}

func item() *Item {
	at := time.Date(2026, 2, 3, 9, 0, 0, 0, time.UTC)
	return &Item{ID: ID("m1", "ann@example.org"), Project: "shop", Message: "m1", MessageID: "m1@mail.example.net", From: "build@mail.example.net",
		To: "ann@example.org", State: Queued, Queued: at, Next: at}
}

func (f *Folder) files(t *testing.T) (all []string) {
	t.Helper()
	for _, dir := range []string{format.QueueDir, endedDir} {
		entries, _ := f.Tree.List(dir)
		for _, e := range entries {
			if !e.IsDir() {
				all = append(all, dir+"/"+e.Name())
			}
		}
	}
	return all
}

func open(t *testing.T, f *Folder) []Item {
	t.Helper()
	all, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestSave checks that an item is read back unchanged, has exactly one file in every state, and stays open until it has
// ended.
func TestSave(t *testing.T) {
	t.Parallel()
	f, i := folder(t), item()
	for _, s := range []State{Queued, Deferred, Sending, Unknown, Sent, Queued, Failed} {
		i.State = s
		if err := f.Save(i); err != nil {
			t.Fatal(err)
		}
		got, err := f.Get(i.ID)
		if d := cmp.Diff(i, got); err != nil || d != "" || len(f.files(t)) != 1 || len(open(t, f)) == 1 != (s != Sent) {
			t.Errorf("%s: %v %s %v", s, err, d, f.files(t))
		}
	}
	if got, err := f.Get("other"); got != nil || err != nil {
		t.Errorf("%v %v", got, err)
	}
}

// TestForeign checks that a file is treated as an item only if this store wrote it for this project and under the
// file's present name.
func TestForeign(t *testing.T) {
	t.Parallel()
	f := folder(t)
	put := func(name, data string) {
		t.Helper()
		if err := f.Tree.SaveRun(format.QueueDir+"/"+name, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	encode := func(key string, i *Item) string {
		data, err := Encode([]byte(key), i)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	elsewhere := item()
	elsewhere.Project = "other"
	good := encode("key", item())
	for why, data := range map[string]string{
		"another key": encode("other", item()), "another project": encode("key", elsewhere), "nothing": "", "no HMAC": "{}\n",
		"changed": strings.Replace(good, "ann@", "eve@", 1), "long": good + strings.Repeat("x", format.MaxSmall),
	} {
		put(item().ID+".json", data)
		if all := open(t, f); len(all) > 0 {
			t.Errorf("%s: %v", why, all)
		}
	}
	if err := f.Tree.RemoveRun(Path(item().ID)); err != nil {
		t.Fatal(err)
	}
	put("m2.json", good)
	if all := open(t, f); len(all) > 0 {
		t.Errorf("another name: %v", all)
	}
	if err := os.Remove(filepath.Join(f.Tree.Dir(), format.QueueDir, "m2.json")); err != nil {
		t.Fatal(err)
	}
	put(item().ID+".json", good)
	if all := open(t, f); len(all) != 1 {
		t.Errorf("the valid item: %v", all)
	}
}

// TestBroughtBack checks that an ended item does not become open again if its earlier file is restored.
func TestBroughtBack(t *testing.T) {
	t.Parallel()
	f, i := folder(t), item()
	old, err := Encode(f.Key, i)
	if err != nil {
		t.Fatal(err)
	}
	i.State = Sent
	if err := f.Save(i); err != nil {
		t.Fatal(err)
	}
	if err := f.Tree.SaveRun(Path(i.ID), old); err != nil {
		t.Fatal(err)
	}
	if got, err := f.Get(i.ID); err != nil || got.State != Sent || len(open(t, f)) > 0 {
		t.Errorf("%v %v", got, err)
	}
	if _, err := f.Tree.Stat(Path(i.ID)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is still there, and its item would be open once the other file is pruned: %v", err)
	}
}

// TestPrune checks that Prune removes the files of items that ended long ago, and keeps other files.
func TestPrune(t *testing.T) {
	t.Parallel()
	f, i := folder(t), item()
	if err := f.Prune(time.Now()); err != nil {
		t.Fatal(err)
	}
	i.State = Sent
	for _, to := range []string{"ann@example.org", "bob@example.org"} {
		i.To, i.ID = to, ID(i.Message, to)
		if err := f.Save(i); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-keepEnded - time.Hour)
	if err := os.Chtimes(filepath.Join(f.Tree.Dir(), endedPath(i.ID)), old, old); err != nil {
		t.Fatal(err)
	}
	if err := f.Prune(time.Now()); err != nil || len(f.files(t)) != 1 {
		t.Errorf("%v %v", err, f.files(t))
	}
}

// TestWorst checks that Worst returns the worst of several recipients' states.
func TestWorst(t *testing.T) {
	t.Parallel()
	for want, states := range map[State][]State{
		Sent: {Sent, Sent}, Deferred: {Sent, Deferred, Sending}, Unknown: {Queued, Unknown}, Failed: {Unknown, Failed, Sent},
	} {
		var items []Item
		for _, s := range states {
			items = append(items, Item{State: s})
		}
		if got := Worst(items); got != want {
			t.Errorf("%s: %s", states, got)
		}
	}
}
