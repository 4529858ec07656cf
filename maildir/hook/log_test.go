package hook

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mailtree/maildir/format"
)

func openLog(t *testing.T, root string) *Log {
	t.Helper()
	l, err := OpenLog(root, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func begin(t *testing.T, l *Log, h *Hook, id string) bool {
	t.Helper()
	first, err := l.Begin(h, id)
	if err != nil {
		t.Fatal(err)
	}
	return first
}

// TestLog checks that, after a restart, the log still reports the runs that had begun. It must not report a run whose
// mark could not be written, or was left incomplete by a crash.
func TestLog(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	wake, count := &Hook{Project: "p", Mailbox: "bob", Name: "wake", Timeout: 60}, &Hook{Project: "p", Mailbox: "bob", Name: "count"}
	l := openLog(t, root)
	if !begin(t, l, wake, "m1") || begin(t, l, wake, "m1") || !begin(t, l, count, "m1") || !begin(t, l, wake, "m2") {
		t.Error("Begin does not tell a first run from a second one")
	}
	if err := l.End(&Run{Firing: Firing{Hook: *count, ID: "m1"}}, End{Exit: 1, Output: []byte("\xff<out>")}); err != nil {
		t.Fatal(err)
	}
	if err := l.Started(&Run{Firing: Firing{Hook: *wake, ID: "m2"}}, 4711, "a process"); err != nil {
		t.Fatal(err)
	}
	if err := l.SetMark(42); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.file(wake.Key(), "m3"), []byte(`{"hook":"p/bob/wake","message":"m3","beg`), 0o600); err != nil {
		t.Fatal(err)
	}
	l = openLog(t, root)
	left := map[string]Abandoned{}
	for _, a := range l.Abandoned() {
		if a.Begun.IsZero() {
			t.Errorf("%+v", a)
		}
		a.Begun = time.Time{}
		left[a.Message] = a
	}
	if want := (Abandoned{Hook: "p/bob/wake", Message: "m2", PID: 4711, Process: "a process", Timeout: 60}); len(left) != 2 || left["m2"] != want {
		t.Errorf("abandoned: %+v", left)
	}
	a := left["m2"]
	if err := l.EndAbandoned(&a, "gone"); err != nil {
		t.Fatal(err)
	}
	if l = openLog(t, root); len(l.Abandoned()) != 1 || l.Abandoned()[0].Message != "m1" {
		t.Errorf("still abandoned: %+v", l.Abandoned())
	}
	if !l.Ran(wake, "m2") || l.Ran(wake, "m3") || l.Mark() != 42 || !begin(t, l, wake, "m3") {
		t.Errorf("mark %d", l.Mark())
	}
	if err := os.Rename(l.dir, l.dir+"x"); err != nil {
		t.Fatal(err)
	}
	if first, err := l.Begin(wake, "m4"); err == nil || first {
		t.Errorf("a run began although the folder is gone: %v", err)
	}
	if err := os.Rename(l.dir+"x", l.dir); err != nil {
		t.Fatal(err)
	}
	if !begin(t, l, wake, "m4") {
		t.Error("a run whose mark could not be written is reported as begun")
	}
}

// TestOldMarks checks that a mark is removed a month after its last line was written, and that the position in the feed
// is kept.
func TestOldMarks(t *testing.T) {
	t.Parallel()
	root, h := t.TempDir(), &Hook{Project: "p", Mailbox: "bob", Name: "wake"}
	l := openLog(t, root)
	begin(t, l, h, "old")
	begin(t, l, h, "new")
	if err := l.SetMark(7); err != nil {
		t.Fatal(err)
	}
	past := time.Now().Add(-Kept - time.Hour)
	for _, file := range []string{l.file(h.Key(), "old"), filepath.Join(l.dir, changesFile)} {
		if err := os.Chtimes(file, past, past); err != nil {
			t.Fatal(err)
		}
	}
	if l = openLog(t, root); l.Ran(h, "old") || !l.Ran(h, "new") || l.Mark() != 7 {
		t.Errorf("old ran: %v, new ran: %v, mark %d", l.Ran(h, "old"), l.Ran(h, "new"), l.Mark())
	}
	if err := os.Chtimes(l.file(h.Key(), "new"), past, past); err != nil {
		t.Fatal(err)
	}
	if err := l.SetMark(8); err != nil || l.Ran(h, "new") {
		t.Errorf("an old mark stays while the log is open: %v", err)
	}
}

// TestOldLog checks that an earlier version's log is converted into marks, except for entries that are more than a
// month old, and that it is then removed.
func TestOldLog(t *testing.T) {
	t.Parallel()
	root, h := t.TempDir(), &Hook{Project: "p", Mailbox: "bob", Name: "wake"}
	now := format.FormatTime(time.Now())
	text := fmt.Sprintf(`{"hook":"p/bob/wake","message":"long ago","begun":"2020-01-02T03:04:05.000000Z","done":true}
{"hook":"p/bob/wake","message":"ended","begun":%[1]q,"timeout":60}
{"hook":"p/bob/wake","message":"going","begun":%[1]q,"timeout":60}
{"hook":"p/bob/wake","message":"ended","ended":%[1]q,"exit":0}
{"hook":"p/bob/wake","message":"going","pid":4711,"process":"a process"}
{"hook":"p/bob/wake","message":"dropped","begun":%[1]q,"done":true}
not JSON
{"mark":7}
{"mark":42}
{"hook":"p/bob/wake","message":"m3","beg`, now)
	file := filepath.Join(root, oldLog)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := CheckLog(root); err != nil {
		t.Error(err)
	}
	for range 2 {
		l := openLog(t, root)
		if !l.Ran(h, "ended") || !l.Ran(h, "going") || !l.Ran(h, "dropped") || l.Ran(h, "long ago") || l.Ran(h, "m3") || l.Mark() != 42 {
			t.Errorf("mark %d", l.Mark())
		}
		if left := l.Abandoned(); len(left) != 1 || left[0].Message != "going" || left[0].PID != 4711 {
			t.Errorf("abandoned: %+v", left)
		}
		if _, err := os.Lstat(file); !os.IsNotExist(err) {
			t.Errorf("the old log: %v", err)
		}
	}
}
