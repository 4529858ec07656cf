package gitlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
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
// Only in repositories that have gc.auto=0, which Init sets where there is no value: elsewhere Git
// does it. Afterwards `git commit-graph write --changed-paths` notes of each commit what it touched, so
// that a log of a path reads few of them. Both see ownFolder.

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
	before, err := l.repack(ctx)
	if err == nil || ctx.Err() != nil {
		return
	}
	l.mu.Lock()
	l.pile.size, l.pile.notYet = l.pile.size+before.weight(), time.Now().Add(tidyRetry)
	l.mu.Unlock()
	l.cfg.Log.Info("packs of the mail's repository are put together later", "reason", oneLine(err.Error(), 500))
}

// repack does it where there is reason to. An error is one to try again after.
func (l *Log) repack(ctx context.Context) (before litter, err error) {
	repo, err := l.openRepository(ctx, newMemory())
	if err != nil {
		return before, err
	}
	defer repo.Close()
	if before, err = repo.sweep(time.Now()); err != nil {
		return before, err
	}
	if !repo.config.ours || before.weight() < l.cfg.Piled {
		return before, nil
	}
	if err := repo.quiet(); err != nil {
		return before, err
	}
	start := time.Now()
	if err := repo.pack(); err != nil {
		return before, err
	}
	after, err := repo.sweep(time.Now())
	l.cfg.Log.Info("packs of the mail's repository put together", "loose", before.loose, "packs", before.packs,
		"packs now", after.packs, "took", time.Since(start).Round(time.Millisecond))
	return before, err
}

// quiet reports why this is no moment to put packs together. A person's git gc keeps its process id in a file.
func (r *repository) quiet() error {
	fi, err := os.Lstat(r.path("gc.pid"))
	if transient(err) || err == nil && time.Since(fi.ModTime()).Abs() < staleGC {
		return errors.New("git gc runs")
	}
	return r.busy()
}

// staleGC is more than a gc of the mail takes, and less than git's own limit of twelve hours.
const staleGC = time.Hour

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

// sweep counts loose objects and the packs that may be put together, and removes temporary files
// that a killed program has left, of ours or of Git's.
func (r *repository) sweep(now time.Time) (found litter, err error) {
	old := func(d fs.DirEntry) bool {
		fi, err := d.Info()
		return err == nil && d.Type().IsRegular() && now.Sub(fi.ModTime()) > leftover
	}
	for _, dir := range append([]string{"", "pack"}, shards()...) {
		files, err := os.ReadDir(r.path("objects/" + dir))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return found, err
		}
		for _, f := range files {
			name := f.Name()
			switch {
			case strings.HasPrefix(name, "tmp_") || strings.HasPrefix(name, ".tmp-"):
				if old(f) {
					_ = os.Remove(r.path("objects/" + dir + "/" + name)) // the next time, if not now
				}
			case len(dir) == 2 && len(name) == 2*len(hash{})-2:
				if !f.Type().IsRegular() { // git would wait for a FIFO
					return found, notFile("objects/" + dir + "/" + name)
				}
				found.loose++
			case dir == "pack" && strings.HasSuffix(name, ".pack"):
				found.packs++
			}
		}
	}
	return found, r.checkObjects()
}

// shards are the folders of loose objects.
func shards() (all []string) {
	for i := range 256 {
		all = append(all, fmt.Sprintf("%02x", i))
	}
	return all
}
