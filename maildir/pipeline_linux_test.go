package maildir_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mailtree/fixtures/storetest"
	"mailtree/fixtures/waits"
	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

// stepper stops the writer once, before a given step, until the test resumes it.
type stepper struct {
	mu      sync.Mutex
	at      string
	reached chan struct{}
	goOn    chan struct{}
}

func (s *stepper) step(name string) {
	s.mu.Lock()
	stop := s.at != "" && strings.HasPrefix(name, s.at)
	if stop {
		s.at = ""
	}
	reached, goOn := s.reached, s.goOn
	s.mu.Unlock()
	if stop {
		close(reached)
		<-goOn
	}
}

// stopAt sets the step before which the writer stops.
func (s *stepper) stopAt(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at, s.reached, s.goOn = name, make(chan struct{}), make(chan struct{})
}

// sendLater sends a message in a separate goroutine.
func sendLater(t *testing.T, p *maildir.Project, subject string) <-chan error {
	answer := make(chan error, 1)
	go func() {
		_, err := p.Box("Ann", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"Bob"}, Subject: subject, Body: "b"})
		answer <- err
	}()
	return answer
}

// TestFailedSync checks that a failed syncfs makes its whole group fail. None of the group's files may be left, and
// the server must continue. The log must show the failed step, the operation and the project.
func TestFailedSync(t *testing.T) {
	t.Parallel()
	for at, tried := range map[string]string{
		"sync staged":  "make the staged files durable",
		"sync renamed": "make the renamed files durable",
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			s := &stepper{}
			m := &machine{}
			log := &waits.Log{}
			p := project(t, storetest.Config{Fail: m.fail, Step: s.step, Log: log}, "Ann", "Bob")
			s.stopAt(at)
			first := sendLater(t, p, "lost")
			<-s.reached
			repair := breakSync(m)
			close(s.goOn)
			if err := <-first; !errors.Is(err, maildir.ErrUnavailable) {
				t.Error(err)
			}
			if err := p.Failing(); !errors.Is(err, maildir.ErrUnavailable) {
				t.Errorf("the group failed, but Failing returns %v", err)
			}
			for _, word := range []string{"project=" + p.Slug, "verb=send", "agent=Ann", tried} {
				if !strings.Contains(log.String(), word) {
					t.Errorf("the log does not contain %q: %s", word, log)
				}
			}
			repair()
			send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "kept", Body: "b"})
			if err := p.Failing(); err != nil {
				t.Errorf("the disk was repaired, but Failing returns %v", err)
			}
			if got := inbox(t, p, "Bob"); len(got.Messages) != 1 || got.Messages[0].Subject != "kept" {
				t.Errorf("inbox: %+v", got.Messages)
			}
			paths := 0
			for dir := range map[string]bool{"messages": true, "agents/Ann/outbox": true, "agents/Bob/inbox": true} {
				paths += countFiles(t, p, dir)
			}
			if paths != 3 {
				t.Errorf("%d message files, want those of one message", paths)
			}
		})
	}
}

