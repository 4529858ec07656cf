package hook_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/fixtures/inmemory"
	"mailtree/fixtures/storetest"
	hooks "mailtree/maildir/hook"
	"mailtree/watcher/hook"
)

// TestOlder checks that a hook does not run for mail older than the hook, even if the mail is reported late or was
// gone for a while. The hook must run for newer mail that arrived while no server was running, regardless of the date
// in the mail.
func TestOlder(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Config{NoWatcher: true})
	b.hook("bob", hooks.Hook{Name: "first", Cmd: []string{"/bin/true"}})
	stop := b.start(hook.Config{Workers: 1})
	older := b.send("token", "older")
	b.ended(1)
	stop()
	b.save("agents/bob/inbox/hand.md", byHand("hand", "bob"))
	b.rescan() // while no server follows the feed
	b.hook("bob", hooks.Hook{Name: "second", Cmd: []string{"/bin/true"}, FireOnUntrusted: true})
	b.save("agents/bob/inbox/late.md", byHand("late", "bob"))
	b.rescan()
	b.start(hook.Config{Workers: 1})
	newer := b.send("token", "newer")
	b.ended(4)
	m, err := b.p.Message(t.Context(), older)
	if err != nil {
		t.Fatal(err)
	}
	here := filepath.Join(b.p.Dir(), "agents/bob/inbox", m.Created.Format("2006/01/02"), older+".md")
	away := filepath.Join(inmemory.Dir(t), "away")
	for _, move := range [][2]string{{here, away}, {away, here}} {
		if err := os.Rename(move[0], move[1]); err != nil {
			t.Fatal(err)
		}
		b.rescan()
	}
	last := b.send("token", "last")
	var got []string
	for _, r := range b.ended(6) {
		got = append(got, strings.TrimPrefix(r.Hook, b.p.Slug+"/bob/")+" "+r.Message)
	}
	want := []string{"first " + older, "second late", "first " + newer, "second " + newer, "first " + last, "second " + last}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestByHand checks that a hook that a user added to hooks.json without a time runs for all mail that arrives
// afterward, even if the user saves the file again.
func TestByHand(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Config{NoWatcher: true})
	file := filepath.Join(b.Root(), "hooks.json")
	cmd := b.waiting("wait")
	if err := os.WriteFile(file, fmt.Appendf(nil, `[{"project":%q,"mailbox":"bob","name":"mine","event":"on_receive","cmd":[%q]}]`,
		b.p.Slug, cmd), 0o600); err != nil {
		t.Fatal(err)
	}
	b.start(hook.Config{Workers: 1})
	for range 3 {
		b.send("token", "s")
	}
	b.until("the first began", func() bool { return len(b.runs(begun)) == 1 })
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(file, later, later); err != nil {
		t.Fatal(err)
	}
	b.goOn()
	b.ended(3)
}

