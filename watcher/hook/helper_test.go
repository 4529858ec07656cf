package hook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/fixtures/waits"
	"mailtree/maildir"
	"mailtree/maildir/format"
	hooks "mailtree/maildir/hook"
	"mailtree/watcher/hook"
)

func TestMain(m *testing.M) {
	if err := storetest.Isolate(os.Setenv); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// bench is a store with a project that has the agents ann and bob. Commands write files in the folder dir.
type bench struct {
	*storetest.Store
	t   *testing.T
	p   *maildir.Project
	dir string
}

func newBench(t *testing.T, cfg storetest.Config) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir()}
	b.open(cfg)
	for _, n := range []string{"ann", "bob"} {
		if err := b.p.Agents.EnsureAgent(t.Context(), n, maildir.Registration{}); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (b *bench) open(cfg storetest.Config) {
	b.t.Helper()
	b.Store = storetest.Open(b.t, cfg)
	var err error
	if b.p, err = b.EnsureProject(b.t.Context(), "/abs/path/shop"); err != nil {
		b.t.Fatal(err)
	}
}

// start starts a runner, which runs until the test ends or stop is called.
func (b *bench) start(cfg hook.Config) (stop func()) {
	b.t.Helper()
	cfg.Store = b.Store.Store
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	r := hook.New(cfg)
	go func() { defer close(done); r.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	b.t.Cleanup(stop)
	return stop
}

// hook adds a hook to a mailbox.
func (b *bench) hook(mailbox string, h hooks.Hook) {
	b.t.Helper()
	box, err := b.p.As(maildir.Caller{Root: true}, format.Origin{}).Box(b.t.Context(), mailbox)
	if err != nil {
		b.t.Fatal(err)
	}
	if h.Timeout == 0 {
		h.Timeout = hooks.DefaultTimeout
	}
	if h.Event == "" {
		h.Event = hooks.OnReceive
	}
	if _, err := box.CreateHook(b.t.Context(), h); err != nil {
		b.t.Fatal(err)
	}
}

// script writes an executable shell script. It replaces DIR in the text with b.dir.
func (b *bench) script(name, text string) string {
	b.t.Helper()
	file := filepath.Join(b.dir, name)
	syscall.ForkLock.RLock() // a process forked now would keep the file open for writing, and then the file could not be executed
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+strings.ReplaceAll(text, "DIR", b.dir)), 0o700); err != nil {
		b.t.Fatal(err)
	}
	return file
}

// waiting writes a script that runs until goOn is called.
func (b *bench) waiting(name string) string {
	return b.script(name, "while [ ! -e DIR/go ]; do sleep 0.01; done\n")
}

func (b *bench) goOn() {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, "go"), nil, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) send(auth, subject string) string {
	b.t.Helper()
	m, err := b.p.Box("ann", format.Origin{Auth: auth}).Send(b.t.Context(), maildir.Draft{To: []string{"bob"}, Subject: subject, Body: "text"})
	if err != nil {
		b.t.Fatal(err)
	}
	return m.ID
}

// run is one line of a run's mark. It records the run's beginning or its end.
type run struct {
	Hook, Message, Begun, Ended, End, Output string
	Exit                                     int
}

// Values for the argument of runs.
const (
	begun = false
	ended = true
)

// runs returns the lines that record the beginnings or, if ends is set, the ends of runs, in chronological order.
func (b *bench) runs(ends bool) (all []run) {
	b.t.Helper()
	for line := range strings.Lines(storetest.HookMarks(b.t, b.Root())) {
		var r run
		if json.Unmarshal([]byte(line), &r) != nil || ends && r.Ended == "" || !ends && r.Begun == "" {
			continue
		}
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(a, b run) int { return strings.Compare(a.Begun+a.Ended, b.Begun+b.Ended) })
	return all
}

// ended waits until n runs have ended, and returns them.
func (b *bench) ended(n int) []run {
	b.t.Helper()
	b.until(fmt.Sprintf("%d runs ended", n), func() bool { return len(b.runs(ended)) >= n })
	return b.runs(ended)
}

func (b *bench) until(what string, ok func() bool) {
	b.t.Helper()
	if !waits.Within(3*time.Minute, ok) {
		b.t.Fatalf("never: %s; log:\n%+v\n%+v", what, b.runs(begun), b.runs(ended))
	}
}

// file returns the content of a file that a command wrote. It returns "" if the command has not written it yet.
func (b *bench) file(name string) string {
	data, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil && !os.IsNotExist(err) {
		b.t.Fatal(err)
	}
	return string(data)
}

// save writes a file in the tree as an editor would.
func (b *bench) save(path, text string) {
	b.t.Helper()
	file := filepath.Join(b.p.Dir(), path)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// rescan makes the index ingest saved files.
func (b *bench) rescan() {
	b.t.Helper()
	if err := b.p.Rescan(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// byHand returns a message file as a user would write it.
func byHand(id, to string) string {
	return fmt.Sprintf("---json\n{\"id\": %q, \"from\": \"ann\", \"to\": [%q], \"subject\": \"by hand\", \"created\": \"2025-10-23T15:22:14Z\"}\n---\n\nhello\n", id, to)
}
