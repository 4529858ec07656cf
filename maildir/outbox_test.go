package maildir_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
)

const minimal = "---json\n{\"to\": [\"Bob\"]}\n---\n\n# Hello\n\nText.\n"

// author saves files in Ann's outbox.
type author struct {
	*testing.T
	p *maildir.Project
}

func newAuthor(t *testing.T, cfg storetest.Config) author {
	t.Parallel()
	return author{t, project(t, cfg, "Ann", "Bob")}
}

func (a author) path(rel string) string {
	name := filepath.Join(a.p.Dir(), filepath.FromSlash(rel))
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		a.Fatal(err)
	}
	return name
}

func (a author) save(rel, text string) {
	a.Helper()
	if err := os.WriteFile(a.path(rel), []byte(text), 0o600); err != nil {
		a.Fatal(err)
	}
}

func (a author) move(from, to string) {
	a.Helper()
	if err := os.Rename(a.path(from), a.path(to)); err != nil {
		a.Fatal(err)
	}
}

func (a author) exists(rel string) bool {
	_, err := os.Lstat(a.path(rel))
	return err == nil
}

// inbox lists the subjects of a sender's messages in an agent's inbox, oldest first.
func (a author) inbox(agent, from string) (subjects []string) {
	a.Helper()
	for _, d := range inbox(a, a.p, agent).Messages {
		if d.From == from {
			subjects = append(subjects, d.Subject)
		}
	}
	slices.Reverse(subjects)
	return subjects
}

// await waits until the agent's inbox contains exactly the given subjects from a sender.
func (a author) await(agent, from string, want ...string) {
	a.Helper()
	var got []string
	until(a, fmt.Sprintf("%s has %q from %s", agent, want, from), func() bool {
		got = a.inbox(agent, from)
		return len(got) >= len(want)
	})
	if !slices.Equal(got, want) {
		a.Fatalf("%s has, from %s, %q, want %q", agent, from, got, want)
	}
}

// later saves a file and waits until it is sent. By that time, all files saved earlier have been handled.
func (a author) later() {
	a.Helper()
	subject := fmt.Sprintf("Later %d", time.Now().UnixNano())
	a.save("agents/Ann/outbox/later.md", "---json\n{\"to\": [\"Bob\"]}\n---\n\n# "+subject+"\n")
	until(a, "a file is sent", func() bool { return slices.Contains(a.inbox("Bob", "Ann"), subject) })
}

// TestSaveSends checks that a minimal file in an outbox is sent by the outbox's agent, with the file's heading as the
// subject. The copy in the dated folder must replace the file.
func TestSaveSends(t *testing.T) {
	a := newAuthor(t, storetest.Config{})
	a.save("agents/Ann/outbox/My first note.md", minimal)
	a.await("Bob", "Ann", "Hello")
	m := inbox(t, a.p, "Bob").Messages[0]
	if m.Body != "# Hello\n\nText." || m.Door != format.DoorFile || m.Auth != "none" || !slices.Equal(m.To, []string{"Bob"}) {
		t.Errorf("sent %+v", m.Message)
	}
	if a.exists("agents/Ann/outbox/My first note.md") {
		t.Error("the file is still there")
	}
	if !a.exists(format.OutboxPath("Ann", m.ID, m.Created)) || !a.exists(format.CanonicalPath(m.ID, m.Created)) {
		t.Error("no copy in the dated folder")
	}
}

