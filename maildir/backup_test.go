package maildir_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/fixtures/waits"
	"mailtree/maildir"
	"mailtree/maildir/backup"
	"mailtree/maildir/format"
	"mailtree/maildir/hook"
	"mailtree/maildir/keys"
	"mailtree/maildir/outgoing"
)

// TestBackupUnderLoad checks a backup that is made while agents send and acknowledge messages. The backup is restored
// twice, as the original and as a copy. Each restored store must contain every operation that was complete before the
// backup began, and must satisfy all invariants.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Config{})
	p := projectIn(t, s.Store, "Ann", "Bob", "Cat")
	var load traffic
	load.run(t, p, 4)
	waits.Until(t, "some traffic", func() bool { return load.count() > 40 })
	sent, acked := load.answered()
	var file bytes.Buffer
	if err := s.Backup(t.Context(), &file, "test"); err != nil {
		t.Fatal(err)
	}
	during := load.count()
	waits.Until(t, "traffic after the backup", func() bool { return load.count() > during })
	load.end()
	if during <= len(sent) {
		t.Log("no message was sent during the backup")
	}
	for _, how := range []backup.How{backup.Replace, backup.Copy} {
		root := filepath.Join(t.TempDir(), "restored")
		r, err := backup.Restore(t.Context(), bytes.NewReader(file.Bytes()), root, how)
		if err != nil || r.Projects != 1 || r.Emails+r.Runs+r.Drafts+r.Unshared > 0 {
			t.Fatalf("%v: %+v, %v", how, r, err)
		}
		if bad := storetest.CheckAnswered(root, sent, acked, ".ack"); len(bad) > 0 {
			t.Errorf("%v: %s", how, strings.Join(bad, "\n"))
		}
		again := storetest.Open(t, storetest.Config{Root: root})
		q := projectIn(t, again.Store)
		m := inbox(t, q, "Bob").Messages[0]
		if _, ok := again.VerifiedIn(&m.MessageRow); !ok {
			t.Errorf("%v: a message is not verified anymore", how)
		}
		send(t, q, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "after", Body: "b"})
		again.Stop()
		if bad := storetest.Check(t.Context(), root, nil); len(bad) > 0 {
			t.Errorf("%v: %s", how, strings.Join(bad, "\n"))
		}
		if same := ownKey(t, root) == ownKey(t, s.Root()); same != (how == backup.Replace) {
			t.Errorf("%v: the same key: %v", how, same)
		}
	}
}

func ownKey(t *testing.T, root string) string {
	t.Helper()
	k, err := keys.Own(root)
	if err != nil {
		t.Fatal(err)
	}
	return k.ID
}

// traffic sends messages and acknowledges them from several goroutines.
type traffic struct {
	stop    context.CancelFunc
	workers sync.WaitGroup
	made    atomic.Int64

	mu    sync.Mutex
	sent  []storetest.Sent
	acked []storetest.Mark
}

func (l *traffic) run(t *testing.T, p *maildir.Project, workers int) {
	ctx, stop := context.WithCancel(t.Context())
	l.stop = stop
	t.Cleanup(l.end)
	for w := range workers {
		l.workers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				body := fmt.Sprintf("body %d of %d", n, w)
				// These calls use t.Context() instead of ctx so that they complete, with a known result, even after
				// stop is called.
				made, err := p.Box("Ann", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"Bob", "Cat"}, Subject: "s", Body: body})
				if err == nil {
					_, err = p.Box("Bob", format.Origin{}).Acknowledge(t.Context(), made.ID)
				}
				if err != nil {
					t.Error(err)
					return
				}
				l.mu.Lock()
				l.sent = append(l.sent, storetest.Sent{ID: made.ID, From: "Ann", To: []string{"Bob", "Cat"}, Body: storetest.BodyHash(body)})
				l.acked = append(l.acked, storetest.Mark{Agent: "Bob", ID: made.ID})
				l.mu.Unlock()
				l.made.Add(1)
			}
		})
	}
}

func (l *traffic) count() int { return int(l.made.Load()) }

func (l *traffic) end() {
	l.stop()
	l.workers.Wait()
}

func (l *traffic) answered() ([]storetest.Sent, []storetest.Mark) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]storetest.Sent(nil), l.sent...), append([]storetest.Mark(nil), l.acked...)
}

