package indexer

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mailtree/maildir/index"
	"mailtree/maildir/tree"
)

// machineFaults are errors caused by the machine, not by the file.
var machineFaults = []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EIO, syscall.ESTALE, syscall.EINTR,
	syscall.EAGAIN, 9999}

// fixed is a modification time that differs from the initial times of all files.
var fixed = time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)

// unreadTree returns one file of every kind, by path.
func unreadTree() map[string]string {
	const msg = "---json\n{\"id\": \"m1\", \"from\": \"Ann\", \"to\": [\"Bob\"], \"created\": \"2025-10-23T15:22:14Z\"}\n---\n\nwords\n"
	return map[string]string{
		"project.json":                       `{"human_key": "/x"}`,
		"messages/2025/10/23/m1.md":          msg,
		"agents/Ann/outbox/2025/10/23/m1.md": msg,
		"agents/Bob/inbox/2025/10/23/m1.md":  msg,
		"agents/Bob/inbox/2025/10/23/m1.ack": "2025-10-23T15:23:14Z\n",
		"agents/Bob/profile.json":            `{"program": "p", "inception": "2025-10-01T00:00:00Z"}`,
		"agents/Bob/status":                  "ready\n",
		"claims/c.json": `{"path": "a/*.go", "agent": "Bob", "created": "2025-10-23T15:22:14Z",
"expires": "2026-01-01T00:00:00Z"}`,
		"claims/c.released":    "2025-10-23T15:24:14Z\n",
		"attachments/aa/b.png": "png",
	}
}

// putTree writes the files to a temporary folder and returns the folder.
func putTree(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, data := range files {
		putFile(t, dir, name, data)
	}
	return dir
}

// TestUnreadable checks that if a machine fault makes a file or folder unreadable, its rows stay unchanged and Ingest
// reports the path. The rest of the batch must be ingested, and the next batch must find everything.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	for _, fault := range machineFaults {
		t.Run(fault.Error(), func(t *testing.T) {
			t.Parallel()
			files := unreadTree()
			at := slices.Collect(maps.Keys(files))
			at = append(at, "messages", "agents", "agents/Bob/inbox", "agents/Bob/inbox/2025/10/23", "claims")
			for _, p := range slices.Sorted(slices.Values(at)) {
				t.Run(p, func(t *testing.T) { playUnreadable(t, files, p, fault) })
			}
		})
	}
}