// TestSaveWays checks that a file is sent exactly once and in full, no matter how it gets into an outbox.
func TestSaveWays(t *testing.T) {
	const path = "agents/Ann/outbox/note.md"
	for name, do := range map[string]func(a author){
		"a draft moved there": func(a author) {
			a.save("agents/Ann/drafts/note.md", minimal)
			a.move("agents/Ann/drafts/note.md", path)
		},
		"a folder moved there": func(a author) {
			a.save("agents/Ann/drafts/some/note.md", minimal)
			a.move("agents/Ann/drafts/some", "agents/Ann/outbox/some")
		},
		"saved by rename": func(a author) {
			for _, text := range []string{"", minimal[:20], minimal} {
				a.save("agents/Ann/outbox/.note.md.k3Xz", text)
				a.move("agents/Ann/outbox/.note.md.k3Xz", path)
			}
		},
		"saved with a backup": func(a author) {
			a.save(path, minimal[:30])
			a.save("agents/Ann/outbox/.note.md.swp", "swap")
			a.move(path, "agents/Ann/outbox/note.md~")
			a.save(path, minimal)
		},
		"old by its time": func(a author) {
			a.save("agents/Ann/drafts/note.md", minimal)
			old := time.Now().Add(-time.Hour)
			if err := os.Chtimes(a.path("agents/Ann/drafts/note.md"), old, old); err != nil {
				a.Fatal(err)
			}
			a.move("agents/Ann/drafts/note.md", path)
		},
		"written by and by": func(a author) {
			f, err := os.Create(a.path(path))
			if err != nil {
				a.Fatal(err)
			}
			defer f.Close()
			f.WriteString(minimal[:len(minimal)-6])
			a.later() // the watcher waits longer before it reports a file that was not closed
			a.later() // by now, the file has been unchanged long enough to be complete, unless a program has it open
			f.WriteString(minimal[len(minimal)-6:])
		},
		"saved again unchanged": func(a author) {
			a.save(path, minimal)
			a.await("Bob", "Ann", "Hello")
			a.save(path, minimal)
			a.await("Ann", format.Postmaster, "Not sent: "+path)
			a.save("agents/Ann/outbox/copy.md", minimal)
			a.later()
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuthor(t, storetest.Config{})
			do(a)
			until(t, "it is sent", func() bool { return slices.Contains(a.inbox("Bob", "Ann"), "Hello") })
			a.later()
			got := slices.DeleteFunc(a.inbox("Bob", "Ann"), func(s string) bool { return strings.HasPrefix(s, "Later") })
			if !slices.Equal(got, []string{"Hello"}) {
				t.Errorf("Bob got %q", got)
			}
			for _, m := range inbox(t, a.p, "Bob").Messages {
				if m.Subject == "Hello" && m.Body != "# Hello\n\nText." {
					t.Errorf("sent %q", m.Body)
				}
			}
		})
	}
}

// TestSaveHalf checks that a file that is saved in two steps is sent in full, even if the server has seen the partial
// file.
func TestSaveHalf(t *testing.T) {
	clock := &movable{stopped: time.Now()}
	a := newAuthor(t, storetest.Config{Monotonic: clock.now})
	a.save("agents/Ann/outbox/note.md", minimal[:len(minimal)-6])
	until(a, "the server has seen the partial file", func() bool { return maildir.Settling(a.p) == 1 })
	clock.move(maildir.SettleTime - 1)
	a.save("agents/Ann/outbox/note.md", minimal)
	until(a, "the file is sent", func() bool {
		clock.move(maildir.SettleTime)
		return len(a.inbox("Bob", "Ann")) > 0
	})
	if m := inbox(t, a.p, "Bob").Messages; len(m) != 1 || m[0].Body != "# Hello\n\nText." {
		t.Errorf("Bob got %+v", m)
	}
	a.await("Ann", format.Postmaster)
}

