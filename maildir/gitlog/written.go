package gitlog

import (
	"mailtree/maildir/tree"
)

// loadWritten is loadOne for a path of which the content is known: that is committed, whatever is
// on disk by now. The change that somebody else made since is an edit of its own, and the index
// entry is such that Git sees it. Where somebody has committed that path since, the commit stays as
// it is.
func (p *plan) loadWritten(c *change) error {
	op := p.written[c.path]
	w := op.Written[c.path]
	if c.new = c.old; p.folders[c.path] {
		return p.loadOne(c)
	}
	if w.Gone && c.old.Mode == modeModule {
		return nil
	}
	made := entry{}
	if !w.Gone {
		made = entry{p.modeOf(c, w.Stat), blobHash(w.Data)}
	}
	same, err := p.isStill(c, w, made.Mode)
	if err != nil {
		return err
	}
	if !same {
		p.apart = append(p.apart, c.path)
		if taken, err := p.taken(c, op.base); taken || err != nil {
			return err
		}
	}
	c.new, c.data = made, w.Data
	return nil
}

// taken reports whether HEAD has at a path something else than the commit base: somebody has
// committed that since. An error is transient.
func (p *plan) taken(c *change, base hash) (bool, error) {
	var above []string
	for dir, _ := splitPath(c.path); dir != ""; dir, _ = splitPath(dir) {
		above = append(above, dir)
	}
	have, _, err := p.repo.entries(p.base, above...)
	if err != nil {
		return false, err
	}
	for _, e := range have {
		if !e.IsTree() {
			return true, nil // a file or link where the folder was
		}
	}
	if _, err := p.repo.read("commit", base.String()); err != nil { // gone with a history that a person has rewritten, or none
		return c.old.Mode != 0, ifTransient(err)
	}
	was, _, err := p.repo.entries(base, c.path)
	return c.old != was[c.path], err
}

// replaced is what an operation made of a path that a later one of the round has changed again; ok
// is false where that is not known, or somebody has committed the path since: then the later one
// stands for both.
func (p *plan) replaced(c *change, op operation) (is entry, ok bool, err error) {
	w, ok := op.Written[c.path]
	if !ok || p.folders[c.path] {
		return entry{}, false, nil
	}
	taken, err := p.taken(c, op.base)
	if err != nil || taken || w.Gone {
		return entry{}, err == nil && !taken, err
	}
	return entry{Mode: p.modeOf(c, w.Stat), Hash: blobHash(w.Data)}, true, nil
}

// isStill tells whether the file at the path of a change is as an operation wrote it, or gone. It is not read where its stat
// data says so, ctime included: an edit can set the mtime back. The rename into place has changed
// the ctime, so that only one that differs from the mtime tells a later change within the same step
// of the clock. An error is transient.
func (p *plan) isStill(c *change, is tree.Written, mode uint32) (bool, error) {
	st, err := p.files.Stat(c.path)
	if is.Gone {
		c.gone = isGone(err)
		return c.gone, ifTransient(err)
	}
	if err != nil || !st.Mode.IsRegular() || st.Size != int64(len(is.Data)) || p.modeOf(c, st) != mode {
		return false, ifTransient(err)
	}
	c.see(st)
	if st.Inode == is.Stat.Inode && st.MTime == is.Stat.MTime && st.CTime == is.Stat.CTime && st.CTime != st.MTime {
		return true, nil
	}
	same, err := p.files.SameBytes(c.path, is.Data)
	if !same {
		c.seen = tree.FileStat{} // it is not the state of what is committed
	}
	return same, ifTransient(err)
}
