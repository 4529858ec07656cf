package maildir_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
)

// logOf returns the history, with one line for each entry: agent, verb, channel, summary, and files.
func logOf(t *testing.T, p *maildir.Project, q maildir.LogQuery) string {
	t.Helper()
	var all strings.Builder
	err := p.Log(t.Context(), q, func(e *history.Entry) error {
		fmt.Fprintf(&all, "%s %s %s %s", e.Who, e.Verb, e.Door, e.Summary)
		for _, f := range e.Files {
			fmt.Fprintf(&all, " [%s %s]", f.Op, f.Path)
		}
		all.WriteString("\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// TestLogOpen checks that a message's log reveals no bcc recipients if LogQuery.Open is set, no matter which
// operations have been performed on the message. The store's owner must see everything (Invariant I7).
func TestLogOpen(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann", "Bob", "Dan")
	m := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, BCC: []string{"Dan"}, Body: "text"})
	for _, name := range []string{"Dan", "Bob"} {
		if _, err := p.Box(name, format.Origin{}).Acknowledge(t.Context(), m.ID); err != nil {
			t.Fatal(err)
		}
	}
	all, open := logOf(t, p, maildir.LogQuery{Of: m.ID}), logOf(t, p, maildir.LogQuery{Of: m.ID, Open: true})
	if !strings.Contains(all, "Dan acknowledge") || !strings.Contains(all, "agents/Dan/inbox") {
		t.Errorf("the owner does not see the blind copy:\n%s", all)
	}
	if strings.Contains(open, "Dan") || strings.Count(open, "\n") != 2 || !strings.Contains(open, "Bob acknowledge") ||
		!strings.Contains(open, "[added messages/") || !strings.Contains(open, "[added agents/Bob/inbox/") {
		t.Errorf("everyone sees:\n%s", open)
	}
	if err := p.Log(t.Context(), maildir.LogQuery{Of: "nothing", Open: true}, nil); !errors.Is(err, maildir.ErrNotFound) {
		t.Errorf("no such message: %v", err)
	}
}

// TestLogDoor checks that each operation is reported with its own channel, no matter which files the query selects.
func TestLogDoor(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann", "Bob")
	byPage, byCLI := format.Through(t.Context(), format.DoorPage), format.Through(t.Context(), format.DoorCLI)
	sent, err := p.Box("Ann", format.Origin{}).Send(byCLI, maildir.Draft{To: []string{"Bob"}, Body: "text"})
	if err == nil {
		_, err = p.Box("Bob", format.Origin{}).Acknowledge(byPage, sent.ID)
	}
	if err == nil {
		_, err = p.Box("Ann", format.Origin{}).Delete(byCLI, sent.ID)
	}
	if err == nil {
		_, err = p.Box("Ann", format.Origin{}).Undo(byPage, maildir.Undoing{})
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []string{sent.ID, "agents/Bob/inbox"} {
		got := logOf(t, p, maildir.LogQuery{Of: of})
		for _, want := range []string{"Ann undo-delete page ", "Ann delete cli ", "Bob acknowledge page ", "Ann send cli "} {
			if !strings.Contains(got, want) {
				t.Errorf("%s has no %q:\n%s", of, want, got)
			}
		}
	}
}

// TestLogOf checks the log by thread, by path and with a limit, the log of a message that was removed from the tree,
// and the log of names that are not in the history.
func TestLogOf(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann", "Bob")
	one := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Body: "one", ThreadID: "T-1"})
	two := send(t, p, "Bob", maildir.Draft{To: []string{"Ann"}, Body: "two", ThreadID: "T-1"})
	for of, want := range map[string]int{
		"T-1":                           2,
		one.ID:                          1,
		"agents/Ann/outbox":             1,
		"agents/Ann":                    3, // it registered, sent a message and received one
		"claims":                        0,
		"Bob":                           2, // it registered and sent a message
		"msg_20010101_0000000000000000": 0,
	} {
		all := logOf(t, p, maildir.LogQuery{Of: of})
		if got := strings.Count(all, "\n"); got != want {
			t.Errorf("%s: %d entries, want %d\n%s", of, got, want, all)
		}
	}
	if got := logOf(t, p, maildir.LogQuery{Of: "T-1", Limit: 1}); !strings.HasPrefix(got, "Bob send") {
		t.Errorf("the newest entry is not first:\n%s", got)
	}
	for _, of := range []string{"/etc/passwd", "../x", "agents/../../x"} {
		if err := p.Log(t.Context(), maildir.LogQuery{Of: of}, nil); !errors.Is(err, maildir.ErrInvalid) {
			t.Errorf("%s: %v", of, err)
		}
	}
	for _, pattern := range []string{"messages/*/*/*/", "agents/*/*box/*/*/*/"} {
		files, err := filepath.Glob(filepath.Join(p.Dir(), pattern+two.ID+"*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if err := os.Remove(f); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := logOf(t, p, maildir.LogQuery{Of: two.ID}); !strings.Contains(got, "Bob send") {
		t.Errorf("a message that no longer exists: %q", got)
	}
}

// TestLogThread checks that a thread's log includes deleted messages, even if no message of the thread is left in the
// tree.
func TestLogThread(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann", "Bob")
	var ids []string
	for _, body := range []string{"one", "two", "three"} {
		m := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: body, Body: body, ThreadID: "T-1"})
		ids = append(ids, m.ID)
	}
	send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Body: "apart", ThreadID: "T-2"})
	for left := range ids {
		if _, err := p.Box("Ann", format.Origin{}).Delete(t.Context(), ids[left]); err != nil {
			t.Fatal(err)
		}
		got := logOf(t, p, maildir.LogQuery{Of: "T-1"})
		if strings.Count(got, "Ann send") != 3 || strings.Count(got, " delete ") != left+1 {
			t.Errorf("%d deleted:\n%s", left+1, got)
		}
	}
	if err := p.Log(t.Context(), maildir.LogQuery{Of: "T-3"}, nil); !errors.Is(err, maildir.ErrNotFound) {
		t.Errorf("no such thread: %v", err)
	}
}
