package gitlog

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// catchUp hands over, once, what others changed while nobody watched: it compares the tree with the Git index, when
// the operations that the journal has recovered are committed and the repository is in a state to commit to.
// Ctx ends it.
func (l *Log) catchUp(ctx context.Context) {
	l.mu.Lock()
	before := l.recorded
	l.mu.Unlock()
	var from place
	for failures := 0; ; {
		found, next, err := l.missed(ctx, before, from)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			if l.found(ctx, found) != nil {
				return
			}
			if next == nil {
				return
			}
			from, failures = *next, 0
		case failures == 0 && !errors.Is(err, errLater):
			_, reason := modeOf(err)
			l.cfg.Log.Info("edits made while the server was not running are looked for later", "reason", reason)
		}
		if pause(ctx, min(shortestRetry<<min(failures, 10), longestRetry)) != nil {
			return
		}
		failures++
	}
}

// errLater: what was recorded or found before is still to be committed.
var errLater = errors.New("there is still work in the queue")

// found is Edited, but it leaves an operation that has just written one of the paths the time to be recorded, and
// the quiet time begins anew, however long other edits have been waiting.
func (l *Log) found(ctx context.Context, found []difference) error {
	if len(found) == 0 {
		return nil
	}
	paths, young := make([]string, len(found)), false
	for i, d := range found {
		paths[i] = d.path
		young = young || time.Since(d.since).Abs() < recordTime
	}
	if young {
		if err := pause(ctx, recordTime); err != nil {
			return err
		}
	}
	l.mu.Lock()
	now := time.Now()
	l.edited(paths, now)
	l.firstEdit = now
	l.mu.Unlock()
	l.ring()
	l.cfg.Log.Info("edits made while the server was not running are committed", "paths", len(paths))
	return nil
}

// recordTime is more than an operation takes from its first file to Record.
const recordTime = 2 * time.Second

// missed compares a part of the tree with the index. Only the reading of the index takes the turn.
func (l *Log) missed(ctx context.Context, before uint64, from place) (found []difference, next *place, err error) {
	l.mu.Lock()
	later := l.finished < before || len(l.edits)+len(l.flight) >= mostFound
	l.mu.Unlock()
	if later {
		return nil, nil, errLater
	}
	c := &comparison{place: from, most: mostFound}
	err = l.exclusive(ctx, func() error {
		repo, err := openRepository(l.cfg.Dir, l.mem)
		if err != nil {
			return err
		}
		defer repo.close()
		if err := l.repair(repo); err != nil {
			return err
		}
		if err := repo.busy(); err != nil {
			return err
		}
		at, err := l.branch(repo)
		if err != nil {
			return err
		}
		if c.index, err = repo.readIndex(); err != nil {
			return err
		}
		c.ignore, c.modes = newIgnorer(repo.git), repo.config.fileMode
		tree, err := repo.treeOf(at.commit)
		if err != nil || tree.IsZero() || c.index.seen.exists {
			return err
		}
		return c.index.fill(repo, tree)
	})
	if err != nil {
		return nil, nil, err
	}
	if c.files, err = openWorktree(l.cfg.Dir); err != nil {
		return nil, nil, err
	}
	defer c.files.close()
	return c.run(ctx)
}

// mostFound bounds what is handed over at once: the rest follows when that is committed.
const mostFound = 50000

// place is how far a comparison came.
type place struct {
	untracked bool   // all entries of the index are compared
	after     string // the last path that was handed over
}

// comparison finds the files that differ from the index, without following a link or opening anything but regular
// files of which the stat data differs.
type comparison struct {
	place
	most   int
	index  *gitIndex
	files  *worktree
	ignore *ignorer
	modes  bool // the executable bit means something
	found  []difference
	looks  int
}

type difference struct {
	path  string
	since time.Time // when it was made, at the latest
}

var errFull = errors.New("enough for one commit")

