package maildir_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/fixtures/waits"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/index"
)

// putByHand writes a file of the tree, as a user would.
func putByHand(t *testing.T, p *maildir.Project, path, text string) {
	t.Helper()
	putBelow(t, p.Dir(), path, text)
}

func putBelow(t *testing.T, dir, path, text string) {
	t.Helper()
	name := filepath.Join(dir, filepath.FromSlash(path))
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// cloneByHand copies a project with one file into the store's folder without calling the store. It returns the
// project's slug.
func cloneByHand(t *testing.T, s *storetest.Store, path, text string) (slug string) {
	t.Helper()
	slug = format.Slug("/abs/path/cloned")
	repo := filepath.Join(s.WatchRoot(), slug, "repo")
	putBelow(t, repo, path, text)
	putBelow(t, repo, "project.json", `{"human_key": "/abs/path/cloned"}`+"\n")
	return slug
}

func removeByHand(t *testing.T, p *maildir.Project, path string) {
	t.Helper()
	if err := os.Remove(filepath.Join(p.Dir(), filepath.FromSlash(path))); err != nil {
		t.Fatal(err)
	}
}

// TestCloneWakes checks that callers that wait for changes wake up when a project is copied into the folder of a
// running store.
func TestCloneWakes(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Config{NoWatcher: true})
	last, err := s.LastChange(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	came := make(chan error, 1)
	err = waits.Go(`maildir\.\(\*Store\)\.WaitChanges$`, func() {
		_, err := s.WaitChanges(ctx, last, 10)
		came <- err
	})
	if err != nil {
		t.Fatal(err)
	}
	slug := cloneByHand(t, s, "agents/Bob/profile.json", "{}\n")
	s.Edited(t.Context(), []string{slug}, false)
	if err := <-came; err != nil {
		t.Error(err)
	}
}

// TestDeleteMailboxMeanwhile checks that if mail arrives while an empty mailbox is being deleted, the mail is not
// deleted.
func TestDeleteMailboxMeanwhile(t *testing.T) {
	t.Parallel()
	var h, preserved halts
	p := project(t, storetest.Config{NoWatcher: true, Step: h.pass,
		History: func(x history.Log) history.Log { return slowHistory{x, func() { preserved.pass("") }} }}, "Ann", "Bob")
	placed := h.at(isStep("ingest"))
	sent := sendLater(t, p, "s")
	<-placed.reached
	preserving := preserved.at(isStep(""))
	deleted := make(chan error, 1)
	go func() {
		_, err := p.As(maildir.Caller{Root: true}, format.Origin{}).DeleteMailbox(t.Context(), "Bob", false)
		deleted <- err
	}()
	await(t, func() bool { return maildir.Queued(p) > 0 })
	close(placed.goOn)
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	close(preserving.goOn)
	if err := <-deleted; !errors.Is(err, maildir.ErrConflict) {
		t.Errorf("deleted with mail in it: %v", err)
	}
	if got := inbox(t, p, "Bob"); got.Total != 1 {
		t.Errorf("%+v", got.Counts)
	}
}

// TestEditOfADeletedMailbox checks that no text is lost if a user writes it into a mailbox that is being deleted. The
// text must be in the history even if the mailbox's content had already been committed.
func TestEditOfADeletedMailbox(t *testing.T) {
	t.Parallel()
	const draft = "agents/Bob/drafts/plan.md"
	var p *maildir.Project
	edit := sync.OnceFunc(func() { putByHand(t, p, draft, "second thoughts\n") })
	p = project(t, storetest.Config{NoWatcher: true,
		History: func(x history.Log) history.Log { return hastyHistory{x, func() { edit() }} }}, "Ann", "Bob")
	putByHand(t, p, draft, "first thoughts\n")
	if _, err := p.As(maildir.Caller{Root: true}, format.Origin{}).DeleteMailbox(t.Context(), "Bob", true); err != nil {
		t.Fatal(err)
	}
	if err := p.FlushHistory(t.Context()); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("git", "-C", p.Dir(), "log", "-p", "--", draft).Output()
	if err != nil || !strings.Contains(string(out), "+second thoughts") {
		t.Errorf("the edit is not in the history: %v\n%s", err, out)
	}
	if _, err := maildir.TreeOf(p).Stat(draft); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the draft is still there: %v", err)
	}
}

// hastyHistory is a history that calls its after function as soon as it has preserved files.
type hastyHistory struct {
	history.Log
	after func()
}

func (x hastyHistory) Preserve(ctx context.Context, paths []string) error {
	defer x.after()
	return x.Log.Preserve(ctx, paths)
}

