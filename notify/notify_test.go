package notify

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/fixtures/storetest"
	"mailtree/fixtures/waits"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/keys"
	"mailtree/maildir/storedir"
)

func TestMain(m *testing.M) {
	if err := storetest.Isolate(os.Setenv); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// desk is a store with a notifier whose command writes its standard input and the value of Variable to a file.
type desk struct {
	t     *testing.T
	store *storetest.Store
	p     *maildir.Project
	n     *Notifier
	clock time.Time
	file  string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, store: storetest.Open(t, storetest.Config{}), clock: time.Now(), file: filepath.Join(t.TempDir(), "lines")}
	p, err := d.store.EnsureProject(t.Context(), "/p/shop")
	d.check(err)
	d.p = p
	for _, name := range []string{"Ann", "Bob", "robin"} {
		err := p.Agents.EnsureAgent(t.Context(), name, maildir.Registration{})
		d.check(err)
	}
	d.send("Before", format.Urgent, true)
	d.n = New(Config{
		Store:   d.store.Store,
		Me:      "robin",
		Command: []string{"/bin/sh", "-c", `{ cat; echo "$MAILTREE_NOTICE"; } >>"$0"`, d.file},
		Log:     slog.New(slog.DiscardHandler),
	})
	d.n.now = func() time.Time { return d.clock }
	d.check(d.n.prime(t.Context()))
	return d
}

func (d *desk) check(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) send(subject, importance string, ack bool) *maildir.Sent {
	d.t.Helper()
	sent, err := d.p.Box("Ann", format.Origin{}).Send(d.t.Context(), maildir.Draft{
		To: []string{"robin"}, Subject: subject, Body: "text", Importance: importance, AckRequired: ack,
	})
	d.check(err)
	return sent
}

// look advances the clock by patience and then checks the store.
func (d *desk) look() {
	d.t.Helper()
	d.clock = d.clock.Add(patience)
	d.check(d.n.look(d.t.Context()))
}

// want checks the lines that the command has written since the last check.
func (d *desk) want(lines ...string) {
	d.t.Helper()
	var want strings.Builder
	for _, l := range lines {
		want.WriteString(l + "\n" + l + "\n")
	}
	got, err := os.ReadFile(d.file)
	if err != nil && !os.IsNotExist(err) {
		d.t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), string(got)); diff != "" {
		d.t.Error(diff)
	}
	d.check(os.WriteFile(d.file, nil, 0o600))
}

// TestMail checks that the command runs once for urgent or important mail that needs an acknowledgment, and not for
// other mail, for older mail, or for mail that the user reads immediately.
func TestMail(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.look()
	d.look()
	d.want()
	d.send("May I rotate the key?", format.Urgent, true)
	read := d.send("Read at once", format.High, true)
	d.send("Not important", format.Normal, true)
	d.send("No acknowledgement", format.Urgent, false)
	d.look() // the first check that sees these messages
	d.want()
	_, err := d.p.Box("robin", format.Origin{}).SetRead(t.Context(), read.ID, true)
	d.check(err)
	d.look()
	d.want("shop: Ann, urgent: May I rotate the key?")
	d.send("Important", format.High, true)
	d.look()
	d.look()
	d.look()
	d.want("shop: Ann, high: Important")
}

// TestAuthor checks that the line names the author and the subject of the message that blocks the user, even if the
// thread contains newer mail by others and begins with mail by others.
func TestAuthor(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	bob := d.p.Box("Bob", format.Origin{})
	first, err := bob.Send(t.Context(), maildir.Draft{To: []string{"robin"}, Subject: "Lunch", Body: "text"})
	d.check(err)
	_, err = d.p.Box("Ann", format.Origin{}).Send(t.Context(), maildir.Draft{
		To: []string{"robin"}, Subject: "Rotate now", Body: "text", ThreadID: first.ID, Importance: format.Urgent, AckRequired: true,
	})
	d.check(err)
	_, err = bob.Send(t.Context(), maildir.Draft{To: []string{"robin"}, Subject: "Lunch at noon", Body: "text", ThreadID: first.ID})
	d.check(err)
	d.look()
	d.look()
	d.want("shop: Ann, urgent: Rotate now")
}