// TestSaveRefused checks that a file that cannot be sent is kept, and that its author gets only one notice about the
// same content. When the file is corrected, it must be sent.
func TestSaveRefused(t *testing.T) {
	for name, tt := range map[string]struct{ text, told string }{
		"recipient":   {`{"to": ["Bop"]}`, `No agent "Bop" (to) in project`},
		"none":        {`{}`, "The message has no recipient (to, cc or bcc)"},
		"JSON":        {`{"to": ["Bob"`, "The file is not a valid message: line 2: the JSON ends too early: a quotation mark, ] or } is missing."},
		"type":        {`{"to": "Bob"}`, `The file is not a valid message: line 2: "to" has the wrong type: found a JSON string instead of a list in [ ].`},
		"sender":      {`{"from": "Bob", "to": ["Bob"]}`, `from is "Bob", but the file is in the outbox of "Ann"`},
		"id":          {`{"id": "m1", "to": ["Bob"]}`, `The file has the id "m1", but only sent messages have ids`},
		"importance":  {`{"to": ["Bob"], "importance": "hi"}`, `importance "hi" is not valid`},
		"answered":    {`{"in_reply_to": "m1"}`, `No message "m1" (in_reply_to)`},
		"attachments": {`{"to": ["Bob"], "attachments": ["/etc/passwd"]}`, `The attachment "/etc/passwd" (attachments)`},
	} {
		t.Run(name, func(t *testing.T) {
			const path = "agents/Ann/outbox/note.md"
			a := newAuthor(t, storetest.Config{})
			text := "---json\n" + tt.text + "\n---\n\ntext\n"
			a.save(path, text)
			a.await("Ann", format.Postmaster, "Not sent: "+path)
			if body := inbox(t, a.p, "Ann").Messages[0].Body; !strings.Contains(body, tt.told) {
				t.Errorf("Ann got the notice %s\nwant %s", body, tt.told)
			}
			a.save(path, text)
			a.later()
			a.await("Ann", format.Postmaster, "Not sent: "+path)
			if got, err := os.ReadFile(a.path(path)); err != nil || string(got) != text {
				t.Errorf("the file is %q: %v", got, err)
			}
			a.save(path, minimal)
			until(t, "the fixed file is sent", func() bool { return slices.Contains(a.inbox("Bob", "Ann"), "Hello") })
		})
	}
}

// TestSaveSettled checks that Postmaster's notice about a file is marked as read when the file is sent or removed, or
// when Postmaster sends another notice about it. A notice about another file must stay unread.
func TestSaveSettled(t *testing.T) {
	a := newAuthor(t, storetest.Config{})
	unread := func() (subjects []string) {
		for _, d := range inbox(t, a.p, "Ann").Messages {
			if !d.Read {
				subjects = append(subjects, d.Subject)
			}
		}
		return subjects
	}
	const one, other = "agents/Ann/outbox/one.md", "agents/Ann/outbox/other.md"
	wants := func(want ...string) {
		t.Helper()
		until(t, fmt.Sprintf("Ann has unread %q", want), func() bool {
			got := unread()
			slices.Sort(got)
			return slices.Equal(got, want)
		})
	}
	a.save(one, "no header")
	a.save(other, "no header, too")
	wants("Not sent: "+one, "Not sent: "+other)
	a.save(one, "---json\n{\"to\": [\"Bop\"]}\n---\ntext\n")
	a.await("Ann", format.Postmaster, "Not sent: "+one, "Not sent: "+other, "Not sent: "+one)
	wants("Not sent: "+one, "Not sent: "+other)
	a.save(one, minimal)
	wants("Not sent: " + other)
	if err := os.Remove(a.path(other)); err != nil {
		t.Fatal(err)
	}
	wants()
	var out []byte
	until(t, "git log shows both withdrawals", func() bool { // the index has the marks before the history does
		if err := a.p.FlushHistory(t.Context()); err != nil {
			t.Fatal(err)
		}
		var err error
		out, err = exec.Command("git", "-C", a.p.Dir(), "log", "--format=%an %s", "--grep=Mail-Op: withdraw").Output()
		return err == nil && strings.Count(string(out), "\n") >= 2
	})
	if strings.Count(string(out), "withdraw: Postmaster msg_") != 2 {
		t.Errorf("git log shows %s", out)
	}
}

