package hook

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func openLog(t *testing.T, root string) *Log {
	t.Helper()
	l, err := OpenLog(root, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
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

// TestLog: what began is known after a restart, also behind a line that a crash cut short, and what
// failed to be written is not taken for begun.
func TestLog(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	wake, count := &Hook{Project: "p", Mailbox: "bob", Name: "wake"}, &Hook{Project: "p", Mailbox: "bob", Name: "count"}
	l := openLog(t, root)
	if !begin(t, l, wake, "m1") || begin(t, l, wake, "m1") || !begin(t, l, count, "m1") || !begin(t, l, wake, "m2") {
		t.Error("first and second beginnings are mixed up")
	}
	if err := l.End(&Run{Firing: Firing{Hook: *wake, ID: "m1"}}, End{Exit: 1, Output: []byte("\xff<out>")}); err != nil {
		t.Fatal(err)
	}
	if err := l.SetMark(42); err != nil {
		t.Fatal(err)
	}
	l.Close()
	file := filepath.Join(root, logFile)
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(f, "not JSON\n{\"hook\":\"p/bob/wake\",\"message\":\"m3\",\"beg") // cut short
	f.Close()
	l = openLog(t, root)
	if got := l.Abandoned(); len(got) != 2 || got[0].Message+got[1].Message != "m1m2" && got[0].Message+got[1].Message != "m2m1" {
		t.Errorf("abandoned: %+v", got) // of wake m2, of count m1
	} else if err := l.EndAbandoned(&got[0], "gone"); err != nil || len(l.Abandoned()) != 1 {
		t.Errorf("abandoned still: %+v, %v", l.Abandoned(), err)
	}
	if !l.Ran(wake, "m2") || l.Ran(wake, "m3") || l.Mark() != 42 || !begin(t, l, wake, "m3") {
		t.Errorf("mark %d", l.Mark())
	}
	l.Close()
	if l = openLog(t, root); begin(t, l, wake, "m3") {
		t.Error("what began behind a torn line begins again")
	}
	l.f.Close() // whatever is written now fails
	if first, err := l.Begin(wake, "m4"); err == nil || first {
		t.Errorf("begun in a closed file: %v", err)
	}
	if !begin(t, l, wake, "m4") {
		t.Error("what could not be written has begun")
	}
}

// TestLogCompacts: ends are dropped, the oldest first, when they are much; beginnings and the mark
// stay.
func TestLogCompacts(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	h := &Hook{Project: "p", Mailbox: "bob", Name: "loud", Timeout: 60}
	l := openLog(t, root)
	l.most = 64 << 10
	out := []byte(strings.Repeat("x", 1<<10))
	if err := l.SetMark(7); err != nil {
		t.Fatal(err)
	}
	const n = 70
	begin(t, l, h, "going")
	if err := l.Started(&Run{Firing: Firing{Hook: *h, ID: "going"}}, 4711, "a process"); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		id := fmt.Sprint("m", i)
		begin(t, l, h, id)
		if err := l.End(&Run{Firing: Firing{Hook: *h, ID: id}}, End{Output: out}); err != nil {
			t.Fatal(err)
		}
	}
	fi, err := os.Stat(filepath.Join(root, logFile))
	if err != nil || fi.Size() > 40<<10 {
		t.Errorf("%d bytes, %v", fi.Size(), err)
	}
	l.Close()
	l = openLog(t, root)
	for i := range n {
		if !l.Ran(h, fmt.Sprint("m", i)) {
			t.Errorf("m%d is forgotten", i)
		}
	}
	going := l.Abandoned()
	if len(going) != 1 || going[0].Begun.IsZero() {
		t.Fatalf("going on: %+v", going)
	}
	going[0].Begun = time.Time{}
	if want := (Abandoned{Hook: "p/bob/loud", Message: "going", PID: 4711, Process: "a process", Timeout: 60}); going[0] != want {
		t.Errorf("going on: %+v, want %+v", going[0], want)
	}
	ends := 0
	if err := l.read(func(_ []byte, e entry) error {
		if e.Ended != "" {
			ends++
		}
		return nil
	}); err != nil || ends == 0 || l.Mark() != 7 {
		t.Errorf("%d ends, mark %d, %v", ends, l.Mark(), err)
	}
}