// run returns the differences; next is where to go on, nil when that was all.
func (c *comparison) run(ctx context.Context) (found []difference, next *place, err error) {
	if !c.untracked {
		err = c.tracked(ctx)
		if err == nil {
			c.place = place{untracked: true}
		}
	}
	if err == nil {
		err = c.others(ctx, "", 0, len(c.index.entries))
	}
	if errors.Is(err, errFull) {
		return c.found, &c.place, nil
	}
	return c.found, nil, err
}

func (c *comparison) add(path string, since time.Time) error {
	c.found, c.after = append(c.found, difference{path, since}), path
	if len(c.found) >= c.most {
		return errFull
	}
	return nil
}

// tick ends the comparison with ctx.
func (c *comparison) tick(ctx context.Context) error {
	if c.looks++; c.looks%256 == 0 && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

const assumeUnchanged = 0x8000 // in the flags

// tracked compares the entries of the index.
func (c *comparison) tracked(ctx context.Context) error {
	for i := c.index.find(c.after); i < len(c.index.entries); i++ {
		if err := c.tick(ctx); err != nil {
			return err
		}
		e := c.index.entries[i]
		if e.entry().mode == modeModule || e.flags()&assumeUnchanged != 0 {
			continue
		}
		path := string(e.name)
		if path == c.after || !committable(path) {
			continue
		}
		since, yes := c.differs(e, path)
		if !yes {
			continue
		}
		if err := c.add(path, since); err != nil {
			return err
		}
	}
	return nil
}

// differs reports that another file than the entry's is at path, or none. What cannot be told is no difference.
func (c *comparison) differs(e indexEntry, path string) (since time.Time, yes bool) {
	st, err := c.files.stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return time.Now(), !c.index.sparse(path)
	case err != nil:
		return since, false
	case st.is(unix.S_IFDIR):
		return st.ctime, true
	case !st.is(unix.S_IFREG) && !st.is(unix.S_IFLNK):
		return since, false
	}
	st.dev = e.dev() // another one after each mount: Git does not compare it either
	if e.holds(st) && st.is(e.entry().mode&unix.S_IFMT) && st.mtime.Unix() < c.index.seen.stat.mtime.Unix() {
		return since, false
	}
	now, _, err := c.files.blob(path, st, &objects{dry: true})
	if err != nil {
		return time.Now(), errors.Is(err, fs.ErrNotExist)
	}
	was := e.entry()
	if !c.modes && now.mode != modeLink && was.mode != modeLink {
		now.mode = was.mode
	}
	return st.ctime, now != was
}

// others finds the files of a folder that are not in the index. Those that are, and below the folder, are the
// entries from lo to hi. Nested repositories and ignored folders are not entered.
func (c *comparison) others(ctx context.Context, dir string, lo, hi int) error {
	names, err := c.files.list(dir)
	if err != nil || dir != "" && slices.ContainsFunc(names, isGitFolder) {
		return nil
	}
	for _, name := range names {
		if err := c.tick(ctx); err != nil {
			return err
		}
		path := name
		if dir != "" {
			path = dir + "/" + name
		}
		if !committable(path) || c.isBehind(path) {
			continue
		}
		if i := c.index.findIn(lo, hi, path); i < hi && string(c.index.entries[i].name) == path {
			continue
		}
		st, err := c.files.stat(path)
		switch {
		case err != nil:
		case st.is(unix.S_IFDIR):
			if !c.ignore.match(c.files, path, true) {
				err = c.others(ctx, path, c.index.findIn(lo, hi, path+"/"), c.index.findIn(lo, hi, path+"0")) // '0' comes after '/'
				if err != nil {
					return err
				}
			}
		case c.isNew(path, st):
			if err := c.add(path, st.ctime); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *comparison) isNew(path string, st fileStat) bool {
	if !st.is(unix.S_IFREG) && (!st.is(unix.S_IFLNK) || dangerousLink(path)) {
		return false
	}
	return !c.ignore.match(c.files, path, false)
}

// isBehind reports that path, or all below it, was handed over already. The order is that of others.
func (c *comparison) isBehind(path string) bool {
	if c.after == "" || strings.HasPrefix(c.after, path+"/") {
		return false
	}
	key := func(s string) string { return strings.ReplaceAll(s, "/", "\x00") }
	return key(path) <= key(c.after)
}
