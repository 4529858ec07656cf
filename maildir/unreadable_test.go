package maildir_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"mailtree/fixtures/inmemory"
	"mailtree/fixtures/storetest"
	"mailtree/fixtures/waits"
	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
)

// machine simulates a machine on which a test can make file calls fail for a given path.
type machine struct {
	mu    sync.Mutex
	path  string // calls at or below this path fail; empty means that no call fails
	fault error
}

func (m *machine) fail(p string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.path != "" && (p == m.path || strings.HasPrefix(p, m.path+"/")) {
		return m.fault
	}
	return nil
}

// breakAt makes all later calls at or below path fail. If path is "", calls succeed again.
func (m *machine) breakAt(path string, fault error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.path, m.fault = path, fault
}

// put creates a file in the tree by renaming, as an editor does.
func put(t testing.TB, p *maildir.Project, path, data string) {
	t.Helper()
	at := filepath.Join(p.Dir(), path)
	staged := filepath.Join(inmemory.Dir(t), "staged")
	if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(staged, []byte(data), 0o600), os.Rename(staged, at)); err != nil {
		t.Fatal(err)
	}
}

// until waits until a condition is true, and fails the test if it never is.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	waits.Until(t, what, is)
}

// TestUnreadDecisions checks that a request is refused as unavailable if it depends on a file that the machine cannot
// read. The request must never be answered as if the file were missing. When the machine works again, the request must
// be answered correctly without a restart.
func TestUnreadDecisions(t *testing.T) {
	t.Parallel()
	mail := func(id, from, key string) string {
		return fmt.Sprintf("---json\n{\"id\": %q, \"from\": %q, \"to\": [\"Bob\"], \"created\": \"2026-01-02T15:22:14Z\", \"subject\": \"s\", \"key\": %q}\n---\nbody\n", id, from, key)
	}
	cl := `{"path": "app/*.go", "agent": "Ann", "exclusive": true, "created": "2026-01-02T15:22:14Z", "expires": "2099-01-01T00:00:00Z"}`
	for _, c := range []struct {
		name, path, data string
		do               func(ctx context.Context, p *maildir.Project) error
		after            func(t *testing.T, err error) // called with do's error after the machine works again
	}{
		{"recipient", "agents/Eve/profile.json", `{"program": "x", "inception": "2026-01-01T00:00:00Z"}`,
			func(ctx context.Context, p *maildir.Project) error {
				_, err := p.Box("Ann", format.Origin{}).Send(ctx, maildir.Draft{To: []string{"Eve"}, Body: "b"})
				return err
			}, noError},
		{"whois", "agents/Eve/profile.json", `{"program": "x", "inception": "2026-01-01T00:00:00Z"}`,
			func(ctx context.Context, p *maildir.Project) error { _, err := p.Agents.Whois(ctx, "Eve"); return err }, noError},
		{"first contact", "agents/Eve/status", "ready\n",
			func(ctx context.Context, p *maildir.Project) error {
				return p.Agents.EnsureAgent(ctx, "EVE", maildir.Registration{})
			}, isKind(maildir.ErrConflict)},
		{"name hint", "agents/Eve/status", "ready\n",
			func(ctx context.Context, p *maildir.Project) error {
				r, err := p.Agents.Register(ctx, maildir.Registration{NameHint: "eve"})
				if err == nil && strings.EqualFold(r.Name, "Eve") {
					return errors.New("the name was given to a second agent")
				}
				return err
			}, noError},
		{"acknowledge", "agents/Bob/inbox/m1.md", mail("m1", "Ann", ""),
			func(ctx context.Context, p *maildir.Project) error {
				_, err := p.Box("Bob", format.Origin{}).Acknowledge(ctx, "m1")
				return err
			}, noError},
		{"acknowledge below a folder", "agents/Bob/inbox", mail("m1", "Ann", ""),
			func(ctx context.Context, p *maildir.Project) error {
				_, err := p.Box("Bob", format.Origin{}).Acknowledge(ctx, "m1")
				return err
			}, noError},
		{"message", "messages/m1.md", mail("m1", "Ann", ""),
			func(ctx context.Context, p *maildir.Project) error { _, err := p.Message(ctx, "m1"); return err }, noError},
		{"thread", "messages/m1.md", mail("m1", "Ann", ""),
			func(ctx context.Context, p *maildir.Project) error { _, err := p.Thread(ctx, "m1", false); return err }, noError},
		{"claim", "claims/by-hand.json", cl,
			func(ctx context.Context, p *maildir.Project) error {
				r, err := p.Box("Bob", format.Origin{}).Claim(ctx, claim.Request{Patterns: []string{"app/x.go"}})
				if err == nil && len(r.Granted) > 0 {
					return errors.New("granted")
				}
				return err
			}, noError},
		{"release", "claims/by-hand.json", cl,
			func(ctx context.Context, p *maildir.Project) error {
				r, err := p.Box("Ann", format.Origin{}).Release(ctx, nil)
				if err == nil && len(r.Released) == 0 {
					return errors.New("nothing was released")
				}
				return err
			}, noError},
		{"key", "agents/Ann/outbox/m1.md", mail("m1", "Ann", "k1"),
			func(ctx context.Context, p *maildir.Project) error {
				// this content differs from that of the file, which has no project
				s, err := p.Box("Ann", format.Origin{}).Send(ctx, maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "body\n", Key: "k1"})
				if err == nil {
					return fmt.Errorf("sent again as %s", s.ID)
				}
				return err
			}, isKind(maildir.ErrConflict)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := &machine{}
			p := project(t, storetest.Config{Fail: m.fail}, "Ann", "Bob")
			m.breakAt(c.path, syscall.EMFILE)
			file := c.path
			if filepath.Ext(file) == "" && filepath.Base(file) == "inbox" {
				file += "/m1.md"
			}
			put(t, p, file, c.data)
			until(t, "the file is reported as unread", func() bool { return len(p.Unreadable()) > 0 })
			err := c.do(t.Context(), p)
			if !errors.Is(err, maildir.ErrUnavailable) || !strings.Contains(err.Error(), c.path) {
				t.Errorf("while it cannot be checked: %v", err)
			}
			m.breakAt("", nil)
			until(t, "the file is checked again", func() bool { return len(p.Unreadable()) == 0 })
			c.after(t, c.do(t.Context(), p))
		})
	}
}

