package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
)

// TestFaultEdits is persons who save messages and profiles in a tight loop, some in place, some by rename, while agents
// read, acknowledge and pop the same messages. At the end each file is as its person saved it last, and all marks are there.
func TestFaultEdits(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, filepath.Join(t.TempDir(), "store"))
	d.start()
	l := newLoad(t, d)
	for i := range 300 {
		if err := l.send(l.draft(l.agents[i%len(l.agents)])); err != nil {
			t.Fatal(err)
		}
	}
	saves := int64(extent(100, 1000, 10000))
	var done atomic.Int64
	var persons sync.WaitGroup
	for i, files := range l.shares(4) {
		persons.Go(func() {
			p := &person{load: l, rename: i%2 == 0, last: map[string][]byte{}}
			for n := range saves {
				if done.Add(1) > saves || t.Failed() {
					break
				}
				p.save(files[int(n)%len(files)], n)
			}
			for path, data := range p.last {
				l.ledger.Save(path, data)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	var agents sync.WaitGroup
	for _, a := range l.agents {
		agents.Go(func() {
			for ctx.Err() == nil {
				if err := errors.Join(l.acknowledge(a), l.pop(a), l.check(a)); err != nil {
					t.Error(err)
					return
				}
				time.Sleep(10 * time.Millisecond) // so that there is mail for as long as there are edits
			}
		})
	}
	persons.Wait()
	cancel()
	agents.Wait()
	l.drain()
	d.check(l.ledger)
	t.Logf("%d saves: %s", saves, l)
}

// shares gives each of n persons files of their own: canonical messages, inbox copies, profiles.
func (l *load) shares(n int) [][]string {
	out := make([][]string, n)
	add := func(i int, path string) { out[i%n] = append(out[i%n], path) }
	for i, s := range l.ledger.Sends() {
		for _, path := range storetest.Files(&s) {
			add(i, path)
		}
	}
	for i, a := range l.agents {
		add(i, "agents/"+a+"/profile.json")
	}
	return out
}

// person edits files. Each is one person's, so that the last save is known.
type person struct {
	*load
	rename bool
	last   map[string][]byte
}

func (p *person) save(path string, n int64) {
	file := filepath.Join(p.d.tree(), path)
	now, err := os.ReadFile(file)
	if err != nil {
		p.d.t.Error(err)
		return
	}
	if old := p.last[path]; old != nil && !bytes.Equal(old, now) {
		p.d.t.Errorf("%s was changed by somebody else", path)
	}
	data := edited(path, now, n)
	if err := p.write(file, data); err != nil {
		p.d.t.Error(err)
	}
	p.last[path] = data
}

// edited is the file with a new line at the end of a message, or with another task in a profile.
func edited(path string, now []byte, n int64) []byte {
	if filepath.Ext(path) == ".json" {
		return fmt.Appendf(nil, "{\n  \"program\": \"p\",\n  \"model\": \"m\",\n  \"task\": \"edit %d\",\n  \"inception\": \"2026-01-01T00:00:00Z\"\n}\n", n)
	}
	if len(now) > 4000 {
		now = now[:bytes.Index(now, []byte("\nedit "))+1]
	}
	return fmt.Appendf(bytes.Clone(now), "edit %d\n", n)
}

// write saves as an editor does: in place, or a new file renamed over the old one.
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
