package gitlog

import (
	"bytes"
	"slices"
)

// A round is the batch that one move of the branch brings. Up to singles of its operations have a
// commit each, while its trees stay below singleTrees; else each agent has one: every commit costs
// the trees on the way to its paths, and those grow with the mail of a day.
const (
	singles     = 16
	singleTrees = 1 << 20
)

// part is what one commit of a round has: operations of one agent, or edits.
type part struct {
	ops   []operation
	makes []version
}

// version is what a part makes of a path.
type version struct {
	*change
	is   entry
	data []byte // of a file; nil where the importer has it
}

// importParts gives the commits of a round to the importer, each on the one before it, and the blobs
// that they need. It returns the newest.
func (l *Log) importParts(p *publication, plan *plan, parts []part, to *importer) (c commitFor, err error) {
	for _, part := range parts {
		for _, v := range part.makes {
			if !v.is.IsFile() || v.data == nil || to.given[v.is.Hash] {
				continue
			}
			if _, err := to.blob(int64(len(v.data)), bytes.NewReader(v.data)); err != nil {
				return c, err
			}
			to.given[v.is.Hash] = true
		}
		if c, err = l.commitOf(plan, part); err == nil {
			err = to.commit(p.at.commit, c, part.makes)
		}
		if err != nil {
			return c, err
		}
	}
	return c, nil
}

// commitOf is the commit of a part.
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

// divide makes the parts of a round. No parts: there is nothing to commit.
func (p *plan) divide(b batch) ([]part, error) {
	if len(b.ops) == 0 {
		return p.editParts(), nil
	}
	r := p.roundOf(b.ops)
	return r.share(len(r.ops) <= singles && r.treeBytes() < singleTrees)
}

// editParts is one part of all that differs from HEAD, if anything does.
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

// round is the operations of a plan, and which of them names a path last.
type round struct {
	*plan
	ops  []operation
	last map[string]int
}

// roundOf leaves out the operations that were recovered and are in a commit already. What no other
// names and is another than in HEAD, somebody has changed since: it is an edit.
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

// share makes the parts of a round: one of each operation, or one of each agent. A path goes to the last that names
// it. A single operation has what it made of a path even where a later one has changed it again.
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

// treeBytes is the size of the folders that single commits of the operations change.
func (r round) treeBytes() (bytes int) {
	for _, op := range r.ops {
		on := map[string]bool{}
		for _, path := range op.Paths {
			dir, _ := splitPath(named(path))
			if !on[dir] {
				on[dir] = true
				bytes += r.sizes[dir]
			}
		}
	}
	return bytes
}