// TestUnmarked checks that even if no mark was saved, a server runs a hook for mail that arrived after the hook was
// created, regardless of the date in the mail.
func TestUnmarked(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Config{NoWatcher: true})
	b.save("agents/bob/inbox/older.md", byHand("older", "bob"))
	b.rescan()
	b.hook("bob", hooks.Hook{Name: "wake", Cmd: []string{"/bin/true"}, FireOnUntrusted: true})
	b.save("agents/bob/inbox/hand.md", byHand("hand", "bob"))
	b.rescan()
	want := []string{"hand", b.send("token", "sent")}
	stop := b.start(hook.Config{Workers: 1})
	b.ended(2)
	stop()
	var got []string
	for _, r := range b.runs(begun) {
		got = append(got, r.Message)
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestClockSetBack checks that mail that arrives after a hook was created fires the hook, even if the clock has been
// set back since then.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	var back atomic.Int64 // hours
	root := filepath.Join(t.TempDir(), "store")
	cfg := storetest.Config{Root: root, NoWatcher: true,
		Now: func() time.Time { return time.Now().Add(-time.Duration(back.Load()) * time.Hour) }}
	b := newBench(t, cfg)
	b.send("token", "older")
	b.hook("bob", hooks.Hook{Name: "wake", Cmd: []string{"/bin/true"}, FireOnUntrusted: true})
	var want []string
	come := func() {
		t.Helper()
		hand := fmt.Sprintf("hand%d", len(want))
		b.save("agents/bob/inbox/"+hand+".md", byHand(hand, "bob"))
		b.rescan()
		want = append(want, hand, b.send("token", "sent"))
		b.ended(len(want))
	}
	for _, hours := range []int64{0, -240, 0, 1, 48} {
		stop := b.start(hook.Config{Workers: 1})
		come()
		back.Store(hours) // the clock is set back while the server runs
		come()
		stop()
		back.Store(hours + 12) // the clock is set back while no server runs
		b.Stop()
		b.open(cfg)
	}
	b.start(hook.Config{Workers: 1})
	come()
	var got []string
	for _, r := range b.runs(begun) {
		got = append(got, r.Message)
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestOnce checks that a hook runs exactly once for each of 200 messages that are sent while the runner stops and
// restarts several times.
func TestOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Config{NoWatcher: true})
	b.hook("bob", hooks.Hook{Name: "count", Cmd: []string{b.script("count", "echo $AIMX_ID >> DIR/ids\n")}})
	var sent []string
	stop := b.start(hook.Config{})
	for i := range 200 {
		sent = append(sent, b.send("token", fmt.Sprint(i)))
		if i%50 == 49 {
			stop() // some messages are still waiting
			stop = b.start(hook.Config{})
		}
	}
	// A run that was in progress when the runner stopped is not repeated.
	b.until("every run began", func() bool { return len(b.runs(begun)) >= len(sent) })
	b.until("every run ended", func() bool { return len(b.runs(ended)) >= len(sent) })
	stopped := 0
	for _, r := range b.runs(ended) {
		if r.End == "the server stopped" {
			stopped++
		}
	}
	began := map[string]int{}
	for _, r := range b.runs(begun) {
		began[r.Message]++
	}
	ran := strings.Fields(b.file("ids"))
	slices.Sort(ran)
	if len(slices.Compact(slices.Clone(ran))) != len(ran) || len(ran) < len(sent)-stopped || len(began) != len(sent) ||
		len(b.runs(begun)) != len(sent) {
		t.Errorf("%d messages, %d runs began, %d commands ran to their end, %d were stopped", len(sent), len(b.runs(begun)), len(ran), stopped)
	}
}

// TestRebuilt checks that after the index is rebuilt, each hook runs for the newer mail for which it has not run yet,
// and does not run twice for the same mail.
func TestRebuilt(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "store")
	b := newBench(t, storetest.Config{Root: root, NoWatcher: true})
	b.send("token", "older")
	b.save("agents/bob/inbox/hand.md", byHand("hand", "bob"))
	b.save("agents/ann/outbox/sent.md", byHand("sent", "bob"))
	b.rescan()
	count := b.script("count", "echo $MAILTREE_EVENT $AIMX_ID >> DIR/ids\n")
	b.hook("bob", hooks.Hook{Name: "count", Cmd: []string{count}, FireOnUntrusted: true})
	b.hook("ann", hooks.Hook{Name: "sent", Cmd: []string{count}, Event: hooks.AfterSend})
	stop := b.start(hook.Config{})
	var want []string
	add := func(id string) { want = append(want, "on_receive "+id, "after_send "+id) }
	for range 3 {
		add(b.send("token", "ran"))
	}
	b.ended(6)
	stop()
	for range 3 {
		add(b.send("token", "missed"))
	}
	b.Stop()
	if err := os.Remove(filepath.Join(root, "index", "index.sqlite3")); err != nil {
		t.Fatal(err)
	}
	storetest.Rebuild(t, root)
	b.open(storetest.Config{Root: root, NoWatcher: true})
	b.start(hook.Config{Workers: 1})
	b.ended(12)
	var missed []string // the messages for which the hook ran late, in order
	for _, r := range b.runs(begun)[6:] {
		if strings.HasSuffix(r.Hook, "/bob/count") {
			missed = append(missed, r.Message)
		}
	}
	if !slices.IsSorted(missed) || len(missed) != 3 {
		t.Errorf("caught up with %v", missed)
	}
	add(b.send("token", "after"))
	b.ended(14)
	got := strings.Split(strings.TrimSpace(b.file("ids")), "\n")
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
