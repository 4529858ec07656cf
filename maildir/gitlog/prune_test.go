package gitlog

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mailtree/maildir/gitlog/object"
	"mailtree/maildir/writer"
)

// A person runs git gc --prune=now, and its parts, at any step of a commit: nothing of it is lost,
// whether its objects are loose or in a pack.
func TestPruneAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, step := range append([]string{"built", "objects"}, steps...) {
		for what, size := range map[string]int{"loose": 1, "pack": 30, "large file": -1} {
			t.Run(step+", "+what, func(t *testing.T) {
				t.Parallel()
				tr := newTree(t, Config{})
				tr.send("m0", "m0", "new/m0")
				tr.flush()
				if step == "reserved" {
					tr.log.gentle = 0
				}
				if size < 0 {
					tr.write("big", strings.Repeat("0123456789abcdef", object.LargeFile/8))
					tr.log.Record([]writer.Op{op("send", "A", "big", "big")}, nil)
				}
				for i := range size {
					tr.send(fmt.Sprint("m", i+1), fmt.Sprint("new/m", i+1))
				}
				reached := false
				tr.log.step = func(s string) {
					if s == step {
						reached = true
						tr.tryGit("gc", "-q", "--prune=now") // fails where we hold a lock
						tr.tryGit("repack", "-a", "-d", "-q")
						tr.tryGit("prune", "--expire=now")
					}
					if s == "index moved" { // before the branch moves its commit is whole
						sum, err := os.ReadFile(tr.path(".git/refs/heads/main.lock"))
						tr.check(err)
						tr.have([]string{strings.TrimSpace(string(sum)) + "^{tree}"})
					}
				}
				tr.flush()
				if !reached {
					t.Fatal("the step was not reached")
				}
				tr.log.step = func(string) {}
				tr.send("last", "new/last")
				tr.flush()
				tr.sound()
				if n := len(tr.ids()); n != max(size, 1)+2 {
					t.Errorf("%d ids in the log", n)
				}
				if keep, _ := filepath.Glob(tr.path(".git/objects/pack/*.keep")); len(keep) > 0 {
					t.Errorf("left: %q", keep)
				}
			})
		}
	}
}

// What is removed while the branch moves is back when the commit is told.
func TestPruneDuringTheMove(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	head := tr.git("rev-parse", "HEAD")
	tr.log.step = func(s string) {
		switch s {
		case "ref moved":
			loose, err := filepath.Glob(tr.path(".git/objects/??/*"))
			tr.check(err)
			for _, f := range loose {
				if !strings.Contains(tr.git("rev-list", "--objects", head), strings.ReplaceAll(strings.TrimPrefix(f, tr.path(".git/objects/")), "/", "")) {
					tr.check(os.Remove(f))
				}
			}
		case "durable":
			tr.equal("fsck", tr.git("fsck", "--no-dangling"), "")
		}
	}
	tr.send("m1", "m1")
	tr.flush()
}

// A prune that read the branch before our commit removes its objects after it.
func TestPruneEndsLate(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	tr.run()
	tr.write(".git/gc.pid", "1 elsewhere")
	for round := range 3 {
		tr.send(fmt.Sprint("m", round), fmt.Sprint("m", round))
		head := tr.git("rev-parse", "HEAD")
		tr.until("committed", func() bool { return tr.git("rev-parse", "HEAD") != head && tr.log.State().Pending == 0 })
		if round == 1 {
			tr.check(pause(context.Background(), 2*healTime)) // the gc takes its time
		}
		tr.check(tr.log.exclusive(context.Background(), func() error { // else it may be back before it is missed
			loose, err := filepath.Glob(tr.path(".git/objects/??/*"))
			kept, kerr := tr.tryGit("rev-list", "--objects", head)
			err = errors.Join(err, kerr)
			for _, f := range loose {
				name := strings.ReplaceAll(strings.TrimPrefix(f, tr.path(".git/objects/")), "/", "")
				if !strings.Contains(kept, name) {
					err = errors.Join(err, os.Remove(f))
				}
			}
			if _, sound := tr.tryGit("fsck"); sound == nil {
				t.Error("nothing was taken away")
			}
			return err
		}))
		tr.until("all is back", func() bool { _, err := tr.tryGit("fsck"); return err == nil })
	}
	tr.check(os.Remove(tr.path(".git/gc.pid")))
	tr.until("forgotten", func() (yes bool) {
		tr.check(tr.log.exclusive(context.Background(), func() error { yes = tr.log.mem.fresh == nil; return nil }))
		return yes
	})
	tr.sound()
}

func TestFreshIsBounded(t *testing.T) {
	t.Parallel()
	m := newMemory()
	for range 5 {
		m.keepFresh([]object.Object{{Data: make([]byte, freshBytes/3)}, {Data: make([]byte, 10)}})
	}
	n := 0
	for _, x := range m.fresh {
		n += len(x.Data)
	}
	if n > freshBytes || n < freshBytes/2 {
		t.Errorf("%d bytes", n)
	}
}

// A large file that changes while it is read leaves the pack whole.
func TestLargeFileThatChanges(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	o := newRepository(tr.dir, newMemory()).objects()
	text := strings.Repeat(rand.Text(), 1<<10)
	var want []string
	for i, size := range []int{len(text), len(text) + 1, len(text), len(text) - 1, len(text) + 1} {
		h, err := o.AddFile(strings.NewReader(text), int64(size))
		if short := size > len(text); short != (err != nil) {
			t.Errorf("file %d: %v", i, err)
		} else if !short {
			want = append(want, h.String())
		}
		_, err = o.Add(object.KindBlob, fmt.Append(nil, "small ", i))
		tr.check(err)
	}
	_, err := o.Finish()
	tr.check(err)
	keep, err := filepath.Glob(tr.path(".git/objects/pack/*.keep"))
	if err != nil || len(keep) != 1 {
		t.Errorf("keep: %q %v", keep, err)
	}
	o.Discard()
	tr.have(want)
	idx, _ := filepath.Glob(tr.path(".git/objects/pack/*.idx"))
	tr.git("verify-pack", idx[0])
	tr.equal("text", tr.git("cat-file", "-p", want[0]), text)
	tr.equal("objects", fmt.Sprint(len(strings.Split(tr.git("verify-pack", "-v", idx[0]), "\n"))), "9") // 7 and two lines
}

// A .keep that a kill has left is removed when it is old, a person's never.
func TestOldKeep(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{Idle: -1, Piled: 1})
	old := time.Now().Add(-2 * leftover)
	for name, text := range map[string]string{"ours": object.KeepText, "mine": "by hand", "new": object.KeepText} {
		tr.write(".git/objects/pack/pack-"+name+".keep", text)
		if name != "new" {
			tr.check(os.Chtimes(tr.path(".git/objects/pack/pack-"+name+".keep"), old, old))
		}
	}
	_, err := tr.log.repack(context.Background())
	tr.check(err)
	left, err := filepath.Glob(tr.path(".git/objects/pack/*.keep"))
	tr.check(err)
	if len(left) != 2 || filepath.Base(left[0]) != "pack-mine.keep" || filepath.Base(left[1]) != "pack-new.keep" {
		t.Errorf("left: %q", left)
	}
}
