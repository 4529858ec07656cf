package gitlog

import (
	"mailtree/maildir/gitlog/embedded"
	"mailtree/maildir/tree"
)

// loadWritten is like loadOne, but for a path whose content an operation recorded. The commit contains that content,
// even if the file on disk has changed. A later change by another program is a separate edit, and the index entry is
// written so that Git notices the change. If another program has committed the path since then, our commit does not
// change the path.
func (p *plan) loadWritten(c *change) error {
	op := p.written[c.path]
	w := op.Written[c.path]
	if c.new = c.old; p.folders[c.path] {
		return p.loadOne(c)
	}
	if w.Gone && c.old.Mode == embedded.ModeModule {
		return nil
	}
	made := entry{}
	if !w.Gone {
		made = entry{Mode: p.modeOf(c, w.Stat), Hash: blobHash(w.Data)}
	}
	same, err := p.isStill(c, w, made.Mode)
	if err != nil {
		return err
	}
	if !same && c.gone && op.Merges.Commit != "" { // findIncompleteMerge handles this case
		return nil
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

// taken reports whether the entry at a path differs between HEAD and the commit base, which means that another
// program has committed the path since base. Any error is transient.
func (p *plan) taken(c *change, base hash) (bool, error) {
	var above []string
	for dir, _ := splitPath(c.path); dir != ""; dir, _ = splitPath(dir) {
		above = append(above, dir)
	}
	have, err := p.repo.entries(p.base, above...)
	if err != nil {
		return false, err
	}
	for _, e := range have {
		if !e.IsTree() {
			return true, nil // a file or link has replaced the folder
		}
	}
	if _, err := p.repo.read("commit", base.String()); err != nil { // base is zero, or the history was rewritten
		return c.old.Mode != 0, ifTransient(err)
	}
	was, err := p.repo.entries(base, c.path)
	return c.old != was[c.path], err
}

// replaced returns the entry that an operation wrote at a path, if a later operation of the round has changed the path
// again. The result ok is false if the entry is unknown, or if another program has committed the path since that
// operation. In both cases, only the later entry is committed.
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

// isStill reports whether the file at a change's path is still in the state in which the operation left it, which may
// mean that the file does not exist. It reads the file unless the stat data prove that the file is unchanged. The stat
// data include the ctime, because an edit can set the mtime back. If ctime and mtime are equal, the stat data prove
// nothing. The rename into place set the ctime, and an edit in the same clock tick would make both times equal. Any
// error is transient.
func (p *plan) isStill(c *change, is tree.Written, mode uint32) (bool, error) {
	st, err := p.files.Stat(c.path)
	c.gone = isGone(err)
	if is.Gone {
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
		c.seen = tree.FileStat{} // the file on disk does not have the committed content
	}
	return same, ifTransient(err)
}