// TestMarkRemovedBeforeStamp checks that a mark that is removed soon after it was created is not recreated when its
// time is written.
func TestMarkRemovedBeforeStamp(t *testing.T) {
	t.Parallel()
	s := &stepper{}
	p := project(t, storetest.Config{Step: s.step}, "Ann", "Bob")
	send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "b"})
	mark := format.ReadMark(inbox(t, p, "Bob").Messages[0].CopyPath)
	s.stopAt("sync staged")
	putByHand(t, p, mark, "")
	<-s.reached
	removeByHand(t, p, mark)
	close(s.goOn)
	if err := p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, func() bool { return p.Stalled() == 0 && maildir.Later(p) == 0 })
	if err := p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := inbox(t, p, "Bob"); got.Unread != 1 {
		t.Errorf("read, but the mark was removed: %+v", got.Counts)
	}
}

// TestFirstContactOnce checks that if many callers create a project at the same time, the history contains the
// creation only once.
func TestFirstContactOnce(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Config{NoWatcher: true})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := s.EnsureProject(t.Context(), shop); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	p, err := s.Project(t.Context(), shop)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.FlushHistory(t.Context()); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("git", "-C", p.Dir(), "log", "--format=%B").CombinedOutput()
	if n := strings.Count(string(out), "project: "); err != nil || n != 1 {
		t.Errorf("%d times in the history (%v): %s", n, err, out)
	}
}

// TestPageMarkedWhileMailGoes checks that Inbox does not fail if a message is removed from the inbox after the page
// was read, but before the page's messages are marked as read.
func TestPageMarkedWhileMailGoes(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2} {
		var h halts
		p := project(t, storetest.Config{NoWatcher: true, Step: h.pass}, "Ann", "Bob")
		for range n {
			send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "b"})
		}
		first := inbox(t, p, "Bob").Messages[0].CopyPath
		planning := h.at(func(name string) bool { return strings.HasPrefix(name, "stage ") })
		aside := sendToAnn(t, p)
		<-planning.reached
		read := make(chan error, 1)
		go func() {
			page, err := p.Box("Bob", format.Origin{}).Inbox(t.Context(), index.InboxQuery{}, true, maildir.Waiting{})
			if err == nil && len(page.Messages) != n {
				err = errors.New("not all messages are on the page")
			}
			read <- err
		}()
		await(t, func() bool { return maildir.Queued(p) == 1 }) // the page has been read but not marked yet
		removeByHand(t, p, first)
		p.Edited([]string{first}, false)
		close(planning.goOn)
		if err := errors.Join(<-aside, <-read); err != nil {
			t.Errorf("%d: %v", n, err)
		}
		if got := inbox(t, p, "Bob"); got.Unread != 0 {
			t.Errorf("%+v", got.Counts)
		}
	}
}