// TestLooked checks that the command does not run for a message in a thread that the user's screen has shown since the
// message arrived, but runs for later messages in the thread.
func TestLooked(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.n.cfg.Looks = &Looks{}
	a := d.send("On the screen", format.Urgent, true)
	d.n.cfg.Looks.shownAt(d.p.Slug, a.ID, d.clock.Add(patience-between))
	d.look()
	d.look()
	d.want()
	_, err := d.p.Box("Ann", format.Origin{}).Reply(t.Context(), a.ID, maildir.Draft{
		To: []string{"robin"}, Body: "text", Importance: format.Urgent, AckRequired: true,
	})
	d.check(err)
	d.look()
	d.look()
	d.want("shop: Ann, urgent: On the screen")
}

// TestUntrusted checks that the command does not run for a message whose author is not proven.
func TestUntrusted(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.send("Forged", format.Urgent, true)
	changed := 0
	d.check(filepath.WalkDir(storedir.Repo(d.store.Root(), d.p.Slug), func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".md") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(data), `"Forged"`) {
			return err
		}
		changed++
		return os.WriteFile(path, []byte(strings.ReplaceAll(string(data), `"Forged"`, `"Changed"`)), 0o600)
	}))
	if changed == 0 {
		t.Fatal("no file contains the message")
	}
	waits.Until(t, "the index reads the files", func() bool {
		found, err := d.p.Search(t.Context(), maildir.SearchRequest{Text: "subject:Changed"})
		return err == nil && len(found.Hits) > 0
	})
	d.send("Proven", format.Urgent, true)
	d.look()
	d.look()
	d.want("shop: Ann, urgent: Proven")
}

// elsewhere is a store in which robin's messages were sealed on another machine.
type elsewhere struct{ *maildir.Store }

func (s elsewhere) VerifiedIn(m *index.MessageRow) (keys.Voucher, bool) {
	v, ok := s.Store.VerifiedIn(m)
	if m.From == "robin" {
		v.Machine = "laptop"
	}
	return v, ok
}

// TestElsewhere checks that the command does not run while the user works on another machine.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.n.cfg.Store = elsewhere{d.store.Store}
	answer := func() {
		t.Helper()
		_, err := d.p.Box("robin", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"Ann"}, Subject: "s", Body: "b"})
		d.check(err)
	}
	d.send("First", format.Urgent, true)
	d.look()
	d.look()
	d.want("shop: Ann, urgent: First")
	answer()
	d.send("Second", format.Urgent, true)
	d.look()
	d.look()
	d.want()
	d.n.cfg.Store = d.store.Store
	d.send("Third", format.Urgent, true)
	d.look()
	d.look()
	d.want("shop: Ann, urgent: Second", "shop: Ann, urgent: Third")
}

// TestPrompt checks that the command runs for each permission prompt that the user does not answer immediately.
func TestPrompt(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	key := maildir.SessionKey{Client: "claude", ID: "one"}
	_, err := d.p.Sessions.Begin(t.Context(), maildir.SessionEvent{SessionKey: key, Agent: "Ann", Dir: "/p/shop"})
	d.check(err)
	d.p.Sessions.SetAsking(key, true, "")
	d.look()
	d.p.Sessions.SetAsking(key, false, "")
	d.look()
	d.want()
	for range 2 {
		d.p.Sessions.SetAsking(key, true, "")
		d.look()
		d.look()
		d.look()
		d.want("shop: Ann asks for permission (claude)")
		d.p.Sessions.SetAsking(key, false, "")
		d.look()
	}
	d.want()
}

// TestLine checks that the command gets one printable line of limited length, regardless of the text in the files.
func TestLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"shop: Ann":              "shop: Ann",
		"shop: Ann\n\x1b[31mred": `"shop: Ann\n\x1b[31mred"`,
		strings.Repeat("ä", 150): strings.Repeat("ä", 100) + "…",
	} {
		if got := line(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestCommand checks that the error explains why a command failed.
func TestCommand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ command, want string }{
		{"/bin/false", "run /bin/false: exit status 1"},
		{"/nosuch/program", "no such file"},
		{"nosuch-program", "not found"},
	} {
		if err := run(t.Context(), []string{c.command}, "line"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.command, err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, []string{"/bin/true"}, "line"); err == nil {
		t.Error("a command ran although the server stops")
	}
}
