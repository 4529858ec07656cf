package watcher

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mailtree/fixtures/waits"
)

// patience is how long a test waits for a condition.
const patience = time.Minute

// recorder stands in for the watcher's caller. It keeps every batch, and a mirror of the tree that it updates only
// when batches arrive.
type recorder struct {
	root string

	mu      sync.Mutex
	batches []Batch
	at      []time.Time
	mirror  map[string]string // content by path
	bad     []string
	inside  atomic.Int32
	hold    chan struct{} // if set, OnBatch waits for it to be closed
	held    chan struct{} // signals that OnBatch is waiting
}

func (r *recorder) onBatch(_ context.Context, b Batch) {
	if r.inside.Add(1) != 1 {
		r.complain("two calls of OnBatch are running at once")
	}
	defer r.inside.Add(-1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.check(b)
	r.batches = append(r.batches, b)
	r.at = append(r.at, time.Now())
	if hold := r.hold; hold != nil {
		r.hold = nil
		r.mu.Unlock()
		close(r.held)
		<-hold
		r.mu.Lock()
	}
	if b.Scan {
		r.mirror = snapshot(r.root)
	}
	r.look(b.Paths)
}

// check checks that a batch satisfies the contract of Batch. The caller must hold mu.
func (r *recorder) check(b Batch) {
	if !slices.IsSorted(b.Paths) || len(slices.Compact(slices.Clone(b.Paths))) != len(b.Paths) {
		r.bad = append(r.bad, "paths not sorted or not unique")
	}
	for _, p := range b.Paths {
		if p == "" || p == "." || strings.HasPrefix(p, "/") || strings.HasSuffix(p, "/") {
			r.bad = append(r.bad, "invalid path "+p)
		}
	}
	if !b.Scan && len(b.Paths) == 0 {
		r.bad = append(r.bad, "empty batch")
	}
}

func (r *recorder) complain(s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bad = append(r.bad, s)
}

// look updates the mirror at the given paths and drops everything below them that is gone, even if a file or a link
// has replaced a folder. It iterates over the mirror once, no matter how many paths there are.
func (r *recorder) look(paths []string) {
	named := map[string]bool{}
	for _, rel := range paths {
		named[rel] = true
		if content, ok := readBelow(r.root, rel); ok {
			r.mirror[rel] = content
		}
	}
	for known := range r.mirror {
		at := known
		for at != "." && !named[at] {
			at = path.Dir(at)
		}
		if at == "." {
			continue
		}
		if _, ok := readBelow(r.root, known); !ok {
			delete(r.mirror, known)
		}
	}
}

// readBelow reads a file. It does not follow links in the path. If a link replaced a folder, the folder's files are
// gone, no matter what the link points to.
func readBelow(root, rel string) (string, bool) {
	for dir := path.Dir(rel); dir != "."; dir = path.Dir(dir) {
		if info, err := os.Lstat(filepath.Join(root, dir)); err != nil || !info.IsDir() {
			return "", false
		}
	}
	return read(filepath.Join(root, rel))
}

// read returns the content of a regular file, or the mode of anything else that is not a folder.
func read(file string) (string, bool) {
	info, err := os.Lstat(file)
	switch {
	case err != nil || info.IsDir():
		return "", false
	case !info.Mode().IsRegular():
		return info.Mode().String(), true
	}
	data, err := os.ReadFile(file)
	return string(data), err == nil
}

// snapshot reads the whole tree.
func snapshot(root string) map[string]string {
	tree := map[string]string{}
	_ = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // the tree is being changed
		}
		if content, ok := read(p); ok {
			rel, _ := filepath.Rel(root, p)
			tree[rel] = content
		}
		return nil
	})
	return tree
}

// paths returns how often each path was reported since the last call of forget, and whether a batch had Scan set.
func (r *recorder) paths() (map[string]int, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	paths, scan := map[string]int{}, false
	for _, b := range r.batches {
		scan = scan || b.Scan
		for _, p := range b.Paths {
			paths[p]++
		}
	}
	return paths, scan
}

