package gitlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"mailtree/maildir/gitlog/gitindex"
)

// publication moves branch and index to a new commit together. Git's own protocol, in this order:
//
//  1. index, ref, lock and mark are written beside, and made durable with all objects (importer);
//  2. index.lock is made by link, which fails where it exists; the mark tells it from a person's lock;
//  3. HEAD, branch and index are compared with what the commit was built on;
//  4. the ref becomes <ref>.lock by link, HEAD and branch are compared once more, reflogs are written;
//  5. the index is renamed into place, <ref>.lock to the ref; index.lock is given back a moment later.
//
// The order of step 5 and the moment matter, because `git commit` reads HEAD, then the index, and
// only then takes index.lock. If the branch moved first, it could read the new branch and the old
// index, and its commit would take the new mail away. As it is, whoever has read the old index has
// read the old HEAD too: his commit fails with "cannot lock ref". But before it fails it would
// write the old index back; so index.lock is kept for longer than a commit needs from reading the
// index to locking it, and what slips through is found by heal.
//
// A kill within step 5 leaves index.lock: Git refuses to commit until repair has finished the move.
type publication struct {
	repo   *repository
	at     head // what the commit was built on
	commit hash
	log    string // "Name <mail> time zone\tcommit: subject"
	plan   *plan
	mark   mark
	recent map[string]gitindex.Stat
	seen   gitindex.Seen // the index that ours was made from
	locked bool          // index.lock is ours
	ref    bool          // <ref>.lock is ours
	step   func(string)
	land   func() // called before the branch moves
}

var (
	errMoved    = errors.New("the branch moved meanwhile")
	errUnsynced = errors.New("the commit is made but not known to be durable")
)

// run publishes; after an error that is not isMade the caller must abandon. errMoved: somebody else
// was first, build anew. *hold: a lock is not to be had. errUnsynced and errHalf: the commit is
// made, what follows it is not.
func (p *publication) run(ctx context.Context) error {
	if err := p.prepare(); err != nil {
		return err
	}
	if err := p.lock(ctx); err != nil {
		return err
	}
	return p.finishRef()
}

// prepare is step 1.
func (p *publication) prepare() error {
	r, m := p.repo, &p.mark
	m.New = p.commit.String()
	if err := r.stage(refStage, []byte(m.New+"\n"), 0o666); err != nil {
		return err
	}
	write := r.stageLock
	if p.locked {
		write = r.writeMark
	}
	if err := write(m); err != nil {
		return err
	}
	p.step("staged")
	return p.sync(r.staged())
}

func (p *publication) sync(names []string) error {
	return syncAll(p.repo.git, names)
}

// stageIndex writes the next index.
func (p *publication) stageIndex() (err error) {
	p.mark.Branch, p.mark.Old, p.mark.New = p.at.branch, p.at.commit.String(), ""
	if !p.commit.IsZero() {
		p.mark.New = p.commit.String()
	}
	p.seen = p.plan.index.Seen
	p.recent, err = p.repo.stageIndex(&p.mark, p.plan.index, p.plan.differing(), p.plan.files)
	return err
}

// reserve takes index.lock before the commit is built, for when a person's commits follow each
// other faster than the disk makes ours durable: then nobody else can begin one.
func (p *publication) reserve(ctx context.Context) error {
	p.mark.Branch, p.mark.Old, p.mark.New = p.at.branch, p.at.commit.String(), p.at.commit.String()
	if err := p.repo.stageLock(&p.mark); err != nil {
		return err
	}
	if err := p.sync(p.repo.staged()); err != nil {
		return err
	}
	if err := p.lockIndex(ctx); err != nil {
		return err
	}
	p.step("reserved")
	return p.repo.rest(ctx) // a command that has written the index may be about to move HEAD
}

// lock is steps 2 to 4.
func (p *publication) lock(ctx context.Context) error {
	if !p.locked {
		if err := p.lockIndex(ctx); err != nil {
			return err
		}
	}
	p.step("index locked")
	if err := p.unchanged(); err != nil {
		return err
	}
	if err := p.lockRef(ctx); err != nil {
		return err
	}
	p.step("ref locked")
	if now, err := p.repo.head(); err != nil {
		return err
	} else if now != p.at { // HEAD too: checkout -b takes no lock of the index
		return errMoved
	}
	return p.writeLogs()
}

