package gitlog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Every commit adds loose objects and small packs, which slow down users' git commands and our own reads. Therefore,
// when nothing has been committed for Config.Idle, we run `git repack --geometric=2 -d`. It packs all loose objects,
// reachable or not, and removes only objects that the new pack contains. It needs no lock, so we or a user can commit
// at the same time (git-repack(1)).
//
// If gc.auto is set to a value other than 0, Git repacks and we do not. After a repack, `git commit-graph write
// --changed-paths` records the paths that each commit touched, so that git log for a path has to read only a few
// commits. Both commands use ownFolder as their repository.

const (
	packWeight = 50        // the number of loose objects that slow Git down as much as one pack
	overdue    = 10        // if the count exceeds Config.Piled by this factor, Config.Idle is ignored
	tidyRetry  = time.Hour // delay before a retry after a failure
	leftover   = time.Hour // age at which a temporary file is assumed to be unused
)

// unpacked counts the objects written since the last repack. It is guarded by Log.mu.
type unpacked struct {
	size   int       // number of loose objects; a pack counts as packWeight
	since  time.Time // the time of the last commit
	notYet time.Time // do not repack before this time
}

// noteUnpacked adds n to the count of objects, and wakes keepHouse if a repack may be due.
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

// keepHouse repacks whenever a repack is due, until ctx ends. It also checks soon after the start whether a repack is
// needed, because the number of existing objects is unknown.
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

// tidy repacks if enough objects have been written since the last repack.
func (l *Log) tidy(ctx context.Context) {
	done, err := await(ctx, l.cfg.Share.aside)
	if err != nil {
		return
	}
	defer done()
	l.mu.Lock()
	l.unpacked.size = 0 // objects written from now on count toward the next repack
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
	l.cfg.Log.Info("postponed repacking the mail repository", "reason", oneLine(err.Error(), 500))
}

// repack repacks the repository if necessary. If it returns an error, the caller must try again later.
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
	l.cfg.Log.Info("repacked the mail repository", "loose", before.loose, "packs", before.packs,
		"packs now", after.packs, "took", time.Since(start).Round(time.Millisecond))
	return err
}

// pack runs git repack at low priority, and updates the commit graph up to HEAD.
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

// looseObjects contains the numbers of loose objects and packs in the object store.
type looseObjects struct{ loose, packs int }

func (l looseObjects) weight() int { return l.loose + packWeight*l.packs }

// sweep counts loose objects and packs, and removes temporary packs that a killed program (our server or Git) left
// behind.
func (r *repository) sweep() (found looseObjects, err error) {
	for _, pattern := range []string{"tmp_*", ".tmp-*"} {
		files, _ := filepath.Glob(r.path("objects/pack/" + pattern))
		for _, file := range files {
			if fi, err := os.Lstat(file); err == nil && time.Since(fi.ModTime()) > leftover {
				_ = os.Remove(file) // if this fails, the next sweep tries again
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
