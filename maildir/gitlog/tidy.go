package gitlog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Every commit adds loose objects and small packs. A large number of them slows down every git command that a user
// runs and every object that we read. Therefore, when nothing has been committed for Config.Idle, `git repack
// --geometric=2 -d` packs them. It packs loose objects whether or not they are reachable, and removes only what the
// new pack contains, so it needs no lock. Our commits and a user's may run at the same time (git-repack(1)).
//
// If gc.auto is set to a value other than 0, Git repacks and we do not. After a repack, `git commit-graph write
// --changed-paths` records the paths that each commit touched, so that git log for a path reads few commits. Both
// commands use ownFolder as their repository.

const (
	packWeight = 50        // number of loose objects that slow Git down as much as one more pack
	overdue    = 10        // above Config.Piled times overdue, Config.Idle is ignored
	tidyRetry  = time.Hour // the delay before a retry after a failure
	leftover   = time.Hour // no program uses temporary files older than this
)

// unpacked counts what was written since the last repack. It is guarded by Log.mu.
type unpacked struct {
	size   int       // loose objects; a pack is counted as packWeight
	since  time.Time // the time of the last commit
	notYet time.Time // no repack before this time
}

// noteUnpacked adds n to the count of objects, and wakes keepHouse if a repack is due.
func (l *Log) noteUnpacked(n int) {
	l.mu.Lock()
	l.unpacked.size += n
	l.unpacked.since = time.Now()
	ring := l.unpacked.size >= l.cfg.Piled
	l.mu.Unlock()
	if ring {
		ringBell(l.repackDue)
	}
}

// keepHouse repacks whenever a repack is due, until ctx ends. When it starts, it counts the existing objects once.
func (l *Log) keepHouse(ctx context.Context) {
	if l.cfg.Idle < 0 {
		return
	}
	l.mu.Lock()
	l.unpacked = unpacked{size: l.cfg.Piled, since: time.Now()}
	l.mu.Unlock()
	l.whenDue(ctx, l.repackDue, l.unpacked.due, l.tidy)
}

func (p *unpacked) due(cfg Config) (at time.Time, due bool) {
	if p.size < cfg.Piled {
		return at, false
	}
	if p.size < overdue*cfg.Piled {
		at = p.since.Add(cfg.Idle)
	}
	if at.Before(p.notYet) {
		at = p.notYet
	}
	return at, true
}

// tidy repacks if enough was written since the last repack.
func (l *Log) tidy(ctx context.Context) {
	done, err := await(ctx, l.cfg.Share.aside)
	if err != nil {
		return
	}
	defer done()
	l.mu.Lock()
	l.unpacked.size = 0 // objects written from now on are counted for the next repack
	l.mu.Unlock()
	unpacking, err := await(ctx, l.packing)
	if err == nil {
		err = l.repack(ctx)
		unpacking()
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	l.mu.Lock()
	l.unpacked.size, l.unpacked.notYet = max(l.unpacked.size, l.cfg.Piled), time.Now().Add(tidyRetry)
	l.mu.Unlock()
	l.cfg.Log.Info("repacking the mail repository was postponed", "reason", oneLine(err.Error(), 500))
}

// repack repacks if the repository needs it. After an error, the caller tries again later.
func (l *Log) repack(ctx context.Context) error {
	repo, err := l.openRepository(ctx, newMemory())
	if err != nil {
		return err
	}
	defer repo.Close()
	before, err := repo.sweep()
	if err != nil || !repo.config.ours || before.weight() < l.cfg.Piled {
		return err
	}
	if err := repo.busy(); err != nil {
		return err
	}
	start := time.Now()
	if err := repo.pack(); err != nil {
		return err
	}
	after, err := repo.sweep()
	l.cfg.Log.Info("the mail repository was repacked", "loose", before.loose, "packs", before.packs,
		"packs now", after.packs, "took", time.Since(start).Round(time.Millisecond))
	return err
}

// pack runs git repack and updates the commit graph to HEAD, at low priority.
func (r *repository) pack() error {
	at, err := r.head()
	if err != nil {
		return err
	}
	r.low = true
	_, err = r.run(nil, nil, "repack", "--geometric=2", "-d", "-l", "-n", "-q", "--no-write-bitmap-index")
	if err == nil && !at.commit.IsZero() {
		name := strings.NewReader(at.commit.String() + "\n")
		_, err = r.run(name, nil, "commit-graph", "write", "--stdin-commits", "--changed-paths", "--no-progress")
	}
	return err
}

// looseObjects is the number of loose objects and packs in the object store.
type looseObjects struct{ loose, packs int }

func (l looseObjects) weight() int { return l.loose + packWeight*l.packs }

// sweep counts loose objects and packs, and removes the temporary packs left behind by a killed program (our server
// or Git).
func (r *repository) sweep() (found looseObjects, err error) {
	for _, pattern := range []string{"tmp_*", ".tmp-*"} {
		files, _ := filepath.Glob(r.path("objects/pack/" + pattern))
		for _, file := range files {
			if fi, err := os.Lstat(file); err == nil && time.Since(fi.ModTime()) > leftover {
				_ = os.Remove(file) // the next sweep tries again
			}
		}
	}
	said, err := r.run(nil, nil, "count-objects", "-v")
	for line := range strings.Lines(string(said)) {
		_, _ = fmt.Sscanf(line, "count: %d", &found.loose)
		_, _ = fmt.Sscanf(line, "packs: %d", &found.packs)
	}
	return found, err
}
