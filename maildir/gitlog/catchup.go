package gitlog

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"mailtree/maildir/gitlog/gitindex"
	"mailtree/maildir/gitlog/object"
)

// catchUp hands over, once, what others changed while nobody watched: it compares the tree with the
// Git index, when the operations that the journal has recovered are committed and the repository is
// in a state to commit to. Where ctx ends it, it returns where it is to go on.
func (l *Log) catchUp(ctx context.Context, before uint64) (rest *place) {
	var from place
	for failures := 0; ; {
		found, next, err := l.missed(ctx, before, from)
		switch {
		case ctx.Err() != nil:
			return &from
		case err == nil:
			if l.found(ctx, found) != nil {
				return &from
			}
			if next == nil {
				return nil
			}
			from, failures = *next, 0
		case failures == 0 && !errors.Is(err, errLater):
			_, reason := modeOf(err)
			l.cfg.Log.Info("edits made while the server was not running are looked for later", "reason", reason)
		}
		if pause(ctx, min(shortestRetry<<min(failures, 10), longestRetry)) != nil {
			return &from
		}
		failures++
	}
}

// lastLook goes on with catchUp when the server ends, at once: nobody records operations any more.
// What it cannot do is for the next start.
func (l *Log) lastLook(ctx context.Context, before uint64, from place) error {
	for {
		found, next, err := l.missed(ctx, before, from)
		if err != nil {
			return nil
		}
		var paths []string
		for _, d := range found {
			paths = append(paths, d.path)
		}
		l.Edited(paths)
		if err := l.Flush(ctx); err != nil || next == nil {
			return err
		}
		from = *next
	}
}

// errLater: what was recorded or found before is still to be committed.
var errLater = errors.New("there is still work in the queue")

// found is Edited, but it leaves an operation that has just written one of the paths the time to be
// recorded, and the quiet time begins anew, however long other edits have been waiting.
func (l *Log) found(ctx context.Context, found []difference) error {
	if len(found) == 0 {
		return nil
	}
	paths, young := make([]string, len(found)), false
	for i, d := range found {
		paths[i] = d.path
		young = young || time.Since(d.since).Abs() < l.recordTime
	}
	if young {
		if err := pause(ctx, l.recordTime); err != nil {
			return err
		}
	}
	l.mu.Lock()
	now := time.Now()
	l.edited(paths, now)
	l.firstEdit = now
	l.mu.Unlock()
	l.ring()
	l.cfg.Log.Info("changes that no commit has were found and are committed", "paths", len(paths))
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
	done, err := await(ctx, l.cfg.Share.aside)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	c := &comparison{place: from, most: mostFound}
	defer func() {
		if c.index != nil {
			c.index.Close()
		}
	}()
	err = l.exclusive(ctx, func() error { return l.openComparison(c) })
	if err != nil {
		return nil, nil, err
	}
	if c.files, err = openWorktree(l.cfg.Dir); err != nil {
		return nil, nil, err
	}
	defer c.files.close()
	return c.run(ctx)
}

// openComparison opens the index of a comparison, or makes one from HEAD where it is missing. The
// caller holds the turn.
func (l *Log) openComparison(c *comparison) error {
	repo, err := l.openRepaired()
	if err != nil {
		return err
	}
	defer repo.Close()
	if err := repo.busy(); err != nil {
		return err
	}
	at, err := l.branch(repo)
	if err != nil {
		return err
	}
	verified := l.mem.sound // a copy: l.mem is guarded by the turn
	if c.index, err = gitindex.Open(repo.path("index"), &verified); err != nil {
		return err
	}
	c.ignore, c.modes = newIgnorer(repo.git), repo.config.fileMode
	tree, err := repo.TreeOf(at.commit)
	if err != nil || tree.IsZero() || c.index.Seen.Exists {
		return err
	}
	return repo.fillIndex(c.index, tree)
}

// mostFound bounds what is handed over at once: the rest follows when that is committed.
const mostFound = 50000

// place is how far a comparison came.
type place struct {
	untracked bool   // all entries of the index are compared
	after     string // the last path that was handed over
}

