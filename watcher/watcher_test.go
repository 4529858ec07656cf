package watcher

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestNestedNewFolders checks that the watcher finds 300 files in nested folders that are created at the same time.
// With fsnotify alone, only 144 of the files were reported. See docs/explanation/speed.md, "Findings behind the design".
func TestNestedNewFolders(t *testing.T) {
	t.Parallel()
	w := start(t, nil)
	var want []string
	for i := range 300 {
		dir := fmt.Sprintf("messages/2026/%02d/%02d", i%12, i%28)
		w.mkdir(dir)
		file := fmt.Sprintf("%s/m%d.md", dir, i)
		w.write(file, "x")
		want = append(want, file)
	}
	w.reported(want...)
	w.converged()
	if got, _ := w.paths(); got["messages"] != 1 {
		t.Errorf("the new folder was reported %d times, want once", got["messages"])
	}
}

func TestTreeMovedIn(t *testing.T) {
	t.Parallel()
	w := start(t, nil)
	outside := filepath.Join(t.TempDir(), "clone")
	mkdir(t, filepath.Join(outside, "a/b/c"))
	for _, f := range []string{"a/1", "a/b/2", "a/b/c/3"} {
		if err := os.WriteFile(filepath.Join(outside, f), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(outside, filepath.Join(w.root, "in")); err != nil {
		t.Fatal(err)
	}
	w.reported("in/a/1", "in/a/b/2", "in/a/b/c/3")
}

func TestRenameFile(t *testing.T) {
	t.Parallel()
	w := start(t, func(w *watched, _ *Config) { w.write("old", "x") })
	w.rename("old", "new")
	w.reported("old", "new")
	w.converged()
}

func TestNamesOfAnyBytes(t *testing.T) {
	t.Parallel()
	w := start(t, nil)
	names := []string{"two\nlines", "with space", "caf\xe9", "...", "-rf", `back\slash`, "*?[a]"}
	var want []string
	for _, name := range names {
		w.mkdir("in " + name)
		w.write("in "+name+"/"+name, "x")
		want = append(want, "in "+name+"/"+name)
	}
	w.mkdir("...")
	w.write(".../x", "x")
	w.reported(append(want, ".../x")...)
	w.write(".../x", "y")
	w.converged()
}

// TestRenameFolder checks that the watches below a renamed folder do not keep their old names. fsnotify alone would
// keep them.
func TestRenameFolder(t *testing.T) {
	t.Parallel()
	w := start(t, func(w *watched, _ *Config) {
		w.mkdir("old/deep/er")
		w.write("old/deep/er/1", "x")
	})
	w.rename("old", "new")
	w.reported("old", "new/deep/er/1")
	w.settled()
	w.forget()
	w.write("new/deep/er/2", "x")
	w.write("new/3", "x")
	w.reported("new/deep/er/2", "new/3")
	w.settled()
	if got, _ := w.paths(); got["old/deep/er/2"] != 0 {
		t.Error("reported under its old name")
	}
	w.rename("new", "old") // back to a name that may still have old watches
	w.write("old/deep/er/4", "x")
	w.reported("old/deep/er/4")
	w.converged()
}

// TestSwapFolders checks that files are reported under their new paths after two folders have swapped names.
func TestSwapFolders(t *testing.T) {
	t.Parallel()
	w := start(t, func(w *watched, _ *Config) {
		w.mkdir("a/in")
		w.mkdir("b/in")
		w.write("a/in/1", "a")
		w.write("b/in/1", "b")
		w.write("b/in/2", "b")
	})
	for i := range 20 {
		w.rename("a", "c")
		w.rename("b", "a")
		w.rename("c", "b")
		w.write("a/in/1", fmt.Sprint("a", i))
		w.write("b/in/1", fmt.Sprint("b", i))
	}
	w.converged()
	w.forget()
	w.write("a/in/new", "x")
	w.write("b/in/new", "x")
	w.reported("a/in/new", "b/in/new")
}

// TestFolderReplacedInOneStep checks that the watcher notices when a folder is renamed over an empty one. The kernel
// reports only the new folder, not the removal of the old one.
func TestFolderReplacedInOneStep(t *testing.T) {
	t.Parallel()
	w := start(t, func(w *watched, _ *Config) { w.mkdir("dir") })
	outside := filepath.Join(t.TempDir(), "other")
	mkdir(t, filepath.Join(outside, "in"))
	if err := os.WriteFile(filepath.Join(outside, "in/1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Rename(outside, filepath.Join(w.root, "dir")); err != nil {
		t.Fatal(err)
	}
	w.reported("dir/in/1", "dir")
	w.write("dir/in/2", "x")
	w.reported("dir/in/2")
	w.converged()
}

func TestDeleteFolder(t *testing.T) {
	t.Parallel()
	w := start(t, func(w *watched, _ *Config) {
		w.mkdir("gone/deep")
		w.write("gone/1", "x")
		w.write("gone/deep/2", "x")
	})
	w.remove("gone")
	w.reported("gone")
	w.converged()
	if n := w.State().Folders; n != 1 {
		t.Errorf("%d folders watched, want the root only", n)
	}
	w.mkdir("gone/deep")
	w.write("gone/deep/2", "again")
	w.converged()
}

func TestMoveOut(t *testing.T) {
	t.Parallel()
	w := start(t, func(w *watched, _ *Config) { w.mkdir("dir/in"); w.write("dir/in/1", "x") })
	away := filepath.Join(t.TempDir(), "away")
	if err := os.Rename(filepath.Join(w.root, "dir"), away); err != nil {
		t.Fatal(err)
	}
	w.reported("dir")
	w.settled()
	w.forget()
	if err := os.WriteFile(filepath.Join(away, "in/2"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.converged()
	if got, _ := w.paths(); len(got) != 1 {
		t.Errorf("reported a path that is no longer in the tree: %v", got)
	}
}

// TestSlowWrite checks that a path written in place is reported only once it has been quiet, and that a path renamed
// into place is reported much sooner.
func TestSlowWrite(t *testing.T) {
	t.Parallel()
	const quiet = 2 * time.Second
	w := start(t, func(w *watched, cfg *Config) {
		cfg.Write, cfg.Longest = quiet, time.Hour
		w.write("slow", "")
	})
	f, err := os.OpenFile(filepath.Join(w.root, "slow"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	begun := time.Now()
	last, gap := begun, time.Duration(0)
	for last.Sub(begun) < quiet+quiet/2 {
		<-tick.C
		gap, last = max(gap, time.Since(last)), time.Now()
		if _, err := f.WriteString("x"); err != nil {
			t.Fatal(err)
		}
	}
	w.reported("slow")
	w.mu.Lock()
	defer w.mu.Unlock()
	if gap > quiet/2 {
		t.Skipf("this machine kept the test from writing for %v, so the file may have been quiet", gap)
	}
	if after := w.at[0].Sub(last); len(w.batches) != 1 || after < quiet*5/6 {
		t.Errorf("reported in %d batches, the first %v after the last write", len(w.batches), after)
	}
	if w.mirror["slow"] == "" {
		t.Error("reported before it was written")
	}
	_ = f.Close()
}

func TestConstantWriteIsReportedInTheEnd(t *testing.T) {
	t.Parallel()
	w := start(t, func(w *watched, cfg *Config) { cfg.Write, cfg.Longest = time.Hour, 50*time.Millisecond })
	end := time.After(patience)
	for i := 0; ; i++ {
		w.write("busy", fmt.Sprint(i))
		if got, _ := w.paths(); got["busy"] >= 3 {
			return
		}
		select {
		case <-end:
			t.Fatal("starved")
		default:
		}
	}
}

// TestWrittenPathDoesNotDelayOthers checks that a path that is being written does not delay other paths.
func TestWrittenPathDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	w := start(t, func(w *watched, cfg *Config) {
		cfg.Write, cfg.Longest = time.Hour, time.Hour
		w.write("old", "")
		w.write("busy", "") // created now, because otherwise its creation and the first write could be reported separately
	})
	busy, err := os.OpenFile(filepath.Join(w.root, "busy"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	if _, err := busy.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	w.rename("old", "new")
	w.reported("new", "old")
	w.until("they are no longer pending", func() bool { return w.State().Pending == 1 })
	if got, _ := w.paths(); got["busy"] != 0 || w.State().Oldest.IsZero() {
		t.Errorf("reported %v, state %+v", got, w.State())
	}
}

// TestClosedFileIsReported checks that a file written in place is reported when it is closed, not only after Write.
func TestClosedFileIsReported(t *testing.T) {
	t.Parallel()
	w := start(t, func(w *watched, cfg *Config) {
		cfg.Write, cfg.Longest = time.Hour, time.Hour
		w.write("old", "")
	})
	w.write("old", "x")
	w.reported("old")
}

func TestManyFiles(t *testing.T) {
	t.Parallel()
	w := start(t, func(w *watched, _ *Config) { w.mkdir("there") })
	for i := range 10_000 {
		dir := "there"
		if i%2 == 0 {
			dir = fmt.Sprint("new", i/500)
			w.mkdir(dir)
		}
		w.write(fmt.Sprintf("%s/f%d", dir, i), "x")
	}
	w.converged()
	w.remove("there")
	w.converged()
}

func TestSkip(t *testing.T) {
	t.Parallel()
	w := start(t, func(w *watched, cfg *Config) {
		w.mkdir(".git/objects")
		cfg.Skip = func(rel string, _ bool) bool { return rel == ".git" || filepath.Base(rel) == ".mailtree" }
	})
	w.mkdir("sub/.mailtree/tmp")
	w.write("sub/.mailtree/tmp/1", "x")
	w.write(".git/HEAD", "x")
	w.write("seen", "x")
	w.reported("seen")
	w.remove(".git")
	w.remove("sub/.mailtree")
	w.settled()
	for p := range first(w.paths()) {
		if p != "seen" && p != "settled" && p != "sub" {
			t.Errorf("reported %q", p)
		}
	}
	if n := w.State().Folders; n != 2 {
		t.Errorf("%d folders watched, want the root and sub", n)
	}
}

func first[A, B any](a A, _ B) A { return a }

// TestLinksAndDevices checks that links are reported like other paths, and that the watcher follows no links and
// opens no files.
func TestLinksAndDevices(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	w := start(t, func(w *watched, _ *Config) { w.mkdir("real") })
	link := func(target, rel string) {
		if err := os.Symlink(target, filepath.Join(w.root, rel)); err != nil {
			t.Fatal(err)
		}
	}
	w.mkdir("new")
	link("..", "new/loop")
	link(".", "self")
	link(outside, "out")
	link("real", "alias")
	if err := syscall.Mkfifo(filepath.Join(w.root, "new/fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.reported("new/loop", "self", "out", "alias", "new/fifo")
	w.settled()
	w.forget()
	if err := os.WriteFile(filepath.Join(outside, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.write("real/x", "x")
	w.reported("real/x")
	w.converged()
	if got, _ := w.paths(); len(got) != 2 || w.State().Folders != 3 {
		t.Errorf("reported %v, state %+v", got, w.State())
	}
}

func TestMode(t *testing.T) {
	t.Parallel()
	w := start(t, func(w *watched, _ *Config) {
		w.mkdir("dir/in")
		w.write("dir/in/1", "x")
		w.write("file", "x")
	})
	chmod := func(rel string, m os.FileMode) {
		if err := os.Chmod(filepath.Join(w.root, rel), m); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	if err := os.Chtimes(filepath.Join(w.root, "dir"), now, now); err != nil {
		t.Fatal(err)
	}
	w.settled()
	if got, _ := w.paths(); got["dir"] != 0 {
		t.Error("a folder was reported because its modification time changed")
	}
	chmod("file", 0)
	w.reported("file")
	chmod("dir", 0)
	w.reported("dir")
	w.forget()
	chmod("dir", 0o700)
	w.reported("dir", "dir/in/1")
	w.forget()
	w.write("dir/in/1", "y")
	w.reported("dir/in/1")
}

// TestBlockedCaller checks that while OnBatch blocks, the watcher drains events, and reports them in the next batch.
func TestBlockedCaller(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	w := start(t, func(w *watched, _ *Config) { w.hold = hold })
	if err := os.Symlink("x", filepath.Join(w.root, "first")); err != nil { // one event
		t.Fatal(err)
	}
	<-w.held
	if s := w.State(); s.Pending != 1 || s.Oldest.IsZero() {
		t.Errorf("the batch in OnBatch should not be reported yet; state %+v", s)
	}
	w.mkdir("a/b")
	for i := range 2000 {
		w.write(fmt.Sprintf("a/b/%d", i), "x")
	}
	w.rename("a", "c")
	w.until("drained", func() bool { return w.State().Pending > 2000 })
	if s := w.State(); s.Oldest.IsZero() || time.Since(s.Oldest) <= 0 {
		t.Errorf("state %+v", s)
	}
	close(hold)
	w.converged()
	w.until("Oldest is zero", func() bool { return w.State().Oldest.IsZero() }) // an event for a path may arrive after the path has been reported
}
