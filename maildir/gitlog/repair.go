package gitlog

import (
	"os"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"mailtree/maildir/tree"
)

// repair finishes or undoes the work that a killed run left unfinished while it held Git's locks. It never removes
// other programs' locks.
//
// The possible states, and what repair does:
//
//	<ref>.lock contains our commit                                     removes it, and an empty HEAD.lock
//	our index is in place, index.lock is ours, the branch is unmoved   moves the branch to our commit
//	HEAD.lock is empty and has existed for leftHead                   removes it: an older version's update-ref
//	                                                                  could not
//	the branch is at our commit                                       nothing: heal checks the index
//	index.lock is ours                                                removes it at the end
func (r *repository) repair(step func(string)) error {
	m, err := r.readMark()
	if m == nil || err != nil {
		return err
	}
	if validBranch(m.Branch) && plumbing.IsHash(m.Old) && plumbing.IsHash(m.New) {
		if err := r.repairMarked(m, step); err != nil {
			return err
		}
		if err := r.freeHead(m); err != nil {
			return err
		}
	}
	held, err := m.holds(r)
	if err == nil && held {
		err = os.Remove(r.path("index.lock"))
	}
	if err != nil {
		return err
	}
	return r.unstage()
}

func (r *repository) repairMarked(m *mark, step func(string)) error {
	if err := r.repairRef(m); err != nil {
		return err
	}
	step("ref repaired")
	now, err := r.ref(m.Branch)
	if err != nil || now != plumbing.NewHash(m.New) {
		return err
	}
	old := m.Old
	if plumbing.NewHash(old).IsZero() {
		old = emptyTree.String()
	}
	changes, err := r.changesOf(old, m.New)
	if err != nil {
		return err
	}
	r.mem.keepOwn(changes)
	r.mem.level = state{}
	return syncAll(r.git, m.Branch, "index")
}

// leftHead is the age from which an empty HEAD.lock is considered ours, provided that our mark exists.
const leftHead = 15 * time.Second

// freeHead removes a HEAD.lock left behind by an older version of mailtree, which ran git update-ref. If the folder was
// moved away at the wrong moment, update-ref released its lock on the branch but could not remove HEAD.lock. Such a
// lock looks like the lock of a user's command, which exists for only milliseconds. Therefore, freeHead returns a *hold
// until the lock has existed for leftHead. Until then, the mark is kept.
func (r *repository) freeHead(m *mark) error {
	if m.New == m.Old {
		return nil
	}
	fi, err := os.Lstat(r.path("HEAD.lock"))
	switch {
	case transient(err):
		return err
	case err != nil || !fi.Mode().IsRegular() || fi.Size() > 0:
		return nil
	case time.Since(fi.ModTime()) <= leftHead:
		return r.lockedBy("HEAD.lock")
	}
	return tree.IgnoreGone(os.Remove(r.path("HEAD.lock")))
}

// repairRef finishes the move of the branch if the index has moved. It also removes the locks that a killed run left
// behind. Our HEAD.lock is a link to lockStage. The HEAD.lock of an older version of mailtree, which ran git
// update-ref, is empty, and was created after the lock on the branch.
func (r *repository) repairRef(m *mark) error {
	if m.New == m.Old { // we did not try to move the branch, so the lock on the branch is not ours
		return nil
	}
	b, err := readSmall(r.path("HEAD.lock"))
	if err == nil && m.Lock != "" && string(b) == m.Lock {
		err = os.Remove(r.path("HEAD.lock"))
	}
	if transient(err) {
		return err
	}
	file := r.path(m.Branch + ".lock")
	b, err = readSmall(file)
	if transient(err) {
		return err
	}
	if err == nil && string(b) == m.New+"\n" {
		if fi, err := os.Lstat(r.path("HEAD.lock")); err == nil && fi.Mode().IsRegular() && fi.Size() == 0 {
			err = tree.IgnoreGone(os.Remove(r.path("HEAD.lock")))
			if err != nil {
				return err
			}
		}
		if err := tree.IgnoreGone(os.Remove(file)); err != nil {
			return err
		}
	}
	now, err := r.ref(m.Branch)
	if err != nil || now != plumbing.NewHash(m.Old) {
		return err
	}
	index, err := r.seeIndex()
	if err != nil || !slices.Contains(m.Index, index.sum.String()) {
		return err
	}
	if held, err := m.holds(r); err != nil || !held {
		return err
	}
	ref, err := r.lockRef(m)
	if err != nil {
		return err
	}
	return ref.Move()
}
