package gitlog

import (
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"mailtree/maildir/gitlog/gitindex"
	"mailtree/maildir/gitlog/object"
)

// repair finishes or undoes what a run that was killed left under Git's locks. It returns the paths
// of a commit that was prepared and did not happen, so that edits of it are looked at again. A lock
// that is not ours stays.
//
// What it finds, and what becomes of it:
//
//	our index is in place, <ref>.lock is ours, the branch as before   <ref>.lock becomes the branch
//	<ref>.lock is ours otherwise                                      removed
//	the branch is at our commit                                       entries that still are as before it follow
//	index.lock is ours                                                removed at the end
func (r *repository) repair(step func(string)) (lost []string, err error) {
	m, err := r.readMark()
	if m == nil || err != nil {
		return nil, err
	}
	if validBranch(m.Branch) && plumbing.IsHash(m.Old) && plumbing.IsHash(m.New) {
		if lost, err = r.repairMarked(m, step); err != nil {
			return nil, err
		}
	}
	held, err := m.holds(r)
	if err == nil && held {
		err = os.Remove(r.path("index.lock"))
	}
	if err != nil {
		return nil, err
	}
	return lost, r.unstage()
}

func (r *repository) repairMarked(m *mark, step func(string)) (lost []string, err error) {
	if err := r.repairRef(m); err != nil {
		return nil, err
	}
	step("ref repaired")
	now, err := r.ref(m.Branch)
	if err != nil {
		return nil, err
	}
	changes, err := r.changesOf(plumbing.NewHash(m.Old), plumbing.NewHash(m.New))
	if transient(err) {
		return nil, err
	}
	if err != nil { // the objects of a commit that did not happen may be gone
		return nil, nil
	}
	if now != plumbing.NewHash(m.New) {
		for _, c := range changes {
			lost = append(lost, c.path)
		}
		return lost, nil
	}
	if err := r.follow(m, changes); err != nil {
		return nil, err
	}
	return nil, syncAll(r.git, []string{r.git, filepath.Dir(r.path(m.Branch)), r.path("index")})
}

// repairRef finishes the move of the branch when the index has moved, and gives <ref>.lock back.
func (r *repository) repairRef(m *mark) error {
	if m.New == m.Old { // it was to stay, so that a lock of it is a person's
		return nil
	}
	lock := r.path(m.Branch + ".lock")
	if b, err := readSmall(lock); transient(err) {
		return err
	} else if err != nil || string(b) != m.New+"\n" {
		return nil // none, or somebody else's
	}
	now, err := r.ref(m.Branch)
	if err != nil {
		return err
	}
	index, err := r.seeIndex()
	if err != nil {
		return err
	}
	if now == plumbing.NewHash(m.Old) && slices.Contains(m.Index, hex.EncodeToString(index.Sum[:])) {
		return os.Rename(lock, r.path(m.Branch))
	}
	return os.Remove(lock)
}

// changesOf are the paths in which two commits differ. The first one may be the zero hash.
func (r *repository) changesOf(from, to hash) (changes []*change, err error) {
	old, err := r.TreeOf(from)
	if err != nil {
		return nil, err
	}
	tree, err := r.TreeOf(to)
	if err != nil {
		return nil, err
	}
	base := entry{}
	if !old.IsZero() {
		base = entry{Mode: object.ModeTree, Hash: old}
	}
	err = r.Diff(base, entry{Mode: object.ModeTree, Hash: tree}, "", func(path string, old, new entry) {
		changes = append(changes, &change{path: path, old: old, new: new})
	})
	return changes, err
}

func pathsOf(all []*change) (paths []string) {
	for _, c := range all {
		paths = append(paths, c.path)
	}
	return paths
}

// follow makes index entries that are still as before a commit as they are in it. The branch ahead
// of the index would make a person's next commit take the new mail away.
func (r *repository) follow(m *mark, changes []*change) error {
	index, err := r.openIndex()
	if err != nil {
		return err
	}
	defer index.Close()
	if !index.Seen.Exists {
		return nil
	}
	if err := index.Look(pathsOf(changes)); err != nil {
		return err
	}
	behind := slices.DeleteFunc(changes, func(c *change) bool { return staged(index, c.path) != c.old })
	if len(behind) == 0 {
		return nil
	}
	return r.restage(m, index, behind)
}

// restage puts an index with the changes into place, under a lock that the mark knows. errMoved:
// somebody has written the index meanwhile.
func (r *repository) restage(m *mark, index *gitindex.Index, changes []*change) error {
	w, err := openWorktree(r.dir)
	if err != nil {
		return err
	}
	defer w.close()
	slices.SortFunc(changes, func(a, b *change) int { return strings.Compare(a.path, b.path) })
	if _, err := r.stageIndex(m, index, changes, w); err != nil {
		return err
	}
	held, err := m.holds(r)
	if err != nil {
		return err
	}
	if !held {
		if err := r.stageLock(m); err != nil {
			return err
		}
	}
	if err := syncAll(r.git, r.staged()); err != nil {
		return err
	}
	if !held {
		if err := link(r.path(lockStage), r.path("index.lock")); errors.Is(err, fs.ErrExist) {
			return r.lockedBy("index.lock")
		} else if err != nil {
			return err
		}
	}
	now, err := r.seeIndex()
	if err == nil && !now.Same(index.Seen) {
		err = errMoved
	}
	if err == nil {
		err = os.Rename(r.path(indexStage), r.path("index"))
	}
	return errors.Join(err, os.Remove(r.path("index.lock")))
}