func playUnreadable(t *testing.T, files map[string]string, p string, fault syscall.Errno) {
	dir := putTree(t, files)
	tr := openTree(t, dir)
	trees := map[string]*tree.Tree{"p": tr}
	x := openIndex(t)
	attach(t, x, "p", tr)
	fail := func(q string) error {
		if q == p {
			return fault
		}
		return nil
	}
	again := func(left []tree.Unreadable) {
		t.Helper()
		tr.Fail = nil
		var paths []string
		for _, u := range left {
			if u.Path != p && !strings.HasPrefix(u.Path, p+"/") {
				t.Errorf("%s is reported as unreadable, but only %s and the paths below it should be", u.Path, p)
			}
			paths = append(paths, u.Path)
		}
		if len(paths) == 0 {
			t.Errorf("%s is not reported as unreadable", p)
		}
		ingest(t, x, "p", paths...)
		verify(t, x, trees)
	}

	tr.Fail = fail // the index is still empty
	in, err := x.Reconcile(t.Context(), "p", nil)
	if err != nil {
		t.Fatal(err)
	}
	again(in.Unreadable)

	before := dump(t, x)
	tr.Fail = fail // the index contains everything
	in, err = x.Ingest(t.Context(), "p", append(slices.Sorted(maps.Keys(files)), p), nil)
	if err != nil {
		t.Fatal(err)
	}
	if now := dump(t, x); now != before {
		t.Errorf("rows changed to:\n%s\nfrom:\n%s", now, before)
	}
	again(in.Unreadable)

	for name := range files { // every file is changed, and another file arrives at the same time
		if err := os.Chtimes(filepath.Join(dir, name), fixed, fixed); err != nil {
			t.Fatal(err)
		}
	}
	putFile(t, dir, "agents/Cid/status", "work\n")
	tr.Fail = fail
	in, err = x.Ingest(t.Context(), "p", append(slices.Sorted(maps.Keys(files)), "agents/Cid/status"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if now := dump(t, x); p != "agents" && !strings.Contains(now, "Cid") {
		t.Errorf("the rest of the batch is missing:\n%s", now)
	}
	again(in.Unreadable)
}

// TestUnreadContent checks that a message stays unchanged if its canonical file is gone and the copy that should
// provide the text cannot be read. Other messages in the batch must be ingested.
func TestUnreadContent(t *testing.T) {
	t.Parallel()
	files := unreadTree()
	dir := putTree(t, files)
	const copyPath, canonical = "agents/Ann/outbox/2025/10/23/m1.md", "messages/2025/10/23/m1.md"
	putFile(t, dir, copyPath, strings.Replace(files[copyPath], "words", "other words", 1))
	tr := openTree(t, dir)
	x := openIndex(t)
	attach(t, x, "p", tr)
	ingest(t, x, "p", ".")
	before, err := x.Message(t.Context(), "p", "m1", index.WithBody, nil)
	if err != nil {
		t.Fatal(err)
	}

	putFile(t, dir, canonical, "(gone)\n")
	putFile(t, dir, "messages/m2.md", strings.Replace(files[canonical], "m1", "m2", 1))
	tr.Fail = func(p string) error {
		if p == copyPath {
			return syscall.EMFILE
		}
		return nil
	}
	in, err := x.Ingest(t.Context(), "p", []string{canonical, "messages/m2.md"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	after, err := x.Message(t.Context(), "p", "m1", index.WithBody, nil)
	if err != nil || after == nil || after.Body != before.Body {
		t.Errorf("message %+v, %v; it was %+v", after, err, before)
	}
	if m, err := x.Message(t.Context(), "p", "m2", index.WithBody, nil); m == nil {
		t.Errorf("the other message is missing: %v", err)
	}
	tr.Fail = nil
	for _, u := range in.Unreadable {
		ingest(t, x, "p", u.Path)
	}
	verify(t, x, map[string]*tree.Tree{"p": tr})
	if now, err := x.Message(t.Context(), "p", "m1", index.WithBody, nil); err != nil || now == nil || !strings.Contains(now.Body,
		"other") {
		t.Errorf("message %+v, %v", now, err)
	}
}

// TestUnlistedFolder checks that a folder that can be examined but not listed is reported as unreadable.
func TestUnlistedFolder(t *testing.T) {
	t.Parallel()
	tr := openTree(t, putTree(t, unreadTree()))
	x := openIndex(t)
	attach(t, x, "p", tr)
	calls := 0
	tr.Fail = func(p string) error {
		if p == "claims" {
			if calls++; calls == 2 {
				return syscall.EMFILE
			}
		}
		return nil
	}
	in, err := x.Ingest(t.Context(), "p", []string{"claims"}, nil)
	if err != nil || len(in.Changes) > 0 || len(in.Unreadable) != 1 || in.Unreadable[0].Path != "claims" {
		t.Fatalf("%+v, %v", in, err)
	}
	ingest(t, x, "p", ".")
	verify(t, x, map[string]*tree.Tree{"p": tr})
}

// TestVerifyUnread checks that Verify does not report unreadable files as differences.
func TestVerifyUnread(t *testing.T) {
	t.Parallel()
	tr := openTree(t, putTree(t, unreadTree()))
	x := openIndex(t)
	attach(t, x, "p", tr)
	ingest(t, x, "p", ".")
	tr.Fail = func(p string) error {
		if p == "claims/c.json" || p == "messages" {
			return syscall.EIO
		}
		return nil
	}
	if r, err := Verify(t.Context(), x, map[string]*tree.Tree{"p": tr}); err == nil || !strings.Contains(err.Error(), syscall.EIO.Error()) {
		t.Errorf("%+v, %v", r, err)
	}
}
