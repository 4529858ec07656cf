package gitlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"mailtree/maildir/clock"
	"mailtree/maildir/gitlog/reflock"
	"mailtree/maildir/tree"
)

// publication moves the branch and the index together to a new commit. It uses Git's own locks, in this order:
//
//  1. the next index, lock and mark are staged, and made durable with all objects (objects);
//  2. index.lock is created with link, which fails if the file exists; the mark distinguishes our lock from a
//     user's;
//  3. HEAD, branch and index are compared with their state when the commit was built;
//  4. HEAD and the branch are locked if the branch still has its old value (lockRef);
//  5. the index is renamed into place, and the branch is moved; index.lock is released a
//     moment later.
//
// The order and the delay in step 5 are important, because `git commit` reads HEAD, then the index, and only then takes
// index.lock. If we moved the branch first, `git commit` could read the new branch and the old index, and its commit
// would remove the new mail. In our order, a command that read the old index also read the old HEAD, and its commit
// fails with "cannot lock ref". However, the command would write the old index back before it fails. Therefore, we keep
// index.lock for longer than a commit takes between reading the index and locking it. If that was not long enough, heal
// detects the old index.
//
// If we are killed during step 5, index.lock remains, and Git refuses to commit until repair has finished the move.
type publication struct {
	repo   *repository
	at     head // HEAD when the commit was built
	commit hash
	mark   mark
	base   indexState    // the index on which our index is based
	next   indexState    // our index, at .git/index
	locked bool          // index.lock is ours
	ref    *reflock.Lock // nil unless HEAD and the branch are locked
	step   func(string)
}

var (
	errMoved = errors.New("the branch moved in the meantime")
	errMade  = errors.New("the commit was created but may not be durable, or Git's locks could not be released")
)

// run publishes the commit. If it returns an error other than errMade, the caller must call abandon. errMoved means
// that the branch or the index has changed since the commit was built, so the commit must be built again. A *hold means
// that another program kept a lock. errMade means that the index, and perhaps the branch, has already moved. In that
// case, repair must finish the move before anything else is done.
func (p *publication) run(ctx context.Context, index hash) error {
	p.mark.Index = []string{index.String()}
	if err := p.stage(); err != nil {
		return err
	}
	p.step("staged")
	if err := p.lockIndex(ctx); err != nil {
		return err
	}
	p.step("index locked")
	if err := p.unchanged(); err != nil {
		return err
	}
	if p.commit != p.at.commit {
		var err error
		if p.ref, err = p.repo.lockRef(&p.mark); err != nil {
			return err
		}
	}
	p.step("ref locked")
	if err := p.sameHead(); err != nil {
		return err
	}
	return p.finish()
}

// stage makes the mark, the next index and the text of index.lock durable.
func (p *publication) stage() error {
	p.mark.Branch, p.mark.Old, p.mark.New = p.at.branch, p.at.commit.String(), p.commit.String()
	write := p.repo.stageLock
	if p.locked {
		write = p.repo.writeMark
	}
	if err := write(&p.mark); err != nil {
		return err
	}
	return p.repo.syncStaged()
}

// reserve takes index.lock before the commit is built, so that no other program can start a commit. This is necessary
// if a user commits so often that there is not enough time between two commits to make ours durable.
func (p *publication) reserve(ctx context.Context) error {
	if err := p.stage(); err != nil {
		return err
	}
	if err := p.lockIndex(ctx); err != nil {
		return err
	}
	p.step("reserved")
	return p.repo.rest(ctx) // a command that has just written the index may be about to move HEAD
}

// sameHead returns errMoved if HEAD or the branch has changed since the commit was built.
func (p *publication) sameHead() error {
	now, err := p.repo.head()
	if err == nil && now != p.at {
		err = errMoved
	}
	return err
}

// unchanged performs step 3. It returns errMoved if HEAD, the branch or the index has changed, and any error from
// busy.
func (p *publication) unchanged() error {
	if err := p.repo.busy(); err != nil {
		return err
	}
	if err := p.sameHead(); err != nil {
		return err
	}
	now, err := p.repo.seeIndex()
	if err == nil && !now.sameIndex(p.base) {
		err = errMoved
	}
	return err
}

// lockIndex takes index.lock unless we already hold it. It retries for up to lockPatience.
func (p *publication) lockIndex(ctx context.Context) error {
	if p.locked {
		return nil
	}
	err := patiently(ctx, lockPatience, func() error { return os.Link(p.repo.path(lockStage), p.repo.path("index.lock")) })
	p.locked = err == nil
	if errors.Is(err, fs.ErrExist) {
		return p.repo.lockedBy("index.lock")
	}
	return err
}

