package watcher

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// TestOverflow checks that the watcher recovers after the kernel's queue has overflowed and events for new folders
// were lost. The queue overflows because the reader is blocked.
func TestOverflow(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	limit, _ := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || limit > 1<<18 {
		t.Skipf("queue of %d events: %v", limit, err)
	}
	var gate atomic.Pointer[chan struct{}]
	w := start(t, func(w *watched, _ *Config) {
		w.mkdir("old/in")
		w.mkdir("gone/in")
		w.write("one", "")
		w.write("two", "")
	}, func(w *Watcher) {
		w.sys.read = func() {
			if g := gate.Load(); g != nil {
				<-*g
			}
		}
	})
	shut := make(chan struct{})
	gate.Store(&shut)
	for i := range limit + 3*4096 { // enough to fill the kernel's queue and fsnotify's buffers
		_ = os.Chmod(filepath.Join(w.root, []string{"one", "two"}[i%2]), 0o600)
	}
	w.rename("old", "moved")
	w.remove("gone")
	w.mkdir("new/in")
	w.write("new/in/1", "x")
	gate.Store(nil)
	close(shut)
	w.until("overflow", func() bool { return w.State().Overflows > 0 })
	w.until("scan", func() bool { return w.scans() > 0 })
	w.converged()
	if n := w.State().Folders; n != 5 {
		t.Errorf("%d folders watched, want 5", n)
	}
	w.forget()
	w.write("new/in/2", "x")
	w.write("moved/in/2", "x")
	w.reported("new/in/2", "moved/in/2")
}

// TestConstantOverflow checks that a walk finishes even if the queue overflows at every folder that is walked. All
// watches must be in place before each Scan.
func TestConstantOverflow(t *testing.T) {
	t.Parallel()
	var storm atomic.Bool
	w := start(t, func(w *watched, _ *Config) {
		for i := range 200 {
			w.mkdir(fmt.Sprintf("%d/in", i))
		}
	}, func(w *Watcher) {
		add := w.sys.add
		w.sys.add = func(fs *fsnotify.Watcher, folder string) error {
			if storm.Load() {
				_ = w.fault(fsnotify.ErrEventOverflow)
			}
			return add(fs, folder)
		}
	})
	storm.Store(true)
	_ = w.fault(fsnotify.ErrEventOverflow)
	w.until("five scans", func() bool { return w.scans() >= 5 })
	storm.Store(false)
	w.mode("watching")
	if strings.Count(w.log.String(), "max_queued_events") == 0 {
		t.Error("nothing in the log")
	}
	w.write("7/in/x", "x")
	w.reported("7/in/x")
}

// limited makes adding further watches fail with errno once there are n watches.
func limited(n *atomic.Int64, errno error) func(*Watcher) {
	return func(w *Watcher) {
		add, used := w.sys.add, map[string]bool{}
		w.sys.add = func(fs *fsnotify.Watcher, folder string) error {
			if !used[folder] && int64(len(used)) >= n.Load() {
				return &os.PathError{Op: "inotify_add_watch", Path: folder, Err: errno}
			}
			used[folder] = true
			return add(fs, folder)
		}
	}
}

func TestNoWatchLeft(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	n.Store(3) // enough watches for the parent, the root and folder a
	w := start(t, func(w *watched, cfg *Config) { cfg.Poll = 20 * time.Millisecond; w.mkdir("a") }, limited(&n, syscall.ENOSPC))
	w.mode("watching")
	w.mkdir("b/c")
	w.mode("degraded")
	if r := w.State().Reason; !strings.Contains(r, "sysctl -w fs.inotify.max_user_watches=") {
		t.Errorf("reason %q", r)
	}
	w.write("b/c/unseen", "x")
	w.until("found by a Scan", w.equal)
	before := w.scans()
	w.until("scans continue", func() bool { return w.scans() >= before+3 })
	w.write("a/1", "x")
	w.reported("a/1") // watched folders stay watched
	if c := strings.Count(w.log.String(), "degraded"); c != 1 {
		t.Errorf("%d lines in the log, want one", c)
	}
	n.Store(100)
	w.mode("watching")
	w.settled()
	w.forget()
	w.write("b/c/seen", "x")
	w.reported("b/c/seen")
	w.converged()
	if w.scans() != 0 {
		t.Error("still scanning")
	}
}

