package main

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mailtree/fixtures/inmemory"
	"mailtree/fixtures/storetest"
	"mailtree/fixtures/waits"
)

// These functions add another machine to TestFaultSteps: a clone of a bare repository next to the store. The server can
// reach the bare repository only during syncStep. A sync that the server starts on its own therefore merges nothing
// before lookSynced has run.

func (s *steps) bare() string  { return filepath.Join(filepath.Dir(s.d.store), "mail.git") }
func (s *steps) clone() string { return filepath.Join(filepath.Dir(s.d.store), "clone") }

// reach makes the bare repository reachable if now is true, and unreachable otherwise. Git does not recognize a
// repository without HEAD.
func (s *steps) reach(now bool) {
	from, to := s.bare()+"/HEAD", s.bare()+"/away"
	if now {
		from, to = to, from
	}
	s.must(os.Rename(from, to))
}

func (s *steps) git(dir string, args ...string) {
	out, err := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=Ada", "-c", "user.email=ada@example.org"}, args...)...).CombinedOutput()
	if err != nil {
		s.d.t.Fatalf("git %v: %v: %s", args, err, out)
	}
}

// pushed makes the other machine push a commit with three new files and one changed file. It does nothing if the
// machine's previous commit has not been merged yet.
func pushed(s *steps) {
	if _, err := os.Stat(s.bare()); err != nil {
		s.git(".", "init", "-q", "--bare", "-b", "main", s.bare())
		s.git(s.d.tree(), "remote", "add", "origin", s.bare())
		_, err := s.d.verb("sync", "project", faultKey)
		s.must(err)
		s.git(".", "clone", "-q", s.bare(), s.clone())
		s.reach(false)
	} else {
		until(s.d.t, "the sync at the server's start to fail", time.Minute, func() bool {
			problem, err := s.d.verb("unsynced", "project", faultKey)
			return err == nil && problem != ""
		})
	}
	if s.old != "" && lookSynced(s) == 0 {
		return
	}
	s.old = strconv.Itoa(s.n)
	s.reach(true)
	s.git(s.clone(), "pull", "-q", "--no-rebase", "--no-edit")
	dir := filepath.Join(s.clone(), "from", s.old)
	s.must(os.MkdirAll(dir, 0o700))
	for _, file := range []string{dir + "/a.txt", dir + "/b.txt", dir + "/c.txt", s.clone() + "/from/same.txt"} {
		s.must(os.WriteFile(file, []byte(s.old), 0o600))
	}
	s.git(s.clone(), "add", "from")
	s.git(s.clone(), "commit", "-qm", "from another machine")
	s.git(s.clone(), "push", "-q")
	s.reach(false)
}

func syncStep(s *steps) error {
	s.reach(true)
	defer s.reach(false)
	_, err := s.d.verb("sync", "project", faultKey)
	return err
}

// lookSynced counts the merged files of the other machine's newest commit.
func lookSynced(s *steps) int {
	n := len(s.files("from/" + s.old + "/*.txt"))
	if data, err := os.ReadFile(filepath.Join(s.d.tree(), "from", "same.txt")); err == nil && string(data) == s.old {
		n++
	}
	return n
}