// TestSaveBlind checks that if the bcc key is invalid in any way, only the file in the author's outbox names the bcc
// recipients (I7). Postmaster's mail, the problems in the index, other files and commit messages must not name them.
func TestSaveBlind(t *testing.T) {
	a := newAuthor(t, storetest.Config{})
	if err := a.p.Agents.EnsureAgent(t.Context(), "Zoe", maildir.Registration{}); err != nil {
		t.Fatal(err)
	}
	headers := []string{
		`"bcc": ["Zoey"]`,
		`"bcc": [" Zoo"]`,
		`"cc": ["Bop"], "bcc": ["Zoey"]`,
		`"bcc": ["zoey@else.example"]`,
		`"cc": ["Zo"], "bcc": ["Everyone"]`,
		`"bcc": ["Zoey" 1]`,
		`"bcc": "Zoey"`,
		`"bcc": ["Zoey", 3]`,
		`"bcc": {"Zoey": 1}`,
		`"bcc": ["Zoey"], "bcc": ["Zoey"]`,
		`"bcc": ["Zoey`,
	}
	for i, header := range headers {
		a.save(fmt.Sprintf("agents/Ann/outbox/%d.md", i), "---json\n{\"to\": [\"Bob\"], "+header+"}\n---\ntext\n")
	}
	until(t, "Ann got notices about everything", func() bool { return len(a.inbox("Ann", format.Postmaster)) == len(headers) })
	blind := regexp.MustCompile(`(?i)zo[oe]|everyone`)
	for _, m := range inbox(t, a.p, "Ann").Messages {
		if blind.MatchString(m.Body) {
			t.Errorf("Ann got the notice %s", m.Body)
		}
	}
	problems, err := maildir.ProblemsOf(t.Context(), a.p, len(headers)+1)
	if err != nil || len(problems) != len(headers) {
		t.Errorf("problems are %+v: %v", problems, err)
	}
	for _, p := range problems {
		if blind.MatchString(p.Reason) {
			t.Errorf("the problem with %s is %s", p.Path, p.Reason)
		}
	}
	if err := a.p.FlushHistory(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"grep", "-h", "", "--", ":!agents/Ann/outbox", ":!agents/Zoe"},
		{"log", "--format=%B"},
	} {
		out, err := exec.Command("git", append([]string{"-C", a.p.Dir()}, args...)...).Output()
		out = regexp.MustCompile(`"seal": ".*"`).ReplaceAll(out, nil) // a seal consists of random characters
		if found := regexp.MustCompile(`(?i)zoey|zoo|everyone`).Find(out); err != nil || found != nil {
			t.Errorf("git %s names %s: %v\n%s", args[0], found, err, out)
		}
	}
}

// TestSaveReply checks that a file is sent as a reply if it contains the id of the message that it answers.
func TestSaveReply(t *testing.T) {
	a := newAuthor(t, storetest.Config{})
	asked := send(t, a.p, "Bob", maildir.Draft{To: []string{"Ann"}, Subject: "Where?", Body: "?"})
	a.save("agents/Ann/outbox/re.md", "---json\n{\"in_reply_to\": \""+asked.ID+"\"}\n---\nHere.\n")
	a.await("Bob", "Ann", "Re: Where?")
	if m := inbox(t, a.p, "Bob").Messages[0]; m.InReplyTo != asked.ID || m.ThreadID != asked.ID {
		t.Errorf("sent %+v", m.Message)
	}
}

// TestSaveOfSent checks that a copy of a sent message in an outbox is not sent again, even if the copy is damaged or
// has a different file name.
func TestSaveOfSent(t *testing.T) {
	a := newAuthor(t, storetest.Config{})
	m := send(t, a.p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "One", Body: "text"})
	copied := format.OutboxPath("Ann", m.ID, m.Created)
	data, err := os.ReadFile(a.path(copied))
	if err != nil {
		t.Fatal(err)
	}
	a.save("agents/Ann/outbox/again.md", string(data))
	a.save(copied, string(data[:len(data)/2]))
	a.save("agents/Ann/outbox/old/"+m.ID+".md", minimal)
	a.later()
	if got := a.inbox("Bob", "Ann"); len(got) != 2 {
		t.Errorf("Bob got %q", got)
	}
	want := []string{"Not sent: agents/Ann/outbox/again.md", "Not sent: agents/Ann/outbox/old/" + m.ID + ".md"}
	until(a, fmt.Sprintf("Ann got the notice %q", want), func() bool {
		got := a.inbox("Ann", format.Postmaster)
		slices.Sort(got)
		return slices.Equal(got, want)
	})
}

