package indexer

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/tree"
)

var testStart = time.Date(2025, 10, 23, 15, 0, 0, 0, time.UTC)

// desk is a project's tree together with its index.
type desk struct {
	*Index
	t    *testing.T
	dir  string
	tree *tree.Tree
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{Index: openIndex(t), t: t, dir: t.TempDir()}
	d.patience = time.Minute // searches must not time out on a slow machine
	d.tree = openTree(t, d.dir)
	attach(t, d.Index, "p", d.tree)
	return d
}

// send writes a message as the server would, and ingests it.
func (d *desk) send(m format.Message) {
	d.t.Helper()
	if m.Importance == "" {
		m.Importance = format.Normal
	}
	if m.Created.IsZero() {
		m.Created = testStart
	}
	var paths []string
	put := func(p string, bcc ...string) {
		c := m
		c.BCC = bcc
		putFile(d.t, d.dir, p, string(format.FormatMessage(&c)))
		paths = append(paths, p)
	}
	put("messages/" + m.ID + ".md")
	put("agents/"+m.From+"/outbox/"+m.ID+".md", m.BCC...)
	for _, n := range append(append([]string{}, m.To...), m.CC...) {
		put("agents/" + n + "/inbox/" + m.ID + ".md")
	}
	for _, n := range m.BCC {
		put("agents/"+n+"/inbox/"+m.ID+".md", n)
	}
	ingest(d.t, d.Index, "p", paths...)
}