// TestMarksAheadOfTheIndex checks that changes to a mark or status file take effect even before they are in the index.
// A later call that sets marks must return the final state.
func TestMarksAheadOfTheIndex(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann", "Bob")
	m := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "b"})
	mark := format.ReadMark(inbox(t, p, "Bob").Messages[0].CopyPath)
	level := func() {
		t.Helper()
		if err := p.Rescan(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Box("Bob", format.Origin{}).SetRead(t.Context(), m.ID, true); err != nil {
		t.Fatal(err)
	}
	removeByHand(t, p, mark)
	d, err := p.Box("Bob", format.Origin{}).SetRead(t.Context(), m.ID, true)
	if level(); err != nil || !d.Read || inbox(t, p, "Bob").Unread != 0 {
		t.Errorf("marked read after a removal: %+v %v", d, err)
	}
	if _, err := p.Box("Bob", format.Origin{}).SetRead(t.Context(), m.ID, false); err != nil {
		t.Fatal(err)
	}
	putByHand(t, p, mark, "2026-01-01T00:00:00Z\n")
	d, err = p.Box("Bob", format.Origin{}).SetRead(t.Context(), m.ID, false)
	if level(); err != nil || d.Read || inbox(t, p, "Bob").Unread != 1 {
		t.Errorf("marked unread after a mark: %+v %v", d, err)
	}
	if err := p.Agents.SetPresence(t.Context(), "Bob", format.Ready); err != nil {
		t.Fatal(err)
	}
	putByHand(t, p, "agents/Bob/status", "work\n")
	err = p.Agents.SetPresence(t.Context(), "Bob", format.Ready)
	if level(); err != nil || presence(t, p) != format.Ready {
		t.Errorf("ready after work: %s %v", presence(t, p), err)
	}
}

// TestMarkThatIsNone checks that a file at a mark's path is not treated as a mark if it cannot be read or is far too
// large. A call that sets only this mark must be refused, whereas a call that also sets other marks must skip it.
// Removing the mark must have no effect.
func TestMarkThatIsNone(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann", "Bob")
	var first *index.Delivery
	for _, subject := range []string{"first", "second", "third"} {
		send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: subject, Body: "b"})
		if first == nil {
			first = &inbox(t, p, "Bob").Messages[0]
		}
	}
	putByHand(t, p, format.ReadMark(first.CopyPath), strings.Repeat("x", format.MaxSmall+1))
	for _, level := range []bool{false, true} {
		if d, err := p.Box("Bob", format.Origin{}).SetRead(t.Context(), first.ID, false); err != nil || d.Read {
			t.Errorf("unread: %+v %v", d, err)
		}
		if _, err := p.Box("Bob", format.Origin{}).SetRead(t.Context(), first.ID, true); !errors.Is(err, maildir.ErrConflict) {
			t.Errorf("read: %v", err)
		}
		if level {
			continue
		}
		if err := p.Rescan(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if d, err := p.Box("Bob", format.Origin{}).Pop(t.Context()); err != nil || d == nil || d.Subject != "second" {
		t.Errorf("popped: %+v %v", d, err)
	}
	if _, err := p.Box("Bob", format.Origin{}).Inbox(t.Context(), index.InboxQuery{}, true, maildir.Waiting{}); err != nil {
		t.Error(err)
	}
	if got := inbox(t, p, "Bob"); got.Unread != 1 {
		t.Errorf("%+v", got.Counts)
	}
}

// TestPopAfterFailure checks that if a pop fails, a waiting caller gets the delivery that the pop would have
// returned.
func TestPopAfterFailure(t *testing.T) {
	t.Parallel()
	s := &stepper{}
	m := &machine{}
	p := project(t, storetest.Config{Fail: m.fail, NoWatcher: true, Step: s.step}, "Ann", "Bob")
	send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "b"})
	s.stopAt("sync staged")
	first := popLater(t, p, "Bob")
	<-s.reached
	waiting := make(chan popped, 1)
	err := waits.Go(`writer\.\(\*Writer\)\.do$`, func() {
		d, err := p.Box("Bob", format.Origin{}).PopWait(t.Context(), maildir.Waiting{For: maildir.MaxWait}, nil)
		if d == nil {
			d = &index.Delivery{}
		}
		waiting <- popped{d.Subject, err}
	})
	if err != nil {
		t.Fatal(err)
	}
	mend := breakSync(m)
	close(s.goOn)
	if a := <-first; !errors.Is(a.err, maildir.ErrUnavailable) {
		t.Errorf("%+v", a)
	}
	mend()
	select {
	case a := <-waiting:
		if a.err != nil && !errors.Is(a.err, maildir.ErrUnavailable) || a.err == nil && a.subject != "s" {
			t.Errorf("%+v", a)
		}
	case <-time.After(time.Minute / 2):
		t.Error("still waiting, with mail in the inbox")
	}
}

// TestMailboxBeingMade checks that both calls succeed if a user creates the same mailbox twice at the same time.
func TestMailboxBeingMade(t *testing.T) {
	t.Parallel()
	s := &stepper{}
	cfg := ownedBy(1000)
	cfg.NoWatcher, cfg.Step = true, s.step
	p := project(t, cfg, "Ann")
	s.stopAt("sync staged")
	first := make(chan error, 1)
	go func() { first <- p.Agents.EnsureAgent(t.Context(), "bob", maildir.Registration{}) }()
	<-s.reached
	second := make(chan error, 1)
	go func() {
		_, err := p.As(maildir.Caller{UID: 1000}, format.Origin{}).CreateMailbox(t.Context(), "bob")
		second <- err
	}()
	await(t, func() bool { return maildir.Queued(p) > 0 })
	close(s.goOn)
	if err := errors.Join(<-first, <-second); err != nil {
		t.Error(err)
	}
}