// TestSaveBeforeRename checks that text is not lost if a user saves it after an operation was planned but before its
// files are renamed into place. Both the text and the operation must be in the history (Invariant I5).
func TestSaveBeforeRename(t *testing.T) {
	t.Parallel()
	for _, act := range []string{"renew", "unread"} {
		t.Run(act, func(t *testing.T) {
			t.Parallel()
			s := &stepper{}
			p := project(t, storetest.Config{Step: s.step}, "Ann", "Bob")
			m := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "b"})
			if _, err := p.Box("Bob", format.Origin{}).SetRead(t.Context(), m.ID, true); err != nil {
				t.Fatal(err)
			}
			claim := claim.Request{Agent: "Ann", Patterns: []string{"a.go"}}
			if _, err := p.Box(claim.Agent, format.Origin{}).Claim(t.Context(), claim); err != nil {
				t.Fatal(err)
			}
			if err := p.FlushHistory(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.stopAt("sync staged")
			done := make(chan error, 1)
			go func() {
				var err error
				if act == "renew" {
					_, err = p.Box(claim.Agent, format.Origin{}).Claim(t.Context(), claim)
				} else {
					_, err = p.Box("Bob", format.Origin{}).SetRead(t.Context(), m.ID, false)
				}
				done <- err
			}()
			<-s.reached
			pattern := map[string]string{"renew": "claims/*.json", "unread": "agents/Bob/inbox/*/*/*/*.read"}[act]
			files, err := filepath.Glob(filepath.Join(p.Dir(), pattern))
			if err != nil || len(files) != 1 {
				t.Fatal(files, err)
			}
			old, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			byHand := strings.Replace(strings.Replace(string(old), "\"reason\": \"\"", "\"reason\": \"written by hand\"", 1), "Z\n", "+00:00\n", 1)
			if err := errors.Join(os.WriteFile(files[0]+".new~", []byte(byHand), 0o600), os.Rename(files[0]+".new~", files[0])); err != nil {
				t.Fatal(err)
			}
			close(s.goOn)
			if err := <-done; err != nil {
				t.Error(err)
			}
			if err := p.FlushHistory(t.Context()); err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command("git", "-C", p.Dir(), "log", "-p", "--format=%s").CombinedOutput()
			if err != nil || byHand == string(old) || !strings.Contains(string(out), "written by hand") && !strings.Contains(string(out), "+00:00") {
				t.Errorf("what the user saved is not in the history: %v %q", err, byHand)
			}
		})
	}
}

// TestStuckDisk checks that callers get an error in time while the disk does not respond. Operations that have not
// begun must not be performed. When the disk responds again, everything must work.
func TestStuckDisk(t *testing.T) {
	t.Parallel()
	s := &stepper{}
	p := project(t, storetest.Config{Step: s.step, Patience: 3 * time.Second}, "Ann", "Bob")
	tries := 0
	for _, at := range []string{"stage", "sync staged", "sync renamed"} {
		s.stopAt(at)
		begun := sendLater(t, p, "begun at "+at)
		<-s.reached
		if p.Stalled() == 0 {
			t.Errorf("at %s, nothing is reported as stalled", at)
		}
		var others []<-chan error
		for range 2 * 256 {
			others = append(others, sendLater(t, p, "not begun at "+at))
		}
		for _, answer := range append(others, begun) {
			if err := <-answer; !errors.Is(err, maildir.ErrUnavailable) || !strings.Contains(err.Error(), "disk is not responding") {
				t.Errorf("at %s: %v", at, err)
			}
		}
		close(s.goOn)
		await(t, func() bool { return p.Stalled() == 0 })
		await(t, func() bool { // on a busy machine, this may take a while
			tries++
			_, err := p.Box("Ann", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"Bob"}, Subject: "after " + at, Body: "b"})
			if err != nil && !errors.Is(err, maildir.ErrUnavailable) {
				t.Fatal(err)
			}
			return err == nil
		})
		if got := inbox(t, p, "Bob").Messages; len(got) < 2 || got[0].Subject != "after "+at {
			t.Errorf("at %s: inbox %+v", at, got)
		}
	}
	if n := inbox(t, p, "Bob").Total; n < 6 || n > 3+tries+2*256 {
		t.Errorf("%d messages", n)
	}
}

// breakSync makes every sync fail until repair is called.
func breakSync(m *machine) (repair func()) {
	m.breakAt(tree.SyncCall, unix.EIO)
	return func() { m.breakAt("", nil) }
}

func countFiles(t *testing.T, p *maildir.Project, dir string) (n int) {
	t.Helper()
	err := maildir.TreeOf(p).Walk(t.Context(), dir, func(string, fs.DirEntry) error { n++; return nil })
	if err != nil {
		t.Error(err)
	}
	return n
}
