package gitlog

import (
	"errors"
	"fmt"
	"os"

	"mailtree/maildir/gitlog/gitindex"
)

// openIndex opens .git/index; a missing one has no entries. The caller closes it. The errors of
// gitindex, here and when entries are read, become a *hold where they leave the package (holdOf).
func (r *repository) openIndex() (*gitindex.Index, error) {
	return gitindex.Open(r.path("index"), &r.mem.sound)
}

// seeIndex looks at .git/index without reading all of it.
func (r *repository) seeIndex() (gitindex.Seen, error) { return gitindex.See(r.path("index")) }

// indexHold says what is to be done where the index is in a state that we leave alone; nil for
// other errors.
func indexHold(err error) *hold {
	h := &hold{mode: "waiting", cause: err}
	switch {
	case errors.Is(err, gitindex.ErrSpecial):
		h.reason = "The mail's .git/index is not a regular file, or far too large. Remove it: it is made anew from the last commit."
	case errors.Is(err, gitindex.ErrDamaged):
		h.reason = fmt.Sprintf("The mail's Git index cannot be read (%v). "+
			"Remove .git/index in the mail's folder: it is made anew from the last commit.", err)
	case errors.Is(err, gitindex.ErrVersion4):
		h.reason = "The mail's Git index has version 4, which the server does not write: new mail is safe but not committed. " +
			"Run `git update-index --index-version 2` in the mail's folder: what is staged stays so."
	case errors.Is(err, gitindex.ErrConflicts):
		h.reason = "The mail's Git index has conflicts that are not resolved: new mail is safe but not committed. " +
			"Resolve them with git add and git commit, or drop them with git reset."
	case errors.Is(err, gitindex.ErrForm):
		h.reason = fmt.Sprintf("The mail's Git index uses a form that the server cannot write (%v). "+
			"Run `git update-index --no-split-index` and `git sparse-checkout disable` in the mail's folder.", err)
	default:
		return nil
	}
	return h
}

func entryOf(e gitindex.Entry) entry { return entry{Mode: e.Mode(), Hash: e.Hash()} }

// staged is what a path that was looked for is in the index; the zero entry where it is not there.
func staged(x *gitindex.Index, path string) (e entry) {
	if found, ok := x.At(path); ok {
		e = entryOf(found)
	}
	return e
}

// isSparse reports that a missing file, which was looked for, is missing because of a sparse
// checkout.
func isSparse(x *gitindex.Index, path string) bool {
	e, ok := x.At(path)
	return ok && e.Sparse()
}

// isClean reports that the file at path with that state surely has HEAD's content, so that it need
// not be read.
func isClean(x *gitindex.Index, path string, st gitindex.Stat, old entry) bool {
	e, ok := x.At(path)
	return ok && old.IsFile() && entryOf(e) == old && e.Holds(st) && st.MTime.Unix() < x.Seen.Stat.MTime.Unix()
}

// fillIndex gives a missing index the entries of HEAD's tree. They go into a file that has no name.
func (r *repository) fillIndex(x *gitindex.Index, tree hash) error {
	name := r.path(indexStage + ".head")
	if err := ignoreGone(os.Remove(name)); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	count := 0
	err = errors.Join(os.Remove(name), r.Walk(tree, "", func(string, entry) { count++ }))
	if err == nil {
		w := gitindex.NewWriter(f, x.Version, count)
		err = r.Walk(tree, "", func(path string, e entry) {
			w.Add(gitindex.Change{Path: path, Mode: e.Mode, Hash: e.Hash})
		})
		if err == nil {
			_, err = w.Finish(nil)
		}
	}
	return errors.Join(err, x.Fill(f, count))
}

// nextIndex writes to f what an index becomes with the changes made, which are sorted by path, and
// returns its checksum and which of its entries may still be racy: they bear the present second and
// are known to be clean.
func (r *repository) nextIndex(
	f *os.File, x *gitindex.Index, changes []*change, w *worktree,
) (sum []byte, recent map[string]gitindex.Stat, err error) {
	recent = map[string]gitindex.Stat{}
	all := make([]gitindex.Change, len(changes))
	for i, c := range changes {
		all[i] = gitindex.Change{
			Path:     c.path,
			Mode:     c.new.Mode,
			Hash:     c.new.Hash,
			Stat:     c.stat,
			Replaces: c.old.IsFile(),
		}
		if c.new.Mode != 0 && !c.stat.Uncertain {
			recent[c.path] = c.stat
		}
	}
	sum, err = x.Rewrite(f, all, func(e gitindex.Entry) {
		if st, ok := r.settleRacy(w, e); ok {
			recent[string(e.Name)] = st
		}
	})
	return sum, recent, err
}

// settleRacy deals with a racy entry as Git does when it writes an index (racy-git(5)). Where the
// content of the file is another, the entry is made such that Git looks at it. Where it is the same
// the entry stays: one that Git does not believe makes git revert and git checkout say that a file
// has local changes, as they do not look at it themselves. Those that are ours and untouched since
// are not read, and ok is true. Where it cannot be told the entry is smudged too.
func (r *repository) settleRacy(w *worktree, e gitindex.Entry) (st gitindex.Stat, ok bool) {
	path := string(e.Name)
	now, err := w.stat(path)
	if err == nil {
		if st, ok := r.mem.recent[path]; ok && e.Holds(st) && now.Same(st) {
			return st, true
		}
	}
	if transient(err) || err == nil && e.MayHold(now) && !w.has(path, now, e.Hash()) {
		e.Smudge()
	}
	return st, false
}

// has reports whether the file at path, which is in the given state, surely has a content.
func (w *worktree) has(path string, st gitindex.Stat, content hash) bool {
	now, _, _, err := w.blob(path, st)
	return err == nil && now.Hash == content
}
