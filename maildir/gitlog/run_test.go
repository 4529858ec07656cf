package gitlog

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"mailtree/maildir/writer"
)

// TestRunGathers checks that operations are collected before they are committed. It also checks that git status does
// not have to read files that were last changed some time before the commit.
func TestRunGathers(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{Delay: 2 * restTime})
	tr.run()
	var all sync.WaitGroup
	start := time.Now()
	for i := range 100 {
		all.Add(1)
		p := fmt.Sprintf("messages/m%02d", i)
		tr.write(p, "text")
		tr.log.Record([]writer.Op{op("send", "A", p, p)}, all.Done)
		if i%20 == 19 {
			all.Wait()
		}
	}
	all.Wait()
	spent := time.Since(start)
	commits := len(strings.Fields(tr.git("log", "--format=%H", "--", "messages")))
	if limit := 2 + int(spent/(3*2*restTime)); commits > limit {
		t.Errorf("%d commits in %v, want at most %d", commits, spent, limit)
	}
	if stale := strings.Count(tr.git("ls-files", "--debug", "messages"), "size: 0\t"); stale > 20 {
		t.Errorf("git status must reread the files of %d of 100 entries", stale)
	}
	tr.sound()
}

// TestRunEnds checks that Run commits all waiting operations and edits before it ends, including edits that are not
// due yet.
func TestRunEnds(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true, Delay: time.Hour, Quiet: time.Hour})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- tr.log.Run(ctx) }()
	tr.send("m1", "m1")
	tr.write("hand", "x")
	tr.log.RecordEdits([]string{"hand", "m1"})
	if s := tr.log.State(); s.Pending != 3 {
		t.Errorf("pending %d", s.Pending)
	}
	cancel()
	tr.check(<-ended)
	tr.equal("subjects", tr.git("log", "-2", "--format=%s"), "edit: hand\nsend: A -> B: about m1")
	tr.sound()
}

// TestLongest checks that edits are committed even if files never stop changing.
func TestLongest(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true, Quiet: time.Hour, Longest: 100 * time.Millisecond})
	tr.run()
	for i := range 3 {
		head := tr.git("rev-parse", "HEAD")
		tr.until("an edit is committed", func() bool {
			tr.write("draft", fmt.Sprint(i, time.Now()))
			tr.log.RecordEdits([]string{"draft"})
			return tr.git("rev-parse", "HEAD") != head
		})
	}
}

func TestOneLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a\r\nb\x00c\td": "a b c d", "\u202eevil": "evil", "\xffx": "\uFFFDx", "": "",
		strings.Repeat("é", 20): strings.Repeat("é", 8) + "…",
	} {
		if got := oneLine(in, 20); got != want || len(got) > 20 {
			t.Errorf("oneLine(%q) = %q, want %q", in, got, want)
		}
	}
}
