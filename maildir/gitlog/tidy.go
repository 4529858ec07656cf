package gitlog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Loose objects and small packs pile up: every commit adds some, and with very many of them each
// git command of a person and each object that we must read gets slower. So packs are put together
// when nothing has been committed for Config.Idle, by `git repack --geometric=2 -d`, where there is
// a git program, and else not at all. It takes loose objects whether reachable or not and removes
// nothing that is not in the new pack, so it needs no lock: a commit of ours or of a person may run
// beside it (git-repack(1)).
//
// Not in repositories whose gc.auto has another value than 0: there Git does it. Afterwards `git commit-graph
// write --changed-paths` notes of each commit what it touched, so that a log of a path reads few of them. Both
// see ownFolder.

const (
	packWeight = 50        // a pack more slows Git down like so many loose objects
	overdue    = 10        // so many times Config.Piled do not wait until it is quiet
	tidyRetry  = time.Hour // after a failure
	leftover   = time.Hour // older temporary files are nobody's
)

// pile is what has been written since packs were last put together. Guarded by Log.mu.
type pile struct {
	size   int       // loose objects, and packs in that measure
	since  time.Time // of the last commit
	notYet time.Time // not before
}

// grow notes what a commit has written; ring when it is time to see to it.
func (l *Log) grow(n int) {
	l.mu.Lock()
	l.pile.size += n
	l.pile.since = time.Now()
	ring := l.pile.size >= l.cfg.Piled
	l.mu.Unlock()
	if ring {
		ringBell(l.litter)
	}
}

// keepHouse puts packs together when it is time to, until ctx ends. What was there before is
// counted once.
func (l *Log) keepHouse(ctx context.Context) {
	if l.cfg.Idle < 0 {
		return
	}
	l.mu.Lock()
	l.pile = pile{size: l.cfg.Piled, since: time.Now()}
	l.mu.Unlock()
	l.whenDue(ctx, l.litter, l.pile.due, l.tidy)
}

func (p *pile) due(cfg Config) (at time.Time, due bool) {
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

// tidy looks whether there is a pile, and clears it away.
func (l *Log) tidy(ctx context.Context) {
	done, err := await(ctx, l.cfg.Share.aside)
	if err != nil {
		return
	}
	defer done()
	l.mu.Lock()
	l.pile.size = 0 // what is written meanwhile counts for the next time
	l.mu.Unlock()
	err = l.repack(ctx)
	if err == nil || ctx.Err() != nil {
		return
	}
	l.mu.Lock()
	l.pile.size, l.pile.notYet = max(l.pile.size, l.cfg.Piled), time.Now().Add(tidyRetry)
	l.mu.Unlock()
	l.cfg.Log.Info("packs of the mail's repository are put together later", "reason", oneLine(err.Error(), 500))
}

// repack does it where there is reason to. An error is one to try again after.
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
	l.cfg.Log.Info("packs of the mail's repository put together", "loose", before.loose, "packs", before.packs,
		"packs now", after.packs, "took", time.Since(start).Round(time.Millisecond))
	return err
}

// pack puts packs together and brings the commit graph level with HEAD, at low priority.
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

// litter is what lies about in the object store.
type litter struct{ loose, packs int }

func (l litter) weight() int { return l.loose + packWeight*l.packs }

// sweep counts loose objects and packs, and removes temporary packs that a killed program has left, of ours or of
// Git's.
func (r *repository) sweep() (found litter, err error) {
	for _, pattern := range []string{"tmp_*", ".tmp-*"} {
		files, _ := filepath.Glob(r.path("objects/pack/" + pattern))
		for _, file := range files {
			if fi, err := os.Lstat(file); err == nil && time.Since(fi.ModTime()) > leftover {
				_ = os.Remove(file) // the next time, if not now
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
