package maildir_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/keys"
)

// agents returns the names of all agents.
func (m sharer) agents(t testing.TB) (names []string) {
	t.Helper()
	rows, err := m.p.Agents.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		names = append(names, rows[i].Name)
	}
	return names
}

// other returns the only name in names that is not in known.
func other(t testing.TB, names []string, known ...string) string {
	t.Helper()
	left := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(known, n) })
	if len(left) != 1 {
		t.Fatalf("agents %v, in addition to %v: want one", names, known)
	}
	return left[0]
}

// TestNamesakes checks what happens if two machines create agents with the same name while they cannot reach each
// other. The agent that was created first must keep the name, no matter which machine pushes first or merges in
// between.
func TestNamesakes(t *testing.T) {
	t.Parallel()
	for _, firstPushes := range []bool{true, false} {
		t.Run(fmt.Sprintf("the first pushes first: %v", firstPushes), func(t *testing.T) {
			t.Parallel()
			_, all := shared(t, 3, onlyAsked)
			a, b, c := all[0], all[1], all[2]
			for i, m := range all {
				m.register(t, []string{"Ann", "Bob", "Cid"}[i])
			}
			level(t, a, b, c)
			a.register(t, "Blue")
			b.register(t, "Blue") // this agent is created later
			a.send(t, "Ann", "Blue", "to Blue of a")
			b.send(t, "Bob", "Blue", "to Blue of b")
			a.send(t, "Blue", "Ann", "from Blue of a")
			b.send(t, "Blue", "Bob", "from Blue of b")
			if _, err := b.p.Box("Blue", format.Origin{}).Claim(t.Context(), claim.Request{Patterns: []string{"src/**"}}); err != nil {
				t.Fatal(err)
			}
			key := maildir.SessionKey{Client: "claude", ID: "s1"}
			if name, err := b.p.Sessions.Begin(t.Context(), maildir.SessionEvent{SessionKey: key, Agent: "Blue"}); err != nil || name != "Blue" {
				t.Fatalf("%s, %v", name, err)
			}
			order := []sharer{a, c, b, c}
			if !firstPushes {
				order = []sharer{b, c, a, c}
			}
			order[0].now(t)
			order[1].now(t)
			c.send(t, "Cid", "Blue", "from c") // c sends this to the agent that is called Blue on c
			c.now(t)
			order[2].now(t)
			if got := a.subjects(t, "Blue"); !firstPushes && fmt.Sprint(got) != "[to Blue of a]" { // b has no mail from a
				t.Errorf("Blue has %v", got)
			}
			order[3].now(t)
			level(t, a, b, c)

			second := other(t, a.agents(t), "Ann", "Bob", "Cid", "Blue")
			if !strings.HasPrefix(second, "Blue-") {
				t.Errorf("it is %s", second)
			}
			ofFirst, ofSecond := []string{"to Blue of a"}, []string{"to Blue of b"}
			if firstPushes {
				ofFirst = append(ofFirst, "from c")
			} else {
				ofSecond = append(ofSecond, "from c")
			}
			for _, m := range all {
				told := func(got []string) []string {
					n := len(got)
					got = slices.DeleteFunc(got, func(s string) bool { return strings.HasPrefix(s, "Two agents were called Blue") })
					if n-len(got) != 1 {
						t.Errorf("notified %d times", n-len(got))
					}
					return got
				}
				if got := told(m.subjects(t, "Blue")); fmt.Sprint(got) != fmt.Sprint(ofFirst) {
					t.Errorf("Blue has %v, want %v", got, ofFirst)
				}
				if got := told(m.subjects(t, second)); fmt.Sprint(got) != fmt.Sprint(ofSecond) {
					t.Errorf("%s has %v, want %v", second, got, ofSecond)
				}
				if bad, err := m.Problems(t.Context(), m.p.Slug, 10); len(bad) > 0 || err != nil {
					t.Errorf("problems %v, %v", bad, err)
				}
			}

			// The renamed agent must keep everything that belonged to it.
			live, err := b.p.Claims.List(t.Context(), false)
			if err != nil || len(live) != 1 || live[0].Agent != second || live[0].Pattern != "src/**" {
				t.Errorf("claims %+v, %v", live, err)
			}
			if s, ok := b.p.Sessions.Of(key); !ok || s.Agent != second || s.Introduced {
				t.Errorf("session %+v", s)
			}
			if name, err := b.p.Sessions.Begin(t.Context(), maildir.SessionEvent{SessionKey: key}); err != nil || name != second {
				t.Errorf("the session continues as %s, %v", name, err)
			}
			page, err := b.p.Box(second, format.Origin{}).Inbox(t.Context(), index.InboxQuery{}, false, maildir.Waiting{})
			if err != nil || len(page.Messages) == 0 {
				t.Fatal(err)
			}
			id := page.Messages[len(page.Messages)-1].ID
			if _, err := b.p.Box(second, format.Origin{}).Reply(t.Context(), id, maildir.Draft{Body: "I am another."}); err != nil {
				t.Error(err)
			}

			// Each agent may act only on its own machine.
			if _, err := b.p.Box("Blue", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"Bob"}, Body: "x"}); err == nil ||
				!strings.Contains(err.Error(), "act as \""+second) {
				t.Errorf("Blue acts on another machine: %v", err)
			}
			made, err := b.p.Agents.Register(t.Context(), maildir.Registration{NameHint: "Blue"})
			if err != nil || !strings.Contains(made.Note.Error(), "is now "+second) {
				t.Errorf("Blue registers again: %+v, %v", made, err)
			}
			a.send(t, "Blue", "Ann", "it goes on")
			b.send(t, second, "Blue", "hello")
			level(t, a, b, c)
			if got := a.subjects(t, "Blue"); !slices.Contains(got, "hello") {
				t.Errorf("Blue has %v", got)
			}
		})
	}
}