func noError(t *testing.T, err error) {
	if err != nil {
		t.Errorf("after the machine was fixed: %v", err)
	}
}

func isKind(kind error) func(t *testing.T, err error) {
	return func(t *testing.T, err error) {
		if !errors.Is(err, kind) {
			t.Errorf("after the machine was fixed: %v, want %v", err, kind)
		}
	}
}

// TestUnreadOwnFiles checks that the server's own operations are also refused if they depend on an unreadable file in
// the tree, and that no file written by the server is lost.
func TestUnreadOwnFiles(t *testing.T) {
	t.Parallel()
	m := &machine{}
	p := project(t, storetest.Config{Fail: m.fail}, "Ann", "Bob")
	sent := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "one two"})
	if _, err := p.Box("Ann", format.Origin{}).Claim(t.Context(), claim.Request{Patterns: []string{"app/*.go"}}); err != nil {
		t.Fatal(err)
	}
	copyPath := inbox(t, p, "Bob").Messages[0].CopyPath
	mark := format.AckMark(copyPath)
	claims, err := p.Claims.List(t.Context(), false)
	if err != nil || len(claims) != 1 {
		t.Fatalf("%v, %v", claims, err)
	}

	for _, fault := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EIO, syscall.ESTALE, syscall.EINTR, syscall.Errno(9999)} {
		for _, c := range []struct {
			path string
			do   func() error
		}{
			{copyPath, func() error { _, err := p.Box("Bob", format.Origin{}).Acknowledge(t.Context(), sent.ID); return err }},
			{copyPath, func() error { _, err := p.Box("Bob", format.Origin{}).Pop(t.Context()); return err }},
			{mark, func() error { _, err := p.Box("Bob", format.Origin{}).Acknowledge(t.Context(), sent.ID); return err }},
			{claims[0].Path, func() error {
				_, err := p.Box("Ann", format.Origin{}).Claim(t.Context(), claim.Request{Patterns: []string{"app/*.go"}})
				return err
			}},
		} {
			m.breakAt(c.path, fault)
			p.Edited([]string{c.path}, false)
			if err := c.do(); !errors.Is(err, maildir.ErrUnavailable) {
				t.Errorf("%s, %v: %v", c.path, fault, err)
			}
			if n := len(inbox(t, p, "Bob").Messages); n != 1 {
				t.Fatalf("%s, %v: %d messages in the inbox", c.path, fault, n)
			}
			r, err := p.Box("Bob", format.Origin{}).Claim(t.Context(), claim.Request{Patterns: []string{"app/x.go"}})
			if err == nil && len(r.Conflicts) != 1 || err != nil && !errors.Is(err, maildir.ErrUnavailable) {
				t.Errorf("%s, %v: a second agent's claim: %+v, %v", c.path, fault, r, err)
			}
			m.breakAt("", nil)
		}
	}
	until(t, "everything is checked again", func() bool { return len(p.Unreadable()) == 0 })
	for _, read := range []bool{true, false} {
		if _, err := p.Box("Bob", format.Origin{}).SetRead(t.Context(), sent.ID, read); err != nil {
			t.Error(err)
		}
	}
	if _, err := p.Box("Bob", format.Origin{}).Acknowledge(t.Context(), sent.ID); err != nil {
		t.Error(err)
	}
}