// lockIndex waits for index.lock, at most lockPatience.
func (p *publication) lockIndex(ctx context.Context) error {
	ok, err := p.takeLock(ctx, lockStage, "index.lock", lockPatience)
	if err != nil {
		return err
	}
	if !ok {
		return p.repo.lockedBy("index.lock")
	}
	p.locked = true
	return nil
}

const (
	lockPatience = 2 * time.Second
	refPatience  = 200 * time.Millisecond
)

// takeLock links from to the lock to, with growing pauses while somebody else has it.
func (p *publication) takeLock(ctx context.Context, from, to string, patience time.Duration) (bool, error) {
	deadline := time.Now().Add(patience)
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		err := link(p.repo.path(from), p.repo.path(to))
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return false, err
		}
		if time.Now().After(deadline) {
			return false, nil
		}
		if err := pause(ctx, wait); err != nil {
			return false, err
		}
	}
}

// link gives from the name to, which must not exist. Where the file system has no links the lock is
// made as Git makes it: then a kill at this very point leaves a lock that a person must remove.
func link(from, to string) error {
	err := os.Link(from, to)
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err = writeNew(to, data, 0o666); err != nil && !errors.Is(err, fs.ErrExist) {
		os.Remove(to)
	}
	return err
}

// pause waits; ctx's error when that ends first.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// rest waits until an index that somebody else has just written is a moment old: between writing
// the index and moving HEAD, Git's own commands (commit, merge, checkout) hold no lock, and would
// fail if the branch moved right then. A few short looks only, so that nobody can starve the audit.
func (r *repository) rest(ctx context.Context) error {
	for range 4 {
		s, err := r.seeIndex()
		if err != nil || !s.Exists || s.Same(r.mem.index) || time.Since(s.Stat.MTime) > restTime || time.Since(s.Stat.MTime) < 0 {
			return err
		}
		if err := pause(ctx, restTime/2); err != nil {
			return err
		}
	}
	return nil
}

const restTime = 50 * time.Millisecond

// staleLock is the age from which a lock of somebody else is taken for a leftover. It is never
// removed by us.
const staleLock = 10 * time.Minute

// staleLocks reports one of somebody else's. Ours a run that was killed has left, and the next one
// repairs them.
func (r *repository) staleLocks(at head) error {
	m, err := r.readMark()
	if err != nil {
		return err
	}
	for _, name := range []string{"index.lock", at.branch + ".lock"} {
		if fi, err := os.Lstat(r.path(name)); err == nil && time.Since(fi.ModTime()) > staleLock && m == nil {
			return r.lockedBy(name)
		}
	}
	return nil
}

func (r *repository) lockedBy(name string) error {
	fi, err := os.Lstat(r.path(name))
	if err == nil && time.Since(fi.ModTime()) > staleLock {
		return waiting("The mail is not committed: .git/%s has been there since %s, "+
			"probably left by a git command that crashed. "+
			"If no git command runs in the mail's folder, remove that file.",
			name, fi.ModTime().UTC().Format(time.RFC3339))
	}
	return waiting("The mail waits for a git command that holds .git/%s. It is committed when that command ends.", name)
}

// unchanged compares HEAD and the repository's state with what the commit was built on, and makes
// the index anew where somebody has written it since, now that nobody else can.
func (p *publication) unchanged() error {
	if err := p.repo.busy(); err != nil {
		return err
	}
	if now, err := p.repo.head(); err != nil {
		return err
	} else if now != p.at {
		return errMoved
	}
	now, err := p.repo.seeIndex()
	if err != nil || now.Same(p.seen) {
		return err
	}
	index, err := p.repo.openIndex()
	if err != nil {
		return err
	}
	p.plan.index.Close()
	if p.plan.index = index; !index.Seen.Exists {
		return errMoved
	}
	if err := p.stageIndex(); err != nil {
		return err
	}
	return p.sync(p.repo.staged())
}