// TestRestoreRepeatsNothing checks that a restored store does not repeat actions that the original store may have
// performed since the backup. It must not send an email or an outbox file a second time, or run a hook again.
func TestRestoreRepeatsNothing(t *testing.T) {
	t.Parallel()
	var o outside
	cfg := o.config()
	cfg.NoWatcher = true // keeps the file in the outbox from being sent
	s := storetest.Open(t, cfg)
	p := projectIn(t, s.Store, "Ann", "Bob")
	made := send(t, p, "Ann", maildir.Draft{To: []string{"Bob", "cat@example.org", "dan@example.org"}, Subject: "s", Body: "b"})
	item, err := p.Outgoing().Get(outgoing.ID(made.ID, "dan@example.org"))
	if err != nil || item == nil {
		t.Fatal(item, err)
	}
	item.State = outgoing.Sent
	if err := p.Outgoing().Save(item); err != nil {
		t.Fatal(err)
	}
	unsent := filepath.Join(p.Dir(), "agents", "Ann", "outbox", "plan.md")
	if err := errors.Join(
		os.WriteFile(unsent, []byte("to: Bob\n\nText.\n"), 0o600),
		os.MkdirAll(filepath.Join(p.Dir(), "agents", "Ann", "drafts"), 0o700),
		os.WriteFile(filepath.Join(p.Dir(), "agents", "Ann", "drafts", "plan.md"), []byte("to: Bob\n\nOther.\n"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	log, err := s.OpenHookLog()
	if err != nil {
		t.Fatal(err)
	}
	h := hook.Hook{Project: p.Slug, Mailbox: "Bob", Name: "h", Event: hook.OnReceive, Cmd: []string{"/bin/true"}, Timeout: 1}
	if h.Created = time.Now().Add(-time.Hour); err == nil {
		_, err = hook.NewList(s.Root()).Create(h, func(*hook.Hook) bool { return true })
	}
	if _, berr := log.Begin(&h, "msg_20260101_0000000000000000"); err != nil || berr != nil {
		t.Fatal(err, berr)
	}
	if missed, err := s.MissedFirings(t.Context(), log); err != nil || len(missed) != 1 {
		t.Fatalf("the original would run %d hooks: %v", len(missed), err)
	}
	var file bytes.Buffer
	if err := s.Backup(t.Context(), &file, "test"); err != nil {
		t.Fatal(err)
	}
	for _, how := range []backup.How{backup.Replace, backup.Copy} {
		root := filepath.Join(t.TempDir(), "restored")
		r, err := backup.Restore(t.Context(), bytes.NewReader(file.Bytes()), root, how)
		if err != nil || r.Emails != 1 || r.Runs != 1 || r.Drafts != 1 {
			t.Fatalf("%v: %+v, %v", how, r, err)
		}
		var told outside
		cfg := told.config()
		cfg.Root = root
		again := storetest.Open(t, cfg)
		q := projectIn(t, again.Store)
		items, err := q.Outgoing().Since(time.Time{})
		states := map[string]outgoing.State{}
		for _, i := range items {
			states[i.To] = i.State
		}
		if err != nil || len(states) != 2 || states["cat@example.org"] != outgoing.Unknown || states["dan@example.org"] != outgoing.Sent {
			t.Errorf("%v: %v, %v", how, states, err)
		}
		log, err := again.OpenHookLog()
		if err != nil || len(log.Abandoned()) > 0 {
			t.Errorf("%v: open runs: %v, %v", how, log.Abandoned(), err)
		}
		if missed, err := again.MissedFirings(t.Context(), log); err != nil || len(missed) > 0 {
			t.Errorf("%v: %d hooks would run again: %v", how, len(missed), err)
		}
		draft, err := os.ReadFile(filepath.Join(q.Dir(), "agents", "Ann", "drafts", "plan-2.md"))
		if err != nil || string(draft) != "to: Bob\n\nText.\n" {
			t.Errorf("%v: %q, %v", how, draft, err)
		}
		if _, err := os.Stat(filepath.Join(q.Dir(), "agents", "Ann", "outbox", "plan.md")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v: the unsent file is still in the outbox: %v", how, err)
		}
		if n := len(inbox(t, q, "Bob").Messages); n != 1 {
			t.Errorf("%v: Bob has %d messages", how, n)
		}
		again.Stop()
	}
}

// unsummed returns the archive with a wrong checksum at the end. The error is detected only if the archive is read to
// the end.
func unsummed(t *testing.T, data []byte) []byte {
	t.Helper()
	data = bytes.Clone(data)
	data[len(data)-8] ^= 1
	return data
}

// rewritten returns a backup with the entries of the given archive, followed by the entries in more.
func rewritten(t *testing.T, data []byte, more ...tar.Header) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	zw := gzip.NewWriter(&out)
	from, to := tar.NewReader(z), tar.NewWriter(zw)
	for {
		h, err := from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Name == "mailtree-backup-end.json" {
			for _, m := range more {
				text := m.PAXRecords["text"]
				m.PAXRecords, m.Size = nil, int64(len(text))
				if err := errors.Join(to.WriteHeader(&m), wrote(to.Write([]byte(text)))); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := to.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(to, from); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(to.Close(), zw.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func wrote(_ int, err error) error { return err }

// TestRestoreTypes checks that an archive entry replaces an earlier entry of another type, and that nothing is
// written through a link to a folder outside the store. A backup must be refused if it contains a link in place of a
// file or folder that the server uses.
func TestRestoreTypes(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Config{NoWatcher: true})
	p := projectIn(t, s.Store, "Ann")
	var file bytes.Buffer
	if err := s.Backup(t.Context(), &file, "test"); err != nil {
		t.Fatal(err)
	}
	repo := "projects/" + p.Slug + "/repo/"
	outside := t.TempDir()
	dir := func(name string) tar.Header {
		return tar.Header{Typeflag: tar.TypeDir, Name: repo + name + "/", Mode: 0o700}
	}
	text := func(name, text string) tar.Header {
		return tar.Header{Typeflag: tar.TypeReg, Name: repo + name, Mode: 0o755, PAXRecords: map[string]string{"text": text}}
	}
	link := func(name, to string) tar.Header {
		return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to, Mode: 0o777}
	}
	for name, tt := range map[string]struct {
		more []tar.Header
		want string // a file in the project's folder that must exist; empty if the backup must be refused
	}{
		"a folder, then a file": {[]tar.Header{dir("notes"), text("notes/a.md", "a"), text("notes", "b")}, "notes"},
		"a file, then a folder": {[]tar.Header{text("notes", "a"), dir("notes"), text("notes/a.md", "b")}, "notes/a.md"},
		"a link, then a folder": {[]tar.Header{link(repo+"notes", outside), dir("notes"), text("notes/a.md", "b")}, "notes/a.md"},
		"a user's link":         {[]tar.Header{link(repo+"notes", "project.json")}, "notes"},
		"drafts elsewhere":      {[]tar.Header{link(repo+"agents/Ann/drafts", outside), text("agents/Ann/outbox/plan.md", "to: Ann\n\nText.\n")}, ""},
		"the server's folder":   {[]tar.Header{link(repo+".mailtree", outside)}, ""},
		"a key elsewhere":       {[]tar.Header{link("key", outside+"/key")}, ""},
		"a project elsewhere":   {[]tar.Header{link("projects/other", outside)}, ""},
	} {
		root := filepath.Join(t.TempDir(), "restored")
		_, err := backup.Restore(t.Context(), bytes.NewReader(rewritten(t, file.Bytes(), tt.more...)), root, backup.Copy)
		if (err == nil) != (tt.want != "") {
			t.Errorf("%s: %v", name, err)
		} else if fi, err := os.Stat(filepath.Join(root, repo, tt.want)); tt.want != "" && (err != nil || fi.Mode().Perm()&0o077 != 0) {
			t.Errorf("%s: %v, %v", name, fi, err)
		}
		if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
			t.Fatalf("%s: written outside: %v, %v", name, left, err)
		}
	}
}

// TestBackupLinks checks that a backup fails if the store's key is a symbolic link.
func TestBackupLinks(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Config{NoWatcher: true})
	projectIn(t, s.Store, "Ann")
	key := filepath.Join(s.Root(), "key")
	if err := errors.Join(os.Rename(key, key+".away"), os.Symlink("key.away", key)); err != nil {
		t.Fatal(err)
	}
	if err := s.Backup(t.Context(), io.Discard, "test"); err == nil || !strings.Contains(err.Error(), "is a symbolic link") {
		t.Errorf("a linked key: %v", err)
	}
}

// TestRestoreDamaged checks that Restore refuses a truncated or damaged backup and leaves no files behind. It also
// checks that Restore never overwrites anything.
func TestRestoreDamaged(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Config{NoWatcher: true})
	projectIn(t, s.Store, "Ann")
	var file bytes.Buffer
	if err := s.Backup(t.Context(), &file, "test"); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	damaged := bytes.Clone(file.Bytes())
	damaged[len(damaged)/2] ^= 1
	for _, data := range [][]byte{
		file.Bytes()[:file.Len()/2], file.Bytes()[:file.Len()-20], file.Bytes()[:file.Len()-8], damaged, unsummed(t, file.Bytes()), []byte("text"), nil,
	} {
		_, err := backup.Restore(t.Context(), bytes.NewReader(data), filepath.Join(dir, "restored"), backup.Replace)
		if !errors.Is(err, backup.ErrNotBackup) {
			t.Errorf("%d bytes: %v", len(data), err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := backup.Restore(t.Context(), &file, dir, backup.Replace); !errors.Is(err, fs.ErrExist) {
		t.Errorf("an existing folder: %v", err)
	}
}
