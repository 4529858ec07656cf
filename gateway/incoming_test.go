package gateway

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/gateway/auth"
	"mailtree/gateway/in"
	"mailtree/gateway/message"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

func TestMain(m *testing.M) {
	if err := storetest.Isolate(os.Setenv); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// desk contains a store and its Incoming value. The mailbox build is in a separate project, and the mailbox ops is in
// the default project.
type desk struct {
	*Incoming
	t              *testing.T
	backend, other *maildir.Project
	bounces        []*message.Bounce
	failing        error // error that Bounce returns
}

func newDesk(t *testing.T, cfg storetest.Config) *desk {
	t.Helper()
	d := &desk{t: t}
	d.Incoming = &Incoming{Store: storetest.Open(t, cfg).Store, Log: slog.New(slog.DiscardHandler)}
	d.Bounce = func(_ context.Context, b *message.Bounce) error {
		d.bounces = append(d.bounces, b)
		return d.failing
	}
	make := func(project, name string) *maildir.Project {
		p, err := d.Store.EnsureProject(t.Context(), project)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.As(maildir.Caller{UID: os.Geteuid()}, format.Origin{}).CreateMailbox(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		return p
	}
	d.backend, d.other = make("/abs/path/backend", "build"), make(maildir.DefaultProject, "ops")
	return d
}

// deliver delivers an email with the given lines to a mailbox.
func (d *desk) deliver(mailbox, sender, proven string, lines ...string) error {
	d.t.Helper()
	raw := []byte(strings.Join(lines, "\r\n") + "\r\n")
	m, err := message.Parse(raw)
	if err != nil {
		d.t.Fatal(err)
	}
	return errors.Join(d.Deliver(d.t.Context(), &in.Delivery{
		To: []in.Recipient{{Address: mailbox + "@mailtree.local", Mailbox: mailbox}}, Sender: sender, Raw: raw, Message: m,
		Auth: auth.Result{Domain: proven},
	})...)
}

// newest returns the newest message in a mailbox, and checks that the mailbox contains want messages.
func (d *desk) newest(p *maildir.Project, agent string, want int) *index.Delivery {
	d.t.Helper()
	page, err := p.Box(agent, format.Origin{}).Inbox(d.t.Context(), index.InboxQuery{Bodies: true}, false, maildir.Waiting{})
	if err != nil || len(page.Messages) != want {
		d.t.Fatalf("%d messages, %v; want %d", len(page.Messages), err, want)
	}
	return &page.Messages[0]
}

// TestParties checks that addresses of mailboxes in the same project are replaced with agents' names. A sender must
// be a single address, and may be in one of our domains only if that domain vouches for the sender.
func TestParties(t *testing.T) {
	t.Parallel()
	d := newDesk(t, storetest.Config{})
	for i, c := range []struct{ from, proven, want string }{
		{"From: Build <ann@example.org>", "", "ann@example.org"},
		{"From: ann@example.org, bob@example.org", "", maildir.UnknownSender},
		{"From: build@mailtree.local", "", maildir.UnknownSender},
		{"From: Ops+x@MAILTREE.local", "", maildir.UnknownSender},
		{"From: build@mailtree.local", "mailtree.local", "build@mailtree.local"},
		{"From: Postmaster@mailtree.local", "", maildir.UnknownSender},
		{"From: nobody@MAILTREE.local", "", maildir.UnknownSender},
		{"From: person@mailtree.local", "mailtree.local", "person@mailtree.local"},
		{"Subject: none", "", maildir.UnknownSender},
		{"From: root@localhost", "", maildir.UnknownSender},
		{"From: root@127.0.0.1", "", maildir.UnknownSender},
		{"From: Ann@frontend", "", maildir.UnknownSender}, // looks like the address of an agent in another project
	} {
		err := d.deliver("build", "a@example.org", c.proven, c.from, "To: Build+tag@mailtree.local, ops@mailtree.local, BUILD@mailtree.local",
			"Cc: who@mailtree.local, x@127.0.0.1, x@sub.localhost, Ann@frontend, x@example.net", "Message-ID: <"+c.want+c.proven+">", "", "Hi")
		if err != nil {
			t.Fatal(err)
		}
		got := d.newest(d.backend, "build", i+1)
		if got.From != c.want || !slices.Equal(got.To, []string{"build", "ops@mailtree.local"}) ||
			!slices.Equal(got.CC, []string{"who@mailtree.local", "x@example.net"}) || got.Body != "Hi" {
			t.Errorf("%s: %+v", c.from, got.Message)
		}
	}
}

// TestProblems checks that the stored message lists everything that could not be read, up to the limits.
func TestProblems(t *testing.T) {
	t.Parallel()
	d := newDesk(t, storetest.Config{})
	lines := []string{"From: a@example.org", "Date: soon"}
	for i := range 60 {
		lines = append(lines, "xxx"+strconv.Itoa(i)+strings.Repeat("x", 1000))
	}
	if err := d.deliver("build", "a@example.org", "", append(lines, "", "Hi")...); err != nil {
		t.Fatal(err)
	}
	got := d.newest(d.backend, "build", 1).Problems
	if len(got) != 20 || !strings.HasPrefix(got[0], "invalid header line: \"xxx") || len(got[0]) > 300 {
		t.Errorf("%d: %q", len(got), got)
	}
	if err := d.deliver("build", "a@example.org", "", "From: a@example.org", "Date: soon", "", "Hello"); err != nil {
		t.Fatal(err)
	}
	if got := d.newest(d.backend, "build", 2).Problems; !slices.Equal(got, []string{`the date "soon" is not valid`}) {
		t.Errorf("%q", got)
	}
}

// TestAutomatic checks that a stored message records whether a program wrote it.
func TestAutomatic(t *testing.T) {
	t.Parallel()
	d := newDesk(t, storetest.Config{})
	for i, field := range []string{"Subject: 1", "Auto-Submitted: auto-replied"} {
		if err := d.deliver("build", "a@example.org", "", "From: a@example.org", field, "", "Hi"); err != nil {
			t.Fatal(err)
		}
		if got := d.newest(d.backend, "build", i+1); got.Automatic != (i == 1) {
			t.Errorf("%s: %+v", field, got.Message)
		}
	}
}

// TestHiddenRecipient checks that a message records which domain vouches for its sender even if the email does not
// list the mailbox as a recipient, as in the postmaster@ or catch-all mailbox.
func TestHiddenRecipient(t *testing.T) {
	t.Parallel()
	d := newDesk(t, storetest.Config{})
	if err := d.deliver("ops", "ann@example.org", "example.org", "From: ann@example.org", "To: list@example.net", "", "Hi"); err != nil {
		t.Fatal(err)
	}
	box, err := d.other.As(maildir.Caller{Root: true}, format.Origin{}).Box(t.Context(), "ops")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := box.List(t.Context(), index.BoxQuery{Limit: 1})
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	if by, ok := d.Store.VerifiedIn(&rows[0].MessageRow); !ok || by.String() != "dmarc example.org" {
		t.Errorf("%s vouches for the sender", by)
	}
}

// TestLookup checks that an address is matched to its mailbox regardless of case. If a mailbox is full, Lookup must
// report this, and deliveries to the mailbox must be refused.
func TestLookup(t *testing.T) {
	t.Parallel()
	d := newDesk(t, storetest.Config{Depth: 1})
	for local, want := range map[string]error{"Build": nil, "ops": nil, "nobody": in.ErrUnknown} {
		if got, err := d.Lookup(t.Context(), local, "mailtree.local"); !errors.Is(err, want) || err == nil && got != strings.ToLower(local) {
			t.Errorf("%s: %s, %v", local, got, err)
		}
	}
	if err := d.deliver("build", "", "", "From: a@example.org", "", "1"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Lookup(t.Context(), "build", ""); !errors.Is(err, in.ErrFull) {
		t.Error(err)
	}
	if err := d.deliver("build", "", "", "From: a@example.org", "", "2"); !errors.Is(err, in.ErrFull) {
		t.Error(err)
	}
	if err := d.deliver("nobody", "", "", "From: a@example.org", "", "2"); err == nil {
		t.Error("mail for nobody was kept")
	}
	got, err := d.Missing(t.Context(), &Config{Postmaster: "nobody", CatchAll: ""})
	if err != nil || !slices.Equal(got, []string{"nobody"}) {
		t.Error(got, err)
	}
}

// TestBounces checks that a delivery status report from the null sender is passed to Bounce and stored in the thread of
// the original message. If Bounce fails, the delivery must fail too, so that the sender tries again.
func TestBounces(t *testing.T) {
	t.Parallel()
	d := newDesk(t, storetest.Config{})
	sent, err := d.backend.Box("build", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"build"}, Subject: "s", Body: "b", ThreadID: "T"})
	if err != nil {
		t.Fatal(err)
	}
	report := []string{
		"From: MAILER-DAEMON@example.org", "To: build@mailtree.local", "MIME-Version: 1.0",
		`Content-Type: multipart/report; report-type=delivery-status; boundary=b`, "",
		"--b", "", "It failed", "--b", "Content-Type: message/delivery-status", "",
		"Reporting-MTA: dns; example.org", "", "Final-Recipient: rfc822; x@example.org", "Action: failed", "Status: 5.1.1", "",
		"--b", "Content-Type: text/rfc822-headers", "", "Message-ID: <" + sent.ID + "@mailtree.local>", "", "--b--",
	}
	if err := d.deliver("build", "somebody@example.org", "", report...); err != nil || len(d.bounces) > 0 {
		t.Errorf("%v: %d bounces from an ordinary sender", err, len(d.bounces))
	}
	d.failing = errors.New("the disk is full")
	if err := d.deliver("build", "", "", report...); !errors.Is(err, d.failing) {
		t.Error(err)
	}
	d.failing = nil
	err = d.deliver("build", "", "", report...)
	if err != nil || len(d.bounces) != 2 || d.bounces[1].MessageID != sent.ID+"@mailtree.local" {
		t.Errorf("%v %+v", err, d.bounces)
	}
	if got := d.newest(d.backend, "build", 2); got.ThreadID != "T" || got.InReplyTo != sent.ID {
		t.Errorf("%+v", got.Message)
	}
}