// comparison finds the files that differ from the index, without following a link or opening
// anything but regular files of which the stat data differs.
type comparison struct {
	place
	most   int
	index  *gitindex.Index
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
		entries := newCursor(c.index)
		defer entries.stop()
		if err = c.others(ctx, "", entries); err == nil {
			err = entries.err
		}
	}
	if (err == nil || errors.Is(err, errFull)) && c.ignore.fault != nil {
		err = c.ignore.fault
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

// tracked compares the entries of the index.
func (c *comparison) tracked(ctx context.Context) (err error) {
	for e := range c.index.All(&err) {
		if string(e.Name) <= c.after || e.Mode() == object.ModeModule || e.Assumed() {
			continue
		}
		if err := c.tick(ctx); err != nil {
			return err
		}
		path := string(e.Name)
		if !committable(path) {
			continue
		}
		since, yes, err := c.differs(e, path)
		if err != nil {
			return err
		}
		if !yes {
			continue
		}
		if err := c.add(path, since); err != nil {
			return err
		}
	}
	return err
}

// differs reports that another file than the entry's is at path, or none. A file that may not be
// read is no difference; an error is transient.
func (c *comparison) differs(e gitindex.Entry, path string) (since time.Time, yes bool, err error) {
	st, err := c.files.stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return time.Now(), !e.Sparse(), nil
	case transient(err):
		return since, false, err
	case err != nil:
		return since, false, nil
	case st.Is(unix.S_IFDIR):
		return st.CTime, true, nil
	case !st.Is(unix.S_IFREG) && !st.Is(unix.S_IFLNK):
		return since, false, nil
	}
	st.Dev = e.Dev() // another one after each mount: Git does not compare it either
	if e.Holds(st) && st.Is(e.Mode()&unix.S_IFMT) && st.MTime.Unix() < c.index.Seen.Stat.MTime.Unix() {
		return since, false, nil
	}
	now, _, _, err := c.files.blob(path, st)
	if transient(err) {
		return since, false, err
	}
	if err != nil {
		return time.Now(), errors.Is(err, fs.ErrNotExist), nil
	}
	was := entryOf(e)
	if !c.modes && now.Mode != object.ModeLink && was.Mode != object.ModeLink {
		now.Mode = was.Mode
	}
	return st.CTime, now != was, nil
}

// others finds the files of a folder that are not in the index. It goes through them in the order
// of the index. Nested repositories and ignored folders are not entered.
func (c *comparison) others(ctx context.Context, dir string, entries *cursor) error {
	names, err := c.files.sorted(dir)
	if transient(err) {
		return err
	}
	if err != nil || dir != "" && slices.ContainsFunc(names, func(n string) bool { return isGitFolder(strings.TrimSuffix(n, "/")) }) {
		return nil
	}
	for _, name := range names {
		if err := c.tick(ctx); err != nil {
			return err
		}
		path, isDir := strings.CutSuffix(name, "/")
		if dir != "" {
			path = dir + "/" + path
		}
		if !committable(path) || c.isBehind(path, isDir) {
			continue
		}
		if isDir {
			if err := c.folder(ctx, path, entries); err != nil {
				return err
			}
			continue
		}
		if entries.has(path) {
			continue
		}
		st, err := c.files.stat(path)
		if transient(err) {
			return err
		}
		if err == nil && c.isNew(path, st) {
			if err := c.add(path, st.CTime); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *comparison) folder(ctx context.Context, path string, entries *cursor) error {
	entries.has(path + "/") // a module of that name comes before what is below it
	if entries.modules[path] || c.ignore.match(c.files, path, aFolder) {
		return nil
	}
	return c.others(ctx, path, entries)
}

func (c *comparison) isNew(path string, st gitindex.Stat) bool {
	if !st.Is(unix.S_IFREG) && (!st.Is(unix.S_IFLNK) || dangerousLink(path)) {
		return false
	}
	return !c.ignore.match(c.files, path, aFile)
}

// isBehind reports that path, or all below it, was handed over already.
func (c *comparison) isBehind(path string, isDir bool) bool {
	if isDir {
		return path+"/" < c.after && !strings.HasPrefix(c.after, path+"/")
	}
	return path <= c.after
}

// cursor goes through the entries of an index once, forward.
type cursor struct {
	next    func() (gitindex.Entry, bool)
	stop    func()
	now     []byte
	more    bool
	modules map[string]bool // that it came by
	err     error
}

func newCursor(x *gitindex.Index) *cursor {
	c := &cursor{modules: map[string]bool{}}
	c.next, c.stop = iter.Pull(x.All(&c.err))
	c.step()
	return c
}

func (c *cursor) step() {
	e, ok := c.next()
	if c.more = ok; ok {
		c.now = append(c.now[:0], e.Name...)
		if e.Mode() == object.ModeModule {
			c.modules[string(c.now)] = true
		}
	}
}

// has reports whether there is an entry for path, which is not before the one asked for last. After
// an error it says yes to all.
func (c *cursor) has(path string) bool {
	for c.more && string(c.now) < path {
		c.step()
	}
	return c.err != nil || c.more && string(c.now) == path
}