func (r *recorder) scans() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, b := range r.batches {
		n += count(b.Scan)
	}
	return n
}

func (r *recorder) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batches, r.at = nil, nil
}

func (r *recorder) equal() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Equal(r.mirror, snapshot(r.root))
}

func (r *recorder) mirrored() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.mirror)
}

// watched is a watcher that runs until the test ends.
type watched struct {
	*Watcher
	*recorder
	t    *testing.T
	root string
	log  *waits.Log
}

// start creates a folder and watches it. Before watching, it calls prepare, which can fill the folder and change the
// Config.
func start(t *testing.T, prepare func(w *watched, cfg *Config), hooks ...func(*Watcher)) *watched {
	t.Helper()
	root := filepath.Join(t.TempDir(), "root")
	mkdir(t, root)
	w := &watched{t: t, root: root, log: &waits.Log{}, recorder: &recorder{root: root, held: make(chan struct{})}}
	cfg := Config{Root: root, OnBatch: w.onBatch, Log: slog.New(slog.NewTextHandler(w.log, nil))}
	if prepare != nil {
		prepare(w, &cfg)
	}
	w.mirror = snapshot(root)
	w.Watcher = New(cfg)
	for _, h := range hooks {
		h(w.Watcher)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil || w.State().Mode != "stopped" {
				t.Errorf("Run: %v, state %+v", err, w.State())
			}
		case <-time.After(patience):
			t.Error("Run does not end with its context")
		}
		for _, s := range w.bad {
			t.Error(s)
		}
		if t.Failed() {
			t.Logf("log: %s", w.log.String())
		}
	})
	select {
	case <-w.Ready():
	case <-time.After(patience):
		t.Fatal("not ready")
	}
	return w
}

func (w *watched) until(what string, cond func() bool) {
	w.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			w.t.Fatalf("this never happened: %s; state %+v", what, w.State())
		}
	}
}

// reported waits until every path has been in a batch.
func (w *watched) reported(paths ...string) {
	w.t.Helper()
	w.until("all reported", func() bool {
		got, _ := w.paths()
		for _, p := range paths {
			if got[p] == 0 {
				return false
			}
		}
		return true
	})
}

// mode waits until State reports the mode m.
func (w *watched) mode(m string) {
	w.t.Helper()
	w.until("mode "+m, func() bool { return w.State().Mode == m })
}

// settled waits until all events so far have been reported. It writes one last file. Once that file has been reported,
// so have all earlier events.
func (w *watched) settled() {
	w.t.Helper()
	w.until("every event is reported", func() bool { return w.State().Mode == "watching" && w.State().Pending == 0 })
	w.write("settled", time.Now().String())
	w.until("mark", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		content, _ := read(filepath.Join(w.root, "settled"))
		return w.mirror["settled"] == content
	})
	w.until("every event is reported", func() bool { return w.State().Pending == 0 })
}

// converged waits until all events have been reported, and then checks that the mirror equals the tree.
func (w *watched) converged() {
	w.t.Helper()
	w.settled()
	if !w.equal() {
		w.mu.Lock()
		have, want := maps.Clone(w.mirror), snapshot(w.root)
		w.mu.Unlock()
		for p := range want {
			if have[p] != want[p] {
				w.t.Errorf("missed: %q", p)
			}
		}
		for p := range have {
			if _, ok := want[p]; !ok {
				w.t.Errorf("removal not noticed: %q", p)
			}
		}
	}
}

func (w *watched) write(rel, content string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.root, rel), []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *watched) mkdir(rel string) { w.t.Helper(); mkdir(w.t, filepath.Join(w.root, rel)) }

func (w *watched) rename(from, to string) {
	w.t.Helper()
	if err := os.Rename(filepath.Join(w.root, from), filepath.Join(w.root, to)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *watched) remove(rel string) {
	w.t.Helper()
	if err := os.RemoveAll(filepath.Join(w.root, rel)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.t.Fatal(err)
	}
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
}