const (
	lockPatience = 2 * time.Second        // how long to retry taking index.lock
	refPatience  = 200 * time.Millisecond // how long to retry locking a ref
)

// patiently calls take until take returns an error other than fs.ErrExist, which means that another program holds the
// lock. After the given time, it returns fs.ErrExist.
func patiently(ctx context.Context, patience time.Duration, take func() error) error {
	deadline := time.Now().Add(patience)
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		err := take()
		if !errors.Is(err, fs.ErrExist) || time.Now().After(deadline) {
			return err
		}
		if err := clock.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// rest waits for a moment if another program has just written the index. Between writing the index and moving HEAD,
// Git's own commands (commit, merge, checkout) hold no lock, and they fail if the branch moves at that time. rest
// checks only a few times, so that no program can delay our commits indefinitely.
func (r *repository) rest(ctx context.Context) error {
	for range 4 {
		s, err := r.seeIndex()
		if err != nil || !s.exists || s.sameIndex(r.mem.level.index) || time.Since(s.mtime) > restTime || time.Since(s.mtime) < 0 {
			return err
		}
		if err := clock.Sleep(ctx, restTime/2); err != nil {
			return err
		}
	}
	return nil
}

const restTime = 50 * time.Millisecond

// staleLock is the age at which another program's lock is considered abandoned. We never remove such a lock.
const staleLock = 10 * time.Minute

// staleLocks returns a *hold if another program has left a lock behind. The next run removes locks from our own
// killed runs.
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
		return waiting("The mail is not committed because .git/%s has existed since %s, probably left by a git "+
			"command that crashed. If no git command is running in the mail folder, remove that file.",
			name, fi.ModTime().UTC().Format(time.RFC3339))
	}
	return waiting("A git command is holding .git/%s. The server commits the mail when that command finishes.", name)
}

// finish performs step 5.
func (p *publication) finish() error {
	r := p.repo
	if err := r.placeIndex(); err != nil {
		return err
	}
	p.step("index moved")
	if p.ref != nil {
		if err := p.ref.Move(); err != nil {
			return errors.Join(errMade, err)
		}
	}
	p.step("ref moved")
	p.next, _ = r.seeIndex()
	time.Sleep(lockAfter + time.Duration(p.next.count)*lockPerEntry)
	if err := os.Remove(r.path("index.lock")); err != nil {
		return errors.Join(errMade, err)
	}
	p.step("unlocked")
	if err := syncAll(r.git, "index", "logs/HEAD", "logs/"+p.at.branch, p.at.branch); err != nil {
		return errors.Join(errMade, err)
	}
	p.step("durable")
	if !r.leftHeadLock() { // if HEAD.lock is left, repair needs the mark
		_ = r.unstage() // another program may hold the locks by now; repair removes any files that remain
	}
	return nil
}

// leftHeadLock reports whether HEAD.lock exists right after we have released our locks. Either the lock belongs to
// another program, or our own lock could not be removed.
func (r *repository) leftHeadLock() bool {
	_, err := os.Lstat(r.path("HEAD.lock"))
	return err == nil
}

// After a move, index.lock is kept for lockAfter plus lockPerEntry for each index entry, because `git commit` stats
// every file in the index between reading and locking it.
const (
	lockAfter    = 10 * time.Millisecond
	lockPerEntry = 100 * time.Nanosecond
)

// abandon releases the locks and changes nothing else. If a lock cannot be removed, the mark is kept for repair.
func (p *publication) abandon() {
	if p.ref != nil {
		_ = p.ref.Close()
	}
	var err error
	if p.locked {
		err = tree.IgnoreGone(os.Remove(p.repo.path("index.lock")))
	}
	if err == nil && (p.ref == nil || !p.repo.leftHeadLock()) {
		_ = p.repo.unstage() // repair removes any files that remain
	}
}

// lockRef locks HEAD and the branch for the move that a mark describes. It returns errMoved if the branch has moved,
// and a *hold if another program holds a lock.
func (r *repository) lockRef(m *mark) (*reflock.Lock, error) {
	who := identity(serverName, serverName+"@"+defaultDomain)
	line := fmt.Sprintf("%s %s %s %s\t%s", m.Old, m.New, who, gitTime(time.Now()), m.Log)
	var l *reflock.Lock
	err := patiently(r.ctx, refPatience, func() (err error) {
		l, err = reflock.Take(r.git, m.Branch, m.New, line, lockStage)
		return err
	})
	if held := (*reflock.HeldError)(nil); errors.As(err, &held) {
		return nil, r.lockedBy(held.Name)
	}
	if err != nil {
		return nil, err
	}
	at, err := r.ref(m.Branch)
	if err == nil && at != plumbing.NewHash(m.Old) {
		err = errMoved
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}