// TestNamesakesInterrupted checks that if the renaming of an agent is interrupted, the next round completes it, even
// after a restart.
func TestNamesakesInterrupted(t *testing.T) {
	t.Parallel()
	bare, all := shared(t, 1, onlyAsked)
	a := all[0]
	var fails atomic.Value
	fails.Store("")
	config := storetest.Config{Root: t.TempDir(), Sync: onlyAsked, Fail: func(path string) error {
		if path == fails.Load() {
			return syscall.EIO
		}
		return nil
	}}
	b := sharer{Store: storetest.Open(t, config)}
	var err error
	if b.p, err = b.Join(t.Context(), bare, "/abs/path/b/shop"); err != nil {
		t.Fatal(err)
	}
	a.register(t, "Blue")
	b.register(t, "Blue")
	b.send(t, "Blue", "Blue", "one")
	dir := filepath.Join(b.p.Dir(), "agents", "Blue")
	const notes = 1200
	if err := os.Mkdir(filepath.Join(dir, "notes"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range notes {
		if err := os.WriteFile(filepath.Join(dir, "notes", fmt.Sprintf("%04d.txt", i)), []byte(fmt.Sprint(i)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.now(t)
	moves := []int{511, 1023} // the message is one of the first 512 files
	for i, path := range []string{"notes/0600.txt", "notes/1199.txt"} {
		fails.Store("")
		b.Stop()
		fails.Store("agents/Blue/" + path) // set before the restart, because a round runs at the start
		b.Store = storetest.Open(t, config)
		if b.p, err = b.Project(t.Context(), "/abs/path/b/shop"); err != nil {
			t.Fatal(err)
		}
		if _, err := b.p.Sync.Now(t.Context()); err == nil {
			t.Errorf("%s cannot be read, but there is no error", path)
		}
		// On a slow machine, the round can end with the error that the disk is not responding, while files are still
		// being moved.
		until(t, fmt.Sprintf("%d files to be moved although %s cannot be read", moves[i], path), func() bool {
			moved, err := filepath.Glob(filepath.Join(b.p.Dir(), "agents", "Blue-*", "notes", "*.txt"))
			if err != nil || len(moved) > moves[i] {
				t.Fatalf("%s cannot be read: moved %d files, %v", path, len(moved), err)
			}
			return len(moved) == moves[i]
		})
	}
	fails.Store("")
	level(t, a, b)
	second := other(t, b.agents(t), "Blue")
	for _, m := range []sharer{a, b} {
		if n, err := filepath.Glob(filepath.Join(m.p.Dir(), "agents", second, "notes", "*.txt")); err != nil || len(n) != notes {
			t.Errorf("%d notes, %v", len(n), err)
		}
		if n, err := filepath.Glob(filepath.Join(m.p.Dir(), "agents", "Blue", "notes", "*")); err != nil || len(n) > 0 {
			t.Errorf("left behind: %v, %v", n, err)
		}
		if got := m.subjects(t, second); len(got) != 2 || got[0] != "one" {
			t.Errorf("%s has %v", second, got)
		}
		if got := m.subjects(t, "Blue"); len(got) != 1 {
			t.Errorf("Blue has %v", got)
		}
	}
}

// TestNamesakesPeople checks that a user's agent is the same agent on all machines, and keeps its name.
func TestNamesakesPeople(t *testing.T) {
	t.Parallel()
	for _, personFirst := range []bool{true, false} {
		t.Run(fmt.Sprintf("the person's machine pushes first: %v", personFirst), func(t *testing.T) {
			t.Parallel()
			testNamesakesPeople(t, personFirst)
		})
	}
}

func testNamesakesPeople(t *testing.T, personFirst bool) {
	_, all := shared(t, 2, onlyAsked)
	a, b := all[0], all[1]
	a.register(t, "Eve")
	for _, m := range all {
		if _, _, err := m.p.Agents.Person(t.Context(), "Ada"); err != nil {
			t.Fatal(err)
		}
		m.send(t, "Ada", "Ada", "from one of two")
	}
	if _, _, err := b.p.Agents.Person(t.Context(), "Eve"); err != nil { // this agent is created later, but belongs to a user
		t.Fatal(err)
	}
	b.send(t, "Eve", "Ada", "from Eve")
	if personFirst {
		level(t, b, a)
	} else {
		level(t, a, b)
	}
	second := other(t, a.agents(t), "Ada", "Eve")
	if !strings.HasPrefix(second, "Eve-") {
		t.Errorf("it is %s", second)
	}
	for _, m := range all {
		if got := m.subjects(t, "Ada"); len(got) != 3 {
			t.Errorf("Ada has %v", got)
		}
		m.send(t, "Ada", "Eve", "I am here, too")
		m.send(t, "Eve", "Ada", "and I")
	}
}

// TestNamesakesMeanwhile checks what happens if the second agent acts before its machine learns the new name. The
// agent's own machine must move the resulting files to the new name. If the other machine has merged but could not
// push, that machine must move them. The first agent's files must not change.
func TestNamesakesMeanwhile(t *testing.T) {
	t.Parallel()
	for _, unpushed := range []bool{true, false} {
		t.Run(fmt.Sprintf("the merge is not pushed: %v", unpushed), func(t *testing.T) {
			t.Parallel()
			bare, all := shared(t, 2, onlyAsked)
			a, b := all[0], all[1]
			b.register(t, "Bob")
			level(t, a, b)
			for _, m := range all {
				m.register(t, "Blue")
				dir := filepath.Join(m.p.Dir(), "agents", "Blue", "notes")
				if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "todo.txt"), []byte("# To do\n"), 0o600), m.p.Rescan(t.Context())); err != nil {
					t.Fatal(err)
				}
			}
			blue := b.p.Box("Blue", format.Origin{})
			toRead, toEdit := b.send(t, "Bob", "Blue", "read"), b.send(t, "Bob", "Blue", "edited")
			toDelete, toRemove := b.send(t, "Bob", "Blue", "deleted"), b.send(t, "Bob", "Blue", "removed by hand")
			if _, err := blue.SetRead(t.Context(), toRead.ID, true); err != nil {
				t.Fatal(err)
			}
			b.now(t)
			if unpushed {
				gitIn(t, bare, "config", "receive.hideRefs", "refs/heads/main")
			}
			if _, err := a.p.Sync.Now(t.Context()); (err != nil) != unpushed {
				t.Fatal(err)
			}

			_, err := blue.SetRead(t.Context(), toRead.ID, false)
			_, err2 := blue.Delete(t.Context(), toDelete.ID)
			was, err3 := b.p.Amendable(t.Context(), toEdit.ID)
			if err = errors.Join(err, err2, err3); err != nil {
				t.Fatal(err)
			}
			_, err = b.p.Box("Bob", format.Origin{}).Amend(t.Context(), maildir.Amendment{ID: toEdit.ID, Text: was.Text + "more\n"})
			copies, err2 := filepath.Glob(filepath.Join(b.p.Dir(), "agents", "Blue", "inbox", "*", "*", "*", toRemove.ID+".md"))
			if err = errors.Join(err, err2); err != nil || len(copies) != 1 {
				t.Fatal(copies, err)
			}
			if err := errors.Join(os.Remove(copies[0]), b.p.Rescan(t.Context())); err != nil {
				t.Fatal(err)
			}
			b.send(t, "Bob", "Blue", "sent")

			if unpushed {
				gitIn(t, bare, "config", "--unset", "receive.hideRefs")
				b.now(t)
				a.now(t)
			}
			second := ""
			check := func(m sharer) {
				t.Helper()
				second = other(t, m.agents(t), "Bob", "Blue")
				page, err := m.p.Box(second, format.Origin{}).Inbox(t.Context(), index.InboxQuery{Limit: maildir.MaxPage, Peek: true}, false, maildir.Waiting{})
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, row := range page.Messages {
					if !strings.HasPrefix(row.Subject, "Two agents") {
						got = append(got, fmt.Sprint(row.Subject, " ", row.ReadAt.IsZero()))
					}
				}
				if fmt.Sprint(got) != "[sent true edited true read true]" {
					t.Errorf("%s has %v", second, got)
				}
				if got := m.subjects(t, "Blue"); slices.Contains(got, "sent") {
					t.Errorf("Blue has %v", got)
				}
				if bad, err := m.Problems(t.Context(), m.p.Slug, 10); len(bad) > 0 || err != nil {
					t.Errorf("problems %v, %v", bad, err)
				}
				for _, name := range []string{"Blue", second} {
					if _, err := os.Stat(filepath.Join(m.p.Dir(), "agents", name, "notes", "todo.txt")); err != nil {
						t.Error(err)
					}
				}
			}
			if unpushed {
				check(a)
			}
			level(t, b, a)
			check(a)
			check(b)
		})
	}
}

// TestNamesakesReplaced checks that an agent that is removed and recreated on one machine is not treated as a second
// agent.
func TestNamesakesReplaced(t *testing.T) {
	t.Parallel()
	for _, newPushes := range []bool{true, false} {
		a, b := sharedByTwo(t)
		a.register(t, "Blue")
		level(t, a, b)
		if err := errors.Join(os.RemoveAll(filepath.Join(b.p.Dir(), "agents", "Blue")), b.p.Rescan(t.Context())); err != nil {
			t.Fatal(err)
		}
		b.register(t, "Blue")
		a.send(t, "Ann", "Blue", "hello")
		if newPushes {
			level(t, b, a)
		} else {
			level(t, a, b)
		}
		for _, m := range []sharer{a, b} {
			if got := m.agents(t); len(got) != 3 {
				t.Errorf("agents %v", got)
			}
			if got := m.subjects(t, "Blue"); fmt.Sprint(got) != "[hello]" {
				t.Errorf("Blue has %v", got)
			}
		}
	}
}

// TestNamesakesLongNames checks that renamed agents get different names even if NAME-machine would be too long.
func TestNamesakesLongNames(t *testing.T) {
	t.Parallel()
	for _, firstPushes := range []bool{true, false} {
		a, b := sharedByTwo(t)
		long := strings.Repeat("x", 63)
		for i, m := range []sharer{a, b} {
			for _, n := range []string{"1", "2"} {
				m.register(t, long+n)
				m.send(t, []string{"Ann", "Bob"}[i], long+n, "to "+n)
			}
		}
		if firstPushes {
			a.now(t)
		}
		level(t, b, a)
		for _, m := range []sharer{a, b} {
			if got := m.agents(t); len(got) != 6 {
				t.Errorf("%d agents: %q", len(got), got)
			}
		}
	}
}

// TestBelongs checks that a program can act only as an agent of its own machine, and that a user can act as any agent.
func TestBelongs(t *testing.T) {
	t.Parallel()
	a, b := sharedByTwo(t)
	box := b.p.Box("Ann", format.Origin{})
	toBob := maildir.Draft{To: []string{"Bob"}, Body: "text"}
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, maildir.ErrConflict) || !strings.Contains(err.Error(), "belongs to machine") {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := box.Send(t.Context(), toBob)
	refused("send", err)
	_, err = box.Claim(t.Context(), claim.Request{Patterns: []string{"x"}})
	refused("claim", err)
	_, err = box.Pop(t.Context())
	refused("pop", err)
	_, err = box.Inbox(t.Context(), index.InboxQuery{}, false, maildir.Waiting{})
	refused("inbox", err)
	refused("presence", b.p.Agents.SetPresence(t.Context(), "Ann", format.Ready))
	key := maildir.SessionKey{Client: "claude", ID: "s1"}
	_, err = b.p.Sessions.Begin(t.Context(), maildir.SessionEvent{SessionKey: key, Agent: "Ann"})
	refused("session", err)
	machines, err := keys.Published(maildir.TreeOf(b.p)) // both machines run on the same host in this test
	if err != nil || len(machines) != 2 || machines[0].Name == machines[1].Name {
		t.Errorf("machines %+v, %v: they have the same name", machines, err)
	}
	made, err := b.p.Agents.Register(t.Context(), maildir.Registration{NameHint: "Ann"})
	if err != nil || made.Name == "Ann" || !strings.Contains(made.Note.Error(), "on machine") {
		t.Errorf("registered %+v, %v", made, err)
	}
	for _, door := range []string{format.DoorPage, format.DoorCLI} {
		if _, err := box.Send(format.Through(t.Context(), door), toBob); err != nil {
			t.Errorf("%s: %v", door, err)
		}
	}
	if got := b.subjects(t, "Ann"); len(got) != 0 { // every caller may read
		t.Errorf("Ann has %v", got)
	}

	// A file saved in an outbox must be sent by the machine that the outbox's agent belongs to.
	file := filepath.Join(b.p.Dir(), "agents", "Ann", "outbox", "hello.md")
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("---json\n{\"to\": [\"Bob\"]}\n---\n\nHello\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	until(t, "a notice that the file is not sent", func() bool {
		got := b.subjects(t, "Ann")
		return len(got) == 1 && strings.HasPrefix(got[0], "Not sent: ")
	})

	// Editing an agent's profile transfers the agent to another machine.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	whois := func(m sharer, name string) *maildir.AgentInfo {
		t.Helper()
		info, err := m.p.Agents.Whois(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	machineOf := map[string]string{"Ann": whois(b, "Ann").Machine, "Bob": whois(b, "Bob").Machine}
	handOver := func(to sharer, name, machine string) {
		t.Helper()
		profile := filepath.Join(to.p.Dir(), "agents", name, "profile.json")
		data, err := os.ReadFile(profile)
		data = bytes.Replace(data, []byte(machineOf[name]), []byte(machine), 1)
		if err = errors.Join(err, os.WriteFile(profile, data, 0o600), to.p.Rescan(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	handOver(b, "Ann", machineOf["Bob"])
	handOver(a, "Bob", machineOf["Ann"])
	level(t, b, a)
	if got := a.agents(t); len(got) != 3 { // Ann, Bob and the agent in made
		t.Errorf("agents %v: one was renamed", got)
	}
	b.send(t, "Ann", "Bob", "from b")
	a.send(t, "Bob", "Ann", "from a")
	_, err = a.p.Box("Ann", format.Origin{}).Send(t.Context(), toBob)
	refused("send from the old machine", err)
	if a.p.MachineOf(&whois(a, "Ann").AgentRow) == "" || a.p.MachineOf(&whois(a, "Bob").AgentRow) != "" {
		t.Error("a does not report the new machines of Ann and Bob")
	}
}
