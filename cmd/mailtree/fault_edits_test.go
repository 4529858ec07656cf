package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mailtree/fixtures/inmemory"
	"mailtree/fixtures/storetest"
	"mailtree/fixtures/waits"
	"mailtree/maildir/tree"
)

// TestFaultEdits checks that no edit is lost while users save messages and profiles in a tight loop, half of them in
// place and half by rename. Meanwhile, agents read, acknowledge and pop the same messages, mark them as unread, and
// claim and release files. From time to time, the users stop saving until everything that they saved is committed. The
// server must commit these saves even though the agents never stop. At the end, each file is as its user last saved it,
// the history contains every version that was ever left unchanged, and everything matches the responses that the agents
// received.
func TestFaultEdits(t *testing.T) {
	longer(t)
	t.Parallel()
	d := newDaemon(t, filepath.Join(inmemory.Dir(t), "store"))
	d.start()
	l := newLoad(t, d)
	for i := range 100 {
		if err := l.send(l.draft(l.agents[i%len(l.agents)])); err != nil {
			t.Fatal(err)
		}
	}
	l.refusal = func(err error) { // a file that is being saved in place is briefly not a valid message
		if !strings.Contains(err.Error(), "is not in the inbox") {
			t.Errorf("refused: %v", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	agents := l.working(ctx)
	e := &edits{load: l}
	for i, files := range l.shares(5) {
		e.persons = append(e.persons, &person{load: l, rename: i%2 == 0, files: files, last: map[string][]byte{}})
	}
	slow := e.persons[4]
	e.persons = e.persons[:4]
	each := extent(25, 125)
	for range extent(2, 19) {
		e.burst(each)
	}
	restless := e.restless(slow, extent(0, 3))
	cancel()
	agents.Wait()
	l.drain()
	if _, err := d.verb("flush", "project", faultKey); err != nil {
		t.Errorf("flush: %v", err)
	}
	e.save(each)
	for _, p := range append(e.persons, slow) {
		for path, data := range p.last {
			l.ledger.Save(path, data)
		}
	}
	d.check(l.ledger)
	t.Logf("%d saves, half of them by rename, and %d while nobody rested; %d versions rested and are in the history; %s",
		e.saves.Load()-int64(restless), restless, e.rested, l)
}

// edits is the group of all users who edit files.
type edits struct {
	*load
	persons []*person
	saves   atomic.Int64
	rested  int
}

// burst makes each user save n times, and then waits until everything is committed.
func (e *edits) burst(n int) {
	e.d.t.Helper()
	e.save(n)
	until(e.d.t, "the saved files to be committed", 3*time.Minute, func() bool { return e.committed(e.persons...) })
	for _, p := range e.persons {
		e.rest(p)
	}
}

// save makes each user save n times without a pause.
func (e *edits) save(n int) {
	var all sync.WaitGroup
	for _, p := range e.persons {
		p.unrested = map[string]bool{}
		all.Go(func() {
			for range n {
				p.save()
				e.saves.Add(1)
			}
		})
	}
	all.Wait()
}

// rest records the files that a user saved and then left unchanged until they were committed.
func (e *edits) rest(p *person) {
	for path := range p.unrested {
		e.ledger.Rest(path, p.last[path])
		e.rested++
	}
}

// restless makes the users save continuously until slow has saved n times. After each save, slow leaves its file
// unchanged until the server has committed it. The server delays a commit until users stop editing, but not forever.
// restless returns the number of saves.
func (e *edits) restless(slow *person, n int) int {
	e.d.t.Helper()
	ctx, cancel := context.WithCancel(e.d.t.Context())
	defer cancel()
	before := e.saves.Load()
	var all sync.WaitGroup
	for _, p := range e.persons {
		all.Go(func() {
			for ctx.Err() == nil {
				p.save()
				e.saves.Add(1)
				waits.Pace(20 * time.Millisecond)
			}
		})
	}
	for range n {
		slow.unrested = map[string]bool{}
		slow.save()
		e.saves.Add(1)
		until(e.d.t, "an edit to be committed while other users keep editing", 3*time.Minute,
			func() bool { waits.Pace(50 * time.Millisecond); return e.committed(slow) }) // each check reads the tree
		e.rest(slow)
	}
	cancel()
	all.Wait()
	return int(e.saves.Load() - before)
}

// committed reports whether HEAD contains each file as the given users last saved it.
func (e *edits) committed(persons ...*person) bool {
	out, err := exec.Command("git", "-C", e.d.tree(), "ls-tree", "-r", "-z", "HEAD").Output()
	if err != nil {
		e.d.t.Errorf("git ls-tree: %v", err)
		return true
	}
	blobs := map[string]string{}
	for line := range strings.SplitSeq(string(out), "\x00") {
		if about, path, ok := strings.Cut(line, "\t"); ok {
			blobs[path] = strings.Fields(about)[2]
		}
	}
	for _, p := range persons {
		for path := range p.unrested {
			if blobs[path] != storetest.Blob(p.last[path]) {
				return false
			}
		}
	}
	return true
}

// shares assigns each of n users their own files: canonical messages, inbox copies and profiles.
func (l *load) shares(n int) [][]string {
	out, i := make([][]string, n), 0
	add := func(path string) {
		out[i%n] = append(out[i%n], path)
		i++
	}
	for _, a := range l.agents {
		add("agents/" + a + "/profile.json")
	}
	t, err := tree.Open(l.d.tree(), 0)
	if err != nil {
		l.d.t.Fatal(err)
	}
	defer t.Close()
	for _, s := range l.ledger.Sends() {
		for _, path := range storetest.Files(t, &s) {
			add(path)
		}
	}
	return out
}

// person is a user who edits files. Each file belongs to one person, so the test knows how the file was last saved.
type person struct {
	*load
	rename   bool
	files    []string
	n        int
	last     map[string][]byte
	unrested map[string]bool // files saved since the last call to rest
}

func (p *person) save() {
	path := p.files[p.n%len(p.files)]
	p.n++
	file := filepath.Join(p.d.tree(), path)
	now, err := os.ReadFile(file)
	if err != nil {
		p.d.t.Error(err)
		return
	}
	if old := p.last[path]; old != nil && !bytes.Equal(old, now) {
		p.d.t.Errorf("%s was changed by someone else", path)
	}
	data := edited(path, now, p.n)
	if err := p.write(file, data); err != nil {
		p.d.t.Error(err)
	}
	p.last[path] = data
	p.unrested[path] = true
}

// edited returns the content of a file after an edit: a message with a new line at the end, or a profile with a
// different task.
func edited(path string, now []byte, n int) []byte {
	if filepath.Ext(path) == ".json" {
		return fmt.Appendf(nil,
			"{\n  \"program\": \"p\",\n  \"model\": \"m\",\n  \"task\": \"edit %d\",\n  \"inception\": \"2026-01-01T00:00:00Z\"\n}\n", n)
	}
	if len(now) > 4000 {
		now = now[:bytes.Index(now, []byte("\nedit "))+1]
	}
	return fmt.Appendf(bytes.Clone(now), "edit %d\n", n)
}

// write saves a file as an editor does: in place, or by renaming a new file over the old one.
func (p *person) write(file string, data []byte) error {
	if !p.rename {
		return os.WriteFile(file, data, 0o600)
	}
	tmp := filepath.Join(filepath.Dir(file), ".saving-"+filepath.Base(file))
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, file)
}
