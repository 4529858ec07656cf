package gitlog

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"mailtree/maildir/tree"
)

// publication moves branch and index to a new commit together. Git's own protocol, in this order:
//
//  1. the next index, lock and mark are written beside, and made durable with all objects (importer);
//  2. index.lock is made by link, which fails where it exists; the mark tells it from a person's lock;
//  3. HEAD, branch and index are compared with what the commit was built on;
//  4. git update-ref locks HEAD and the branch where the branch still has its old value (refLock);
//  5. the index is renamed into place, git update-ref moves the branch; index.lock is given back a
//     moment later.
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
	mark   mark
	seen   seen // the index that ours was made from,
	put    seen // and ours, in its place
	locked bool // index.lock is ours
	ref    *refLock
	step   func(string)
}

var (
	errMoved = errors.New("the branch moved meanwhile")
	errMade  = errors.New("the commit is made but not known to be durable, or Git's locks could not be given back")
)

// run publishes; after an error that is not errMade the caller must abandon. errMoved: somebody else
// was first, build anew. *hold: a lock is not to be had. errMade: the index has moved, and perhaps the branch;
// repair finishes what follows before anything else.
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

// stage makes the mark and what becomes index.lock durable, and with them the next index.
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

// reserve takes index.lock before the commit is built, for when a person's commits follow each
// other faster than the disk makes ours durable: then nobody else can begin one.
func (p *publication) reserve(ctx context.Context) error {
	if err := p.stage(); err != nil {
		return err
	}
	if err := p.lockIndex(ctx); err != nil {
		return err
	}
	p.step("reserved")
	return p.repo.rest(ctx) // a command that has written the index may be about to move HEAD
}

// sameHead compares HEAD and branch with what the commit was built on.
func (p *publication) sameHead() error {
	now, err := p.repo.head()
	if err == nil && now != p.at {
		err = errMoved
	}
	return err
}

// unchanged is step 3.
func (p *publication) unchanged() error {
	if err := p.repo.busy(); err != nil {
		return err
	}
	if err := p.sameHead(); err != nil {
		return err
	}
	now, err := p.repo.seeIndex()
	if err == nil && !now.sameIndex(p.seen) {
		err = errMoved
	}
	return err
}

// lockIndex waits for index.lock, at most lockPatience, where it is not ours yet.
func (p *publication) lockIndex(ctx context.Context) error {
	deadline := time.Now().Add(lockPatience)
	for wait := time.Millisecond; !p.locked; wait = min(2*wait, 50*time.Millisecond) {
		err := os.Link(p.repo.path(lockStage), p.repo.path("index.lock"))
		p.locked = err == nil
		switch {
		case p.locked:
		case !errors.Is(err, fs.ErrExist):
			return err
		case time.Now().After(deadline):
			return p.repo.lockedBy("index.lock")
		default:
			if err := pause(ctx, wait); err != nil {
				return err
			}
		}
	}
	return nil
}

const (
	lockPatience = 2 * time.Second
	refPatience  = "core.filesRefLockTimeout=200" // milliseconds
)

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
		if err != nil || !s.exists || s.sameIndex(r.mem.level.index) || time.Since(s.mtime) > restTime || time.Since(s.mtime) < 0 {
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

// finish is step 5.
func (p *publication) finish() error {
	r := p.repo
	if err := os.Rename(r.path(indexStage), r.path("index")); err != nil {
		return err
	}
	p.step("index moved")
	if err := p.ref.move(); err != nil {
		return errors.Join(errMade, err)
	}
	p.step("ref moved")
	p.put, _ = r.seeIndex()
	time.Sleep(lockAfter + time.Duration(p.put.count)*lockPerEntry)
	if err := os.Remove(r.path("index.lock")); err != nil {
		return errors.Join(errMade, err)
	}
	p.step("unlocked")
	if err := syncAll(r.git, "index", "logs/HEAD", "logs/"+p.at.branch, p.at.branch); err != nil {
		return errors.Join(errMade, err)
	}
	p.step("durable")
	_ = r.unstage() // the commit is made and the locks may be somebody else's by now: what stays is found by repair
	return nil
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
	_ = p.ref.close()
	var err error
	if p.locked {
		err = tree.IgnoreGone(os.Remove(p.repo.path("index.lock")))
	}
	if err == nil {
		_ = p.repo.unstage() // what stays is found by repair
	}
}

// refLock is a git update-ref that has locked HEAD and a branch. It writes the reflogs of both. A nil one has locked
// nothing.
type refLock struct {
	talk
	cancel context.CancelFunc
	said   bytes.Buffer
}

// lockRef locks HEAD and the branch for the move that a mark tells. errMoved: the branch has another value by now.
// *hold: somebody else has a lock.
func (r *repository) lockRef(k *mark) (*refLock, error) {
	program, err := r.program()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.ctx, commandLimit)
	c := gitCommand(ctx, program, r.git, "-c", refPatience, "update-ref", "--stdin", "-m", k.Log)
	c.Env = append(c.Env, "GIT_COMMITTER_NAME="+serverName, "GIT_COMMITTER_EMAIL="+serverName+"@"+defaultDomain)
	l := &refLock{cancel: cancel}
	c.Stderr = &l.said
	if l.talk, err = startTalk(c); err != nil {
		cancel()
		return nil, err
	}
	err = l.say("start\nupdate "+k.Branch+" "+k.New+" "+k.Old+"\nprepare\n", "prepare: ok")
	if err == nil {
		return l, nil
	}
	said := l.said.String()
	for _, name := range []string{k.Branch, "HEAD"} {
		if strings.Contains(said, name+".lock'") && strings.Contains(said, "File exists") {
			return nil, r.lockedBy(name + ".lock")
		}
	}
	if strings.Contains(said, " but expected ") || strings.Contains(said, "already exists") {
		err = errMoved
	}
	return nil, err
}

// move moves the branch and gives the locks back.
func (l *refLock) move() error {
	if l == nil {
		return nil
	}
	return errors.Join(l.say("commit\n", "commit: ok"), l.close())
}

// say gives commands and waits for the answer. After an error the program has ended.
func (l *refLock) say(commands, answer string) error {
	_, err := io.WriteString(l.ask, commands)
	for line := ""; err == nil && line != answer+"\n"; {
		line, err = l.tell.ReadString('\n')
	}
	if err != nil {
		failed := l.close()
		err = &gitError{args: []string{"update-ref"}, said: l.said.String(), err: errors.Join(err, failed)}
	}
	return err
}

// close ends the program, which gives the locks back.
func (l *refLock) close() error {
	if l == nil || l.cmd == nil {
		return nil
	}
	defer l.cancel()
	return l.hangUp()
}