func (p *publication) lockRef(ctx context.Context) error {
	for range 3 {
		ok, err := p.takeLock(ctx, refStage, p.at.branch+".lock", refPatience)
		if errors.Is(err, fs.ErrNotExist) { // pack-refs removes folders that became empty
			if err := os.MkdirAll(filepath.Dir(p.repo.path(p.at.branch)), 0o777); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if !ok {
			return p.repo.lockedBy(p.at.branch + ".lock")
		}
		p.ref = true
		return nil
	}
	return p.repo.lockedBy(p.at.branch + ".lock")
}

// writeLogs appends to the reflogs of HEAD and the branch, as Git does before it moves the ref.
func (p *publication) writeLogs() error {
	line := fmt.Sprintf("%s %s %s\n", p.at.commit, p.commit, p.log)
	for _, name := range []string{"HEAD", p.at.branch} {
		file := p.repo.path("logs/" + name)
		flags := os.O_WRONLY | os.O_APPEND | unix.O_NONBLOCK
		if p.repo.config.reflog {
			flags |= os.O_CREATE
			if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
				return err
			}
		}
		f, err := os.OpenFile(file, flags, 0o666)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if errors.Is(err, unix.ENXIO) || errors.Is(err, unix.EISDIR) {
			return notFile("logs/" + name)
		}
		if err != nil {
			return err
		}
		if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
			f.Close()
			return notFile("logs/" + name)
		}
		_, err = f.WriteString(line)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// errHalf: the index has moved, the branch or the lock did not follow; repair finishes that before
// anything else.
var errHalf = errors.New("the commit is made but Git's locks could not be given back")

// finishRef is step 5.
func (p *publication) finishRef() error {
	if err := os.Rename(p.repo.path(indexStage), p.repo.path("index")); err != nil {
		return err
	}
	p.step("index moved")
	p.land()
	if err := os.Rename(p.repo.path(p.at.branch+".lock"), p.repo.path(p.at.branch)); err != nil {
		return errors.Join(errHalf, err)
	}
	p.step("ref moved")
	p.repo.mem.recent = p.recent
	p.repo.mem.index, _ = p.repo.seeIndex()
	p.repo.mem.sound = p.repo.mem.index
	level := state{p.seen, p.at.commit}
	if level.sameState(p.repo.mem.level) {
		p.repo.mem.level = state{p.repo.mem.index, p.commit}
	} else {
		p.repo.mem.level = state{}
	}
	time.Sleep(lockAfter + time.Duration(p.plan.index.Count)*lockPerEntry)
	if err := os.Remove(p.repo.path("index.lock")); err != nil {
		return errors.Join(errHalf, err)
	}
	p.step("unlocked")
	if err := p.sync(p.moved()); err != nil {
		return errors.Join(errUnsynced, err)
	}
	p.step("durable")
	_ = p.repo.unstage() // the commit is made and the locks may be somebody else's by now: what stays is found by repair
	return nil
}

// moved are the paths of what the move has changed.
func (p *publication) moved() []string {
	return []string{
		p.repo.path("logs/HEAD"), p.repo.path("logs/" + p.at.branch), p.repo.path("logs"), p.repo.git, filepath.Dir(p.repo.path(p.at.branch)),
	}
}

// How long index.lock is kept after the move: from reading the index to locking it `git commit`
// looks at every file of it.
const (
	lockAfter    = 10 * time.Millisecond
	lockPerEntry = 100 * time.Nanosecond
)

// abandon gives back the locks and leaves everything as it was. While a lock cannot be removed the
// mark stays, for repair.
func (p *publication) abandon() {
	var err error
	if p.ref {
		err = ignoreGone(os.Remove(p.repo.path(p.at.branch + ".lock")))
	}
	if p.locked {
		err = errors.Join(err, ignoreGone(os.Remove(p.repo.path("index.lock"))))
	}
	if err == nil {
		_ = p.repo.unstage() // what stays is found by repair
	}
}
