package gitlog

import (
	"bytes"
	"errors"
	"slices"
)

// A round is a batch that is committed in one move of the branch. If a round has up to singles operations, and their
// trees are smaller than singleTrees bytes in total, each operation gets its own commit. Otherwise, each agent gets
// one commit, because every commit rewrites the tree objects above its paths, which grow with the number of messages
// per day.
const (
	singles     = 16
	singleTrees = 1 << 20
)

// part is the content of one commit of a round: operations, or edits.
type part struct {
	ops   []operation
	makes []version
}

// version is an entry that a part writes at a path.
type version struct {
	*change
	is   entry
	data []byte // content of the file; nil if the blob has already been written
}

// writeParts writes the commits of a round, and the blobs that these commits need. It returns the newest commit.
func (l *Log) writeParts(plan *plan, parts []part, to objects) (c commitFor, err error) {
	given := map[hash]bool{} // the copies of a message share one blob
	for _, part := range parts {
		for _, v := range part.makes {
			if !v.is.IsFile() || v.data == nil || given[v.is.Hash] {
				continue
			}
			if _, err := to.blob(int64(len(v.data)), bytes.NewReader(v.data)); err != nil {
				return c, err
			}
			given[v.is.Hash] = true
		}
		if c, err = l.commitOf(plan, part); err == nil {
			err = to.commit(c, part.makes)
		}
		if err != nil {
			return c, err
		}
	}
	return c, nil
}

// commitOf returns the description of the commit for a part.
func (l *Log) commitOf(p *plan, has part) (c commitFor, err error) {
	now := l.cfg.Now()
	c = commitFor{Committer: l.server(), Written: now, Made: now}
	if len(has.ops) > 0 {
		c.Author, c.Message = l.agent(has.ops[0].Agent), opsMessage(has.ops)
		if c.Merges, err = p.merged(has.ops); err != nil {
			return c, err
		}
		if at := has.ops[len(has.ops)-1].At; !at.IsZero() {
			c.Written = at
		}
		return c, nil
	}
	c.Author, c.Message = l.server(), editMessage(p.differing())
	id, err := p.repo.person()
	if id != "" {
		c.Author = id
	}
	return c, err
}

// divide divides a batch into the parts of a round. It returns no parts if there is nothing to commit.
func (p *plan) divide(b batch) ([]part, error) {
	if len(b.ops) == 0 {
		return p.editParts(), nil
	}
	r := p.roundOf(b.ops)
	singly := len(r.ops) <= 1
	if !singly && len(r.ops) <= singles {
		bytes, err := r.treeBytes()
		if err != nil {
			return nil, err
		}
		singly = bytes < singleTrees
	}
	return r.share(singly)
}

// editParts returns a single part that contains everything that differs from HEAD, or no part if nothing differs.
func (p *plan) editParts() []part {
	var edits part
	for _, c := range p.differing() {
		edits.makes = append(edits.makes, version{c, c.new, c.data})
	}
	if len(edits.makes) == 0 {
		return nil
	}
	return []part{edits}
}

// round contains the operations of a plan and, for each path, the index of the last operation that lists the path.
type round struct {
	*plan
	ops  []operation
	last map[string]int
}

// roundOf returns the round of a plan, without recovered operations that have already been committed. If a path differs
// from HEAD but no remaining operation lists the path, another program has changed the file since then, and the change
// becomes an edit.
func (p *plan) roundOf(ops []operation) round {
	r := round{plan: p, last: map[string]int{}}
	for _, op := range ops {
		if op.Recovered && !slices.ContainsFunc(op.Paths, p.addsAt) && !slices.ContainsFunc(op.Revised, p.differsAt) {
			continue
		}
		for _, path := range op.Paths {
			r.last[named(path)] = len(r.ops)
		}
		r.ops = append(r.ops, op)
	}
	for _, c := range p.differing() {
		if _, ok := r.last[c.path]; !ok {
			c.new = c.old
			p.apart = append(p.apart, c.path)
		}
	}
	return r
}

// share returns the parts of a round: one part for each operation if singly is set, and one part for each agent
// otherwise. A path belongs to the part of the last operation that lists it. If singly is set, the parts of earlier
// operations contain the versions that these operations wrote.
func (r round) share(singly bool) (parts []part, err error) {
	of := map[string]int{}
	for i, op := range r.ops {
		to, ok := of[op.Agent]
		if singly || !ok {
			to = len(parts)
			of[op.Agent] = to
			parts = append(parts, part{})
		}
		its := &parts[to]
		its.ops = append(its.ops, op)
		for _, path := range op.Paths {
			c := r.changes[named(path)]
			switch {
			case c == nil:
			case r.last[c.path] == i:
				its.makes = append(its.makes, version{c, c.new, c.data})
			case singly:
				is, ok, err := r.replaced(c, op)
				if err != nil {
					return nil, err
				}
				if ok {
					its.makes = append(its.makes, version{c, is, op.Written[c.path].Data})
				}
			}
		}
	}
	return parts, nil
}

// treeBytes returns the total size, in bytes, of the tree objects that would be rewritten if each operation got its
// own commit.
func (r round) treeBytes() (bytes int, err error) {
	for _, op := range r.ops {
		on := map[string]bool{}
		for _, path := range op.Paths {
			dir, _ := splitPath(named(path))
			if on[dir] {
				continue
			}
			on[dir] = true
			size, err := r.treeSize(dir)
			if err != nil {
				return 0, err
			}
			bytes += size
		}
	}
	return bytes, nil
}

// treeSize returns the approximate size, in bytes, of the tree object of a folder in HEAD. It reads each object only
// once. After that, grown updates the size, but only for our own commits.
func (p *plan) treeSize(dir string) (int, error) {
	sizes := p.repo.mem.sizes
	if size, known := sizes[dir]; known || p.base.IsZero() {
		return size, nil
	}
	data, err := p.repo.read("tree", p.base.String()+":"+dir)
	if err != nil && !errors.Is(err, errNoObject) {
		return 0, err
	}
	if len(sizes) >= mostSizes {
		clear(sizes)
	}
	sizes[dir] = len(data)
	return len(data), nil
}

const (
	mostSizes = 1000                             // maximum number of sizes to keep
	entrySize = len("100644 \x00") + len(hash{}) // bytes of an entry without its name
)

// grown updates the sizes of the folders in which a commit created or removed files.
func (m *memory) grown(changes []*change) {
	for _, c := range changes {
		dir, name := splitPath(c.path)
		size, known := m.sizes[dir]
		switch {
		case !known || (c.old.Mode == 0) == (c.new.Mode == 0):
		case c.old.Mode == 0:
			m.sizes[dir] = size + entrySize + len(name)
		default:
			m.sizes[dir] = max(0, size-entrySize-len(name))
		}
	}
}