func TestNoWatchLeftAtStart(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	n.Store(5)
	w := start(t, func(w *watched, cfg *Config) {
		cfg.Poll = 20 * time.Millisecond
		for i := range 50 {
			w.mkdir(fmt.Sprint(i))
		}
	}, limited(&n, syscall.ENOSPC))
	w.mode("degraded")
	w.until("scan", func() bool { return w.scans() > 0 })
	n.Store(1000)
	w.mode("watching")
	for i := range 50 {
		w.write(fmt.Sprintf("%d/x", i), "x")
	}
	w.converged()
}

func TestNoInstanceLeft(t *testing.T) {
	t.Parallel()
	var free atomic.Bool
	w := start(t, func(w *watched, cfg *Config) { cfg.Poll = 20 * time.Millisecond; w.mkdir("a") }, func(w *Watcher) {
		open := w.sys.open
		w.sys.open = func() (*fsnotify.Watcher, error) {
			if !free.Load() {
				return nil, syscall.EMFILE
			}
			return open()
		}
	})
	if r := w.State().Reason; w.State().Mode != "degraded" || !strings.Contains(r, "max_user_instances") {
		t.Errorf("state %+v", w.State())
	}
	w.write("a/1", "x")
	w.until("found by a Scan", w.equal)
	free.Store(true)
	w.mode("watching")
	w.write("a/2", "x")
	w.converged()
}

// TestRefusedFolder checks that a folder that cannot be watched is logged once, and does not prevent the watcher from
// watching other folders.
func TestRefusedFolder(t *testing.T) {
	t.Parallel()
	var allowed atomic.Bool
	w := start(t, func(w *watched, _ *Config) { w.mkdir("secret"); w.mkdir("open") }, func(w *Watcher) {
		add := w.sys.add
		w.sys.add = func(fs *fsnotify.Watcher, folder string) error {
			if filepath.Base(folder) == "secret" && !allowed.Load() {
				return syscall.EACCES
			}
			return add(fs, folder)
		}
	})
	w.mode("watching")
	_ = w.fault(fsnotify.ErrEventOverflow)
	w.until("scan", func() bool { return w.scans() > 0 })
	w.write("open/x", "x")
	w.reported("open/x")
	if n := strings.Count(w.log.String(), "path=secret"); n != 1 || w.State().Folders != 2 {
		t.Errorf("logged %d times; state %+v", n, w.State())
	}
	allowed.Store(true)
	if err := os.Chmod(filepath.Join(w.root, "secret"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.until("watched", func() bool { return w.State().Folders == 3 })
	w.write("secret/x", "x")
	w.converged()
}

// TestUnreadableFolder is like TestRefusedFolder, but uses real file permissions, so it cannot run as root.
func TestUnreadableFolder(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Skip("root may read everything")
	}
	chmod := func(w *watched, m os.FileMode) {
		if err := os.Chmod(filepath.Join(w.root, "secret"), m); err != nil {
			t.Fatal(err)
		}
	}
	w := start(t, func(w *watched, _ *Config) { w.mkdir("secret/in"); w.mkdir("open"); chmod(w, 0) })
	defer chmod(w, 0o700)
	w.mode("watching")
	_ = w.fault(fsnotify.ErrEventOverflow)
	w.until("scan", func() bool { return w.scans() > 0 })
	w.write("open/x", "x")
	w.reported("open/x")
	if n := strings.Count(w.log.String(), "path=secret"); n != 1 || w.State().Folders != 2 {
		t.Errorf("logged %d times; state %+v", n, w.State())
	}
	chmod(w, 0o700)
	w.until("watched", func() bool { return w.State().Folders == 4 })
	w.write("secret/in/x", "x")
	w.reported("secret/in/x")
	w.converged()
}

func TestRootRemovedAndMadeAgain(t *testing.T) {
	t.Parallel()
	w := start(t, func(w *watched, cfg *Config) { cfg.Poll = 20 * time.Millisecond; w.mkdir("a"); w.write("a/1", "x") })
	inside, err := os.Open(w.root) // like a shell whose working directory is the root
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	w.remove(".")
	w.remove("")
	w.mode("degraded")
	w.until("the removal is noticed", w.equal)
	w.until("scans continue", func() bool { return w.scans() >= 3 })
	if w.State().Reason == "" || w.State().Folders != 0 {
		t.Errorf("state %+v", w.State())
	}
	w.mkdir("b")
	w.write("b/2", "x")
	w.mode("watching")
	w.until("found by a Scan", w.equal)
	w.write("b/3", "x")
	w.reported("b/3")
	w.converged()
}

// TestRootReplaced checks that the watcher recovers if the root was removed and re-created before the watcher read the
// event, and if another folder was then renamed to the root's path.
func TestRootReplaced(t *testing.T) {
	t.Parallel()
	w := start(t, func(w *watched, _ *Config) { w.write("1", "x") })
	w.remove("")
	w.mkdir("a")
	w.write("a/2", "x")
	w.until("scan", func() bool { return w.scans() > 0 })
	w.converged()
	other := w.root + "2"
	mkdir(t, filepath.Join(other, "b"))
	if err := os.Rename(w.root, w.root+"1"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(other, w.root); err != nil {
		t.Fatal(err)
	}
	w.until("scan", w.equal)
	w.write("b/3", "x")
	w.converged()
}

// TestEmptyRootHeldOpen checks that the watcher notices the removal of an empty root that a process has open. The
// kernel sends no event for the deletion of such a folder.
func TestEmptyRootHeldOpen(t *testing.T) {
	t.Parallel()
	w := start(t, nil)
	inside, err := os.Open(w.root)
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	w.remove("")
	w.mode("degraded")
}

// TestRootReplacedInOneStep checks that a folder that replaces the root in one step is watched immediately.
func TestRootReplacedInOneStep(t *testing.T) {
	t.Parallel()
	w := start(t, func(w *watched, cfg *Config) { cfg.Poll = time.Hour })
	other := w.root + "2"
	mkdir(t, filepath.Join(other, "b"))
	if err := os.WriteFile(filepath.Join(other, "b/1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Rename(other, w.root); err != nil { // os.Rename does not replace folders
		t.Fatal(err)
	}
	w.until("found by a Scan", w.equal)
	w.mode("watching")
	w.write("b/2", "x")
	w.converged()
}

func TestRootMissingAtStart(t *testing.T) {
	t.Parallel()
	w := start(t, func(w *watched, cfg *Config) { cfg.Poll = 20 * time.Millisecond; w.remove("") })
	w.mode("degraded")
	w.mkdir("a")
	w.mode("watching")
	w.write("a/1", "x")
	w.converged()
}

// TestConvergence checks that a caller that relies only on batches ends up with the same tree after random changes,
// even if events are lost and no more watches are available.
func TestConvergence(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			var n atomic.Int64
			n.Store(1 << 40)
			w := start(t, func(w *watched, cfg *Config) { cfg.Poll = 10 * time.Millisecond }, limited(&n, syscall.ENOSPC))
			random := rand.New(rand.NewPCG(seed, 1))
			for i := range 3000 {
				mutate(w, random, i)
				if seed%4 == 2 && i%500 == 0 {
					_ = w.fault(fsnotify.ErrEventOverflow)
				}
				if seed%4 == 3 {
					n.Store(int64(10 + i%200))
				}
			}
			n.Store(1 << 40)
			w.converged()
			if seed%4 < 2 && strings.Count(w.log.String(), "degraded") != 0 {
				t.Error("degraded for no reason")
			}
		})
	}
}