// TestSaveRestart checks that after a restart, the server sends the files that were saved while it was not running and
// the files that it had not sent before. No file may be sent twice, and no author may get the same notice twice.
func TestSaveRestart(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "store")
	bad := "agents/Ann/outbox/bad.md"
	for n := range 3 {
		s := storetest.Open(t, storetest.Config{Root: root})
		p, err := s.EnsureProject(t.Context(), shop)
		if err != nil {
			t.Fatal(err)
		}
		a := author{t, p}
		for _, name := range []string{"Ann", "Bob"} {
			if err := p.Agents.EnsureAgent(t.Context(), name, maildir.Registration{}); err != nil {
				t.Fatal(err)
			}
		}
		a.await("Bob", "Ann", slices.Repeat([]string{"Hello"}, n)...)
		if n > 0 {
			a.await("Ann", format.Postmaster, "Not sent: "+bad)
		}
		a.save(bad, "---json\n")
		a.save("agents/Ann/outbox/note.md", minimal+fmt.Sprint(n))
		s.Stop()
	}
}

// TestSaveSettledLater checks that Postmaster's notice about a file is marked as read even if the file was removed
// while no server was running.
func TestSaveSettledLater(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "store")
	const bad = "agents/Ann/outbox/bad.md"
	s := storetest.Open(t, storetest.Config{Root: root})
	a := author{t, projectIn(t, s.Store, "Ann")}
	a.save(bad, "no header")
	a.await("Ann", format.Postmaster, "Not sent: "+bad)
	s.Stop()
	if err := os.Remove(a.path(bad)); err != nil {
		t.Fatal(err)
	}
	s = storetest.Open(t, storetest.Config{Root: root})
	p, err := s.EnsureProject(t.Context(), shop)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "it is read", func() bool { return inbox(t, p, "Ann").Messages[0].Read })
}

// TestManyUnsent checks that the number of messages that Postmaster writes to one agent is limited.
func TestManyUnsent(t *testing.T) {
	a := newAuthor(t, storetest.Config{})
	for i := range 60 {
		a.save(fmt.Sprintf("agents/Ann/outbox/%d.md", i), "no header")
	}
	// The watcher may find the first files only when it scans the new folder, after it has reported the last ones.
	until(t, "the last notice arrives", func() bool { return len(a.inbox("Ann", format.Postmaster)) > maildir.MostAdvice })
	a.later()
	if got := a.inbox("Ann", format.Postmaster); len(got) != maildir.MostAdvice+1 || got[maildir.MostAdvice] != "More files need fixing" {
		t.Errorf("Ann got the notice %q", got)
	}
}

// TestEditedCopy checks that if a user edits an inbox copy, the inbox's agent gets one notice, which says that the edit
// has no effect. There must be no notice if the copy and its message were edited in the same way.
func TestEditedCopy(t *testing.T) {
	a := newAuthor(t, storetest.Config{})
	m := send(t, a.p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "One", Body: "text"})
	copied, canonical := format.InboxPath("Bob", m.ID, m.Created), format.CanonicalPath(m.ID, m.Created)
	data, err := os.ReadFile(a.path(copied))
	if err != nil {
		t.Fatal(err)
	}
	a.save(canonical, string(data)+"more\n")
	a.save(copied, string(data)+"more\n")
	a.later()
	a.await("Bob", format.Postmaster)
	a.save(copied, string(data)+"other\n")
	a.await("Bob", format.Postmaster, "Your edit has no effect: One")
	a.save(copied, string(data)+"another\n")
	a.later()
	a.await("Bob", format.Postmaster, "Your edit has no effect: One")
}