// TestUnreadRecovery checks that a starting server makes no decision about files of an interrupted run that it cannot
// read. It must leave the project out, and the next start must complete the operation or remove its files.
func TestUnreadRecovery(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"staged", "placed"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			root, repo := interrupted(t)
			m := &machine{}
			at := ".mailtree/tmp"
			if where == "placed" {
				at = "messages"
			}
			m.breakAt(at, syscall.EMFILE)
			s := storetest.Open(t, storetest.Config{Root: root, NoWatcher: true, NoCheck: true, Fail: m.fail})
			if err := s.LeftOut()[filepath.Base(filepath.Dir(repo))]; err == nil {
				t.Errorf("the project was opened while %s could not be checked", at)
			}
			s.Stop()
			s = storetest.Open(t, storetest.Config{Root: root})
			p, err := s.Project(t.Context(), shop)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(inbox(t, p, "Bob").Messages); n != 1 {
				t.Errorf("%d messages in the inbox, but the operation was completely staged", n)
			}
		})
	}
}

// interrupted returns a store whose server ended while it was renaming the files of a send into place.
func interrupted(t *testing.T) (root, repo string) {
	t.Helper()
	root = filepath.Join(t.TempDir(), "store")
	copied := filepath.Join(t.TempDir(), "copy")
	var once sync.Once
	var armed bool
	var mu sync.Mutex
	cfg := storetest.Config{Root: root, NoWatcher: true, Step: func(name string) {
		mu.Lock()
		defer mu.Unlock()
		if armed && strings.HasPrefix(name, "rename agents/Bob/inbox/") {
			once.Do(func() {
				if err := os.CopyFS(copied, os.DirFS(root)); err != nil && !errors.Is(err, fs.ErrInvalid) {
					t.Error(err)
				}
			})
		}
	}}
	p := project(t, cfg, "Ann", "Bob")
	if err := p.FlushHistory(t.Context()); err != nil { // so that the copy contains no commit in progress
		t.Fatal(err)
	}
	mu.Lock()
	armed = true
	mu.Unlock()
	send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "b"})
	return copied, filepath.Join(copied, "projects", p.Slug, "repo")
}