// mutate makes one random change to the tree, which may fail.
func mutate(w *watched, random *rand.Rand, i int) {
	place := func() string {
		p := w.root
		for range 1 + random.IntN(4) {
			p = filepath.Join(p, string(rune('a'+random.IntN(4))))
		}
		return p
	}
	p := place()
	switch random.IntN(12) {
	case 0, 1, 2:
		_ = os.MkdirAll(p, 0o700)
	case 3, 4, 5:
		_ = os.WriteFile(p+".md", fmt.Append(nil, i), 0o600)
	case 6, 7, 8:
		_ = syscall.Rename(p, place()) // unlike os.Rename, this replaces an empty folder
	case 9:
		_ = os.Rename(p+".md", place()+".md")
	case 10:
		_ = os.Symlink("..", p)
	case 11:
		_ = os.RemoveAll(p)
	}
}

// TestFolderFault checks that the watcher does not drop a folder that the disk temporarily cannot list. Until the disk
// recovers, Scans must find the folder's files.
func TestFolderFault(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	n.Store(3) // enough watches for the parent, the root and folder a
	w := start(t, func(w *watched, cfg *Config) { cfg.Poll = 20 * time.Millisecond; w.mkdir("a") }, limited(&n, syscall.EIO))
	w.mode("watching")
	w.mkdir("b/c")
	w.mode("degraded")
	w.write("b/c/unseen", "x")
	w.until("found by a Scan", w.equal)
	n.Store(100)
	w.mode("watching")
	w.write("b/c/seen", "x")
	w.reported("b/c/seen")
	w.converged()
}