// TestFaultSync checks that no mail is lost while three machines write to each other. The machines are repeatedly
// killed and lose access to the shared repository, and a user commits and rebases on one of them. At the end, each
// message is in its recipient's inbox, all machines have the same files, including the user's, and every store is
// sound.
func TestFaultSync(t *testing.T) {
	longer(t)
	t.Parallel()
	messages := extent(100, 3400) // the number of messages that each machine sends
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("git", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return string(out)
	}
	bare, machines := threeMachines(t, func(*machine, int) []string { return []string{"SYNC_INTERVAL=1s"} })
	var all []*sharing
	for _, m := range machines {
		all = append(all, &sharing{m, messages})
	}

	ctx, end := context.WithCancel(t.Context())
	var sending, beside sync.WaitGroup
	cuts := 0
	for i, m := range all {
		sending.Go(func() { m.send(all[(i+1)%3].agent, all[(i+2)%3].agent) })
	}
	beside.Go(func() { // partitions: without HEAD, Git does not recognize the repository
		for ; ctx.Err() == nil; cuts++ {
			waits.Pace(rand.N(time.Second))
			_ = os.Rename(bare+"/HEAD", bare+"/away")
			waits.Pace(rand.N(time.Second))
			_ = os.Rename(bare+"/away", bare+"/HEAD")
		}
	})
	person := &rebaser{t: t, dir: all[0].tree(), refused: map[string]int{}}
	beside.Go(func() { person.work(ctx) })
	sending.Wait()
	end()
	beside.Wait()
	t.Logf("%d messages crossed, %d partitions, %d notes by a user and %d rebases; refused: %v", 3*messages, cuts, len(person.notes), person.rebases,
		person.refused)
	for range 2 {
		for _, m := range all {
			m.must(m.verb("compare", "project", faultKey))
			m.must(m.verb("sync", "project", faultKey))
		}
	}
	first := ""
	for i, m := range all {
		got, files := map[string]bool{}, 0
		err := filepath.WalkDir(filepath.Join(m.tree(), "agents", m.agent, "inbox"), func(f string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(f, ".md") {
				return err
			}
			files++
			data, err := os.ReadFile(f)
			_, body, _ := strings.Cut(string(data), "\n---\n")
			got[strings.TrimSpace(body)] = true
			return err
		})
		if err != nil || len(got) != messages || files != messages {
			t.Errorf("%s has %d messages in %d files, not %d (%v)", m.agent, len(got), files, messages, err)
		}
		for n := range person.notes {
			if data, err := os.ReadFile(filepath.Join(m.tree(), person.note(n))); err != nil || !person.wrote(n, string(data)) {
				t.Errorf("%s has %q, %v for what the user wrote on %s: %q", m.agent, data, err, all[0].agent, person.notes[n])
			}
		}
		tree := run("-C", m.tree(), "ls-tree", "-r", "HEAD")
		if first == "" {
			first = tree
		}
		if tree != first {
			t.Errorf("machine %d does not have the same files as the first", i)
		}
	}
	for _, m := range all {
		m.stop()
		var problems []string
		for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(time.Second) {
			problems = storetest.CheckEdited(t.Context(), m.store)
			if len(problems) == 0 { // if there are problems, a git repack started by a killed server may still be running
				break
			}
		}
		for _, p := range problems {
			t.Error(p)
		}
		t.Logf("%s: %d starts", m.agent, m.starts)
	}
}

// machine is a server that shares its mail with other machines, and an agent on that server.
type machine struct {
	*daemon
	agent string
}

// threeMachines starts servers on three stores that share a project through a bare repository, with an agent on each.
// env returns the settings of machine i.
func threeMachines(t *testing.T, env func(m *machine, i int) []string) (bare string, all []*machine) {
	t.Helper()
	dir := inmemory.Dir(t)
	bare = filepath.Join(dir, "mail.git")
	git := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	git("init", "-q", "--bare", "-b", "main", bare)
	for i := range 3 {
		home := filepath.Join(dir, strconv.Itoa(i))
		if err := os.Mkdir(home, 0o700); err != nil {
			t.Fatal(err)
		}
		m := &machine{newDaemon(t, filepath.Join(home, "store")), fmt.Sprint("Agent", i)}
		m.env = env(m, i)
		m.start()
		if i > 0 {
			m.must(m.verb("join", "project", faultKey, "url", bare))
		}
		m.must("", m.call("create_agent", map[string]string{"project_key": faultKey, "program": "p", "model": "m", "task_description": "t",
			"name_hint": m.agent}, nil))
		if i == 0 {
			git("-C", m.tree(), "remote", "add", "origin", bare)
		}
		m.must(m.verb("sync", "project", faultKey))
		all = append(all, m)
	}
	for _, m := range all {
		m.must(m.verb("sync", "project", faultKey))
	}
	return bare, all
}

func (m *machine) must(_ string, err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatalf("%s: %v", m.agent, err)
	}
}

// sharing is one of the machines in TestFaultSync.
type sharing struct {
	*machine
	messages int
}