// TestEditWakes checks that a caller waiting for urgent mail wakes up when a message in the inbox becomes urgent, even
// if the index first read the file when it was only half written.
func TestEditWakes(t *testing.T) {
	for name, halfway := range map[string]string{"at once": "", "in two steps": "---json\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := project(t, storetest.Config{}, "Ann", "Bob")
			m := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "b"})
			path := inbox(t, p, "Bob").Messages[0].Path
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			came := make(chan error, 1)
			err := waits.Go(`maildir\.\(\*Project\)\.awaitBell$`, func() {
				page, err := p.Box("Bob", format.Origin{}).Inbox(ctx, index.InboxQuery{UrgentOnly: true}, false, maildir.Waiting{For: maildir.MaxWait})
				if err == nil && (len(page.Messages) != 1 || page.Messages[0].ID != m.ID) {
					err = errors.New("nothing on the page")
				}
				came <- err
			})
			if err != nil {
				t.Fatal(err)
			}
			old, err := os.ReadFile(filepath.Join(p.Dir(), filepath.FromSlash(path)))
			if err != nil {
				t.Fatal(err)
			}
			if halfway != "" {
				putByHand(t, p, path, halfway)
				await(t, func() bool { n, err := p.CountProblems(t.Context()); return n == 1 || err != nil })
			}
			putByHand(t, p, path, strings.Replace(string(old), `"importance": "normal"`, `"importance": "urgent"`, 1))
			if err := <-came; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSeatOfTwo checks that if two agents make calls from one pane at the same time, exactly one of them gets the
// seat.
func TestSeatOfTwo(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann", "Bob")
	for _, n := range []string{"Ann", "Bob"} {
		send(t, p, "Ann", maildir.Draft{To: []string{n}, Subject: "s", Body: "b"})
		if err := p.Agents.SetPresence(t.Context(), n, format.Ready); err != nil {
			t.Fatal(err)
		}
	}
	for range 200 {
		at := maildir.Pane{Tmux: "/tmp/tmux,1,0", Pane: "%1"}
		var all sync.WaitGroup
		for _, n := range []string{"Ann", "Bob"} {
			p.Sessions.SetSeat(n, maildir.Pane{})
			all.Go(func() { p.Sessions.SetSeat(n, at) })
		}
		all.Wait()
		seated := 0
		for _, name := range []string{"Ann", "Bob"} {
			if w := window(t, p, name); w == nil {
				t.Fatal("there is nothing to report")
			} else if w.Pane == at {
				seated++
			}
		}
		if seated != 1 {
			t.Fatalf("%d agents share one pane", seated)
		}
	}
}

// TestImporting checks that the import of a very large number of edits is reported until it is complete.
func TestImporting(t *testing.T) {
	t.Parallel()
	s := &stepper{}
	p := project(t, storetest.Config{NoWatcher: true, Step: s.step}, "Ann", "Bob")
	if im := p.Importing(history.Import{}); im != nil {
		t.Errorf("%+v", im)
	}
	s.stopAt("record")
	sent := sendLater(t, p, "s")
	<-s.reached // the writer is stopped, so it imports no edits
	var paths []string
	for i := range history.ImportFrom {
		paths = append(paths, fmt.Sprintf("messages/2026/m%d.md", i))
	}
	p.Edited(paths, false)
	if im := p.Importing(history.Import{}); im == nil || im.Unindexed != len(paths) {
		t.Errorf("%+v", im)
	}
	close(s.goOn)
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	await(t, func() bool { return p.Importing(p.HistoryState().Import) == nil })
}

// TestFloodStops checks that a store can stop while it is importing a very large number of edits, even if every
// portion contains empty marks that need a time. The next start must import the rest.
func TestFloodStops(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "store")
	var first halts
	portions := 0 // used by the writer and, after the writer has ended, by the test
	portion := func(paths []string) {
		if !slices.ContainsFunc(paths, func(p string) bool { return strings.HasSuffix(p, ".read") }) {
			return
		}
		first.pass("a portion")
		portions++
	}
	s := storetest.Open(t, storetest.Config{Root: root, NoWatcher: true, NoCheck: true,
		Index: func(x index.Index) index.Index { return &watched{Index: x, ingest: portion} }})
	p := projectIn(t, s.Store, "Ann", "Bob")
	var flood []string
	for n := range 2000 {
		mark := fmt.Sprintf("agents/Bob/inbox/2026/m%d.read", n)
		flood = append(flood, mark)
		putByHand(t, p, mark, "")
	}
	start := first.at(func(string) bool { return true })
	p.Edited(flood, false)
	<-start.reached
	s.StopBy(time.Now().Add(time.Hour))
	s.End()
	close(start.goOn)
	s.Stop()
	if portions != 1 {
		t.Errorf("%d portions", portions)
	}
	s = storetest.Open(t, storetest.Config{Root: root, NoWatcher: true, NoCheck: true})
	p = s.Projects()[0]
	await(t, func() bool { return areTimed(t, p, flood) })
}