// TestMessageFields checks that the index keeps every field of a message.
func TestMessageFields(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	want := format.Message{
		ID:          "m1",
		ThreadID:    "t",
		Project:     "/p",
		From:        "ann@example.org",
		To:          []string{"Bob", "cat@example.org"},
		CC:          []string{"Dan"},
		Subject:     "s",
		Created:     testStart,
		Importance:  format.High,
		AckRequired: true,
		InReplyTo:   "2@example.org",
		References:  []string{"0@example.org", "two words"},
		MessageID:   "3@example.org",
		Problems:    []string{"the date cannot be read"},
		Attachments: []format.Attachment{{Type: "file", Path: "attachments/aa/a.html"}},
		HTML:        "attachments/aa/a.html",
		Key:         "k",
		Origin:      format.Origin{Auth: "dmarc:example.org", Door: format.DoorGateway, Terminal: true},
		MediaType:   format.PlainText,
		Body:        "text",
	}
	putFile(t, d.dir, "messages/m1.md", string(format.FormatMessage(&want)))
	ingest(t, d.Index, "p", "messages/m1.md")
	m, err := d.Message(t.Context(), "p", "m1", index.WithBody, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.Digest = nil
	if diff := cmp.Diff(want, m.Message); diff != "" {
		t.Error(diff)
	}
	if got := d.find("from:ann@example.org to:cat@example.org"); got != "m1" {
		t.Errorf("found %q by the addresses", got)
	}
}

// TestInboxOfMany checks that there is no deadlock if the number of callers that read an inbox at the same time exceeds
// the number of connections. The index has just been opened, so no query has been prepared.
func TestInboxOfMany(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.send(format.Message{ID: "m0", From: "Ann", To: []string{"Bob"}, Subject: "s", Body: "b"})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for n := range 4 * readers {
		all.Go(func() {
			page, c, err := d.Inbox(ctx, index.InboxQuery{Project: "p", Agent: "Bob", UnreadOnly: n%2 == 0, Bodies: n%4 < 2})
			if err != nil || len(page) != 1 || c.Unread != 1 {
				t.Errorf("%+v %+v (%v)", page, c, err)
			}
		})
	}
	all.Wait()
}

// TestInbox checks that the order, pages, filters, marks and counts of an inbox agree with each other and with the
// feed of changes.
func TestInbox(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for n := range 5 {
		m := format.Message{ID: fmt.Sprintf("m%d", n), From: "Ann", To: []string{"Bob"}, Subject: "s", Body: "b", ThreadID: "T",
			Created: testStart.Add(time.Duration(n) * time.Minute)}
		if n == 2 {
			m.Importance = format.Urgent
		}
		d.send(m)
	}
	putFile(t, d.dir, "agents/Bob/inbox/m4.read", "2025-10-24T00:00:00Z\n")
	changes := ingest(t, d.Index, "p", "agents/Bob/inbox/m4.read")
	if len(changes) != 1 || changes[0].Kind != format.KindRead || changes[0].Op != index.Added || changes[0].Agent != "Bob" ||
		changes[0].ID != "m4" || changes[0].Thread != "T" {
		t.Errorf("change: %+v", changes)
	}
	if again := ingest(t, d.Index, "p", "agents/Bob/inbox/m4.read", "messages/m1.md", "agents"); len(again) != 0 {
		t.Errorf("already up to date: %+v", again)
	}
	for _, c := range []struct {
		q    index.InboxQuery
		want string
	}{
		{index.InboxQuery{}, "m4 m3 m2 m1 m0"},
		{index.InboxQuery{UnreadOnly: true}, "m3 m2 m1 m0"},
		{index.InboxQuery{UrgentOnly: true}, "m2"},
		{index.InboxQuery{Since: testStart.Add(2 * time.Minute)}, "m4 m3"},
		{index.InboxQuery{Limit: 2}, "m4 m3"},
	} {
		c.q.Project, c.q.Agent = "p", "Bob"
		rows, _, err := d.Inbox(t.Context(), c.q)
		var ids []string
		for _, r := range rows {
			ids = append(ids, r.ID)
		}
		if got := strings.Join(ids, " "); err != nil || got != c.want {
			t.Errorf("%+v: %q, want %q (%v)", c.q, got, c.want, err)
		}
	}
	if c, err := d.Counts(t.Context(), "p", "Bob"); err != nil || c != (index.Counts{Total: 5, Unread: 4}) {
		t.Errorf("counts: %+v %v", c, err)
	}
	old, err := d.OldestUnread(t.Context(), "p", "Bob", 2)
	if err != nil || len(old) != 2 || old[0].ID != "m0" || old[0].BodyBytes != 1 {
		t.Errorf("oldest: %+v %v", old, err)
	}
	a, err := d.Agent(t.Context(), "p", "Bob")
	if err != nil || !a.LastActive.Equal(time.Date(2025, 10, 24, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("agent: %+v %v", a, err)
	}
	all, err := d.Changes(t.Context(), 0, 100)
	last, lerr := d.LastChange(t.Context())
	if err != nil || lerr != nil || len(all) != 16 || all[15].Seq != last || all[15].Path != changes[0].Path {
		t.Errorf("changes: %d %v %v", len(all), err, lerr)
	}
}

// TestTies checks that many messages with exactly the same time all get row numbers after only a few tries, and that
// each message is listed once.
func TestTies(t *testing.T) {
	t.Parallel()
	n := 3000
	taken := map[int64]bool{}
	tries := 0
	for i := range 100_000 {
		for try := 0; ; try++ {
			tries++
			if row := place(1e15, fmt.Sprintf("id%d", i), try); !taken[row] {
				taken[row] = true
				break
			}
		}
	}
	if tries > 20*100_000 {
		t.Errorf("%d tries for 100,000 messages with the same time", tries)
	}
	d := newDesk(t)
	var paths []string
	for i := range n {
		p := fmt.Sprintf("messages/m%d.md", i)
		putFile(t, d.dir, p, fmt.Sprintf("---json\n{\"id\": \"m%d\", \"from\": \"Ann\", \"created\": \"2025-10-23T15:22:14Z\", "+
			"\"thread_id\": \"T\"}\n---\n", i))
		paths = append(paths, p)
	}
	ingest(t, d.Index, "p", paths...)
	rows, err := d.Thread(t.Context(), index.ThreadQuery{Project: "p", Thread: "T"})
	if err != nil || len(rows) != n {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	for _, year := range []int{1, 1899, 2025, 2186, 9999} {
		if row := place(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro(), "x", 24); row <= 0 {
			t.Errorf("year %d: row %d", year, row)
		}
	}
	verify(t, d.Index, map[string]*tree.Tree{"p": d.tree})
}

// TestProjects checks that messages with the same id in two projects do not affect each other, and that a dropped
// project leaves no rows behind.
func TestProjects(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.send(format.Message{ID: "m1", From: "Ann", To: []string{"Bob"}, Subject: "s", Body: "first", ThreadID: "T"})
	one, dir := d.tree, t.TempDir()
	two := openTree(t, dir)
	putFile(t, dir, "messages/m1.md", "---json\n{\"id\": \"m1\", \"from\": \"Ann\", \"thread_id\": \"t\", "+
		"\"created\": \"2025-11-23T15:22:14Z\"}\n---\n\nsecond\n")
	attach(t, d.Index, "q", two)
	if _, err := d.Reconcile(t.Context(), "q", nil); err != nil {
		t.Fatal(err)
	}
	verify(t, d.Index, map[string]*tree.Tree{"p": one, "q": two})
	if got := d.find("first OR second"); got != "m1" {
		t.Errorf("found %q", got)
	}
	if slugs, err := d.ProjectsWith(t.Context(), format.KindCanonical, "m1"); err != nil || strings.Join(slugs, " ") != "q p" {
		t.Errorf("projects with m1: %v %v", slugs, err)
	}
	if slugs, err := d.ProjectsWith(t.Context(), format.KindOther, "T"); err != nil || strings.Join(slugs, " ") != "p" {
		t.Errorf("projects with T: %v %v", slugs, err)
	}
	if names, err := d.Names(t.Context(), "", format.KindOther, "t", 10); err != nil || strings.Join(names, " ") != "T t" {
		t.Errorf("threads: %v %v", names, err)
	}
	if names, err := d.Names(t.Context(), "p", format.KindProfile, "b", 10); err != nil || strings.Join(names, " ") != "Bob" {
		t.Errorf("agents: %v %v", names, err)
	}
	if s, err := d.Stats(t.Context()); err != nil || s != (index.Stats{Projects: 2, Agents: 2, Messages: 2, Deliveries: 1, Unread: 1}) {
		t.Errorf("stats: %+v %v", s, err)
	}
	if err := d.Retain(t.Context(), map[string]*tree.Tree{"p": one}); err != nil {
		t.Fatal(err)
	}
	verify(t, d.Index, map[string]*tree.Tree{"p": one})
}

// TestDamaged checks that an index file that is damaged or from another version is recreated, and that Rebuild
// produces the same result as Reconcile. The log must warn about damage, but not about another version, which is
// normal after an upgrade.
func TestDamaged(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		damage func(string) error
		said   string // what the log must contain
	}{
		"garbage":   {func(p string) error { return os.WriteFile(p, []byte("this is no database, not at all"), 0o666) }, "level=WARN msg=\"the index will be rebuilt\""},
		"truncated": {func(p string) error { return os.Truncate(p, 5000) }, "level=WARN msg=\"the index will be rebuilt\""},
		"empty":     {func(p string) error { return os.Truncate(p, 0) }, ""},
		"gone":      {os.Remove, ""},
		"version":   {otherVersion, "level=INFO msg=\"the index was created by another version of mailtree and will be rebuilt\""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.send(format.Message{ID: "m1", From: "Ann", To: []string{"Bob"}, Subject: "s", Body: "b"})
			path, trees := filepath.Join(t.TempDir(), "i.sqlite3"), map[string]*tree.Tree{"p": d.tree}
			if err := Rebuild(t.Context(), path, trees, nil); err != nil {
				t.Fatal(err)
			}
			if err := tt.damage(path); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			x, err := Open(t.Context(), Config{Path: path, Log: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			if !x.Fresh() {
				t.Error("not fresh")
			}
			if said := log.String(); !strings.Contains(said, tt.said) || (tt.said == "") != (said == "") || strings.Count(said, "\n") > 1 {
				t.Errorf("the log contains %q, want %q", said, tt.said)
			}
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			if err := Rebuild(t.Context(), path, trees, nil); err != nil {
				t.Fatal(err)
			}
			if x, err = Open(t.Context(), Config{Path: path}); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { x.Close() })
			attach(t, x, "p", d.tree)
			if x.Fresh() || dump(t, x) != dump(t, d.Index) {
				t.Error("the rebuilt index differs")
			}
			verify(t, x, trees)
		})
	}
}

// otherVersion creates an intact database with the version number of a different program version.
func otherVersion(path string) error {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	_, err = db.Exec("PRAGMA user_version = 1")
	return errors.Join(err, db.Close())
}

// TestShortBodies checks that ShortBodies returns the bodies of a thread after a cursor, including empty bodies and the
// body of the message whose id is the thread's id. Long bodies are omitted.
func TestShortBodies(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for i, body := range []string{"before", "first", "", strings.Repeat("x", 8192), strings.Repeat("x", 8193)} {
		m := format.Message{ID: fmt.Sprint("m", i), ThreadID: "m1", From: "Ann", To: []string{"Bob"}, Subject: "s", Body: body}
		if i == 1 {
			m.ThreadID = ""
		}
		m.Created = testStart.Add(time.Duration(i) * time.Second)
		d.send(m)
	}
	d.send(format.Message{ID: "other", From: "Ann", To: []string{"Bob"}, Subject: "s", Body: "other"})
	rows, err := d.Thread(t.Context(), index.ThreadQuery{Project: "p", Thread: "m1"})
	if err != nil || len(rows) != 5 {
		t.Fatal(rows, err)
	}
	got, err := d.ShortBodies(t.Context(), "p", "m1", rows[0].Cursor)
	want := map[string]string{"m1": "first", "m2": "", "m3": strings.Repeat("x", 8192)}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(diff, err)
	}
}