// send makes clients send messages, alternating between the two other machines, while the server is repeatedly killed.
// If a send gets no response, the message is sent again with the same key.
func (m *sharing) send(to ...string) {
	const clients = 8
	var sent [clients]int
	for all := 0; all < m.messages; {
		killed := make(chan struct{})
		time.AfterFunc(300*time.Millisecond+rand.N(time.Second), func() { m.kill(); close(killed) })
		var sending sync.WaitGroup
		for c := range clients {
			sending.Go(func() {
				for n := c + clients*sent[c]; n < m.messages; n += clients {
					body := fmt.Sprintf("%d of %s", n, m.agent)
					if m.call("send_message", message{From: m.agent, To: []string{to[n%2]}, CC: []string{}, BCC: []string{}, Subject: "s", Body: body,
						Key: body, Project: faultKey}, nil) != nil {
						return
					}
					sent[c]++
				}
			})
		}
		sending.Wait()
		<-killed
		m.start()
		all = 0
		for _, n := range sent {
			all += n
		}
	}
}

// rebaser is a user who commits notes in the mail repository of one of the machines, amends the commits, and rebases
// manually.
type rebaser struct {
	t       *testing.T
	dir     string
	notes   []string // the text of each note, by number
	rebases int
	refused map[string]int // number of refusals, by command
}

func (p *rebaser) note(n int) string { return fmt.Sprintf("notes/%d.md", n) }

// git runs a command and reports whether it succeeded.
func (p *rebaser) git(args ...string) bool {
	err := exec.Command("git", append([]string{"-C", p.dir, "-c", "user.name=Person", "-c", "user.email=person@example.org"}, args...)...).Run()
	if err != nil {
		p.refused[args[0]]++
	}
	return err == nil
}

func (p *rebaser) work(ctx context.Context) {
	for ctx.Err() == nil {
		n := len(p.notes)
		p.notes = append(p.notes, "")
		p.write(n, fmt.Sprintf("note %d", n))
		p.git("add", p.note(n))
		if p.git("commit", "-qm", p.note(n)) && n%2 == 0 {
			p.write(n, fmt.Sprintf("note %d, amended", n))
			p.git("commit", "-q", "--amend", "--no-edit", p.note(n))
		}
		p.git("fetch", "-q", "origin")
		if p.git("rebase", "-q", "origin/main") {
			p.rebases++
		} else { // --abort would remove the server's commits from the branch (see docs/explanation/durability.md)
			_ = exec.Command("git", "-C", p.dir, "rebase", "--quit").Run()
			until(p.t, "git checkout main", time.Minute, func() bool { return p.git("checkout", "-q", "main") || p.keep() })
			p.resolve()
		}
		waits.Pace(rand.N(2 * time.Second))
	}
}

// keep runs the command that the server suggests if git checkout would overwrite files. These files are mail that has
// arrived since the rebase began.
func (p *rebaser) keep() bool {
	c := exec.Command("sh", "-c", "git ls-files -zmo --exclude-standard | xargs -0r git --literal-pathspecs reset -q main -- && git checkout -q main")
	c.Dir = p.dir
	return c.Run() == nil
}

// resolve rewrites the notes in which a rebase has left conflict markers. There is a conflict if the server pushed a
// commit before the user amended it.
func (p *rebaser) resolve() {
	for n, text := range p.notes {
		if data, err := os.ReadFile(filepath.Join(p.dir, p.note(n))); err == nil && strings.Contains(string(data), "<<<<<<<") {
			p.write(n, text)
		}
	}
}

// wrote reports whether a note contains the user's latest text. If the note was pushed before the user amended it,
// other machines also have the first text. If both texts were written within the same second, the first one may be
// treated as the later one.
func (p *rebaser) wrote(n int, text string) bool {
	return text == p.notes[n] || n%2 == 0 && text == fmt.Sprintf("note %d", n)
}

func (p *rebaser) write(n int, text string) {
	p.notes[n] = text
	file := filepath.Join(p.dir, p.note(n))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		p.t.Error(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		p.t.Error(err)
	}
}
