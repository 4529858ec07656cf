package gitlog

import (
	"errors"
	"slices"

	"mailtree/maildir/gitlog/object"
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
	is entry
}

// write gives the trees and commits of a round to objects, each commit on the one before it, and
// returns the newest. The zero hash: there is nothing to commit.
func (l *Log) write(p *publication, b batch, to *object.Writer) (newest hash, reflog string, err error) {
	parts, trees, err := p.plan.divide(b, to)
	if err != nil || len(parts) == 0 {
		return hash{}, "", err
	}
	newest = p.at.commit
	for i, part := range parts {
		c, err := l.commitOf(p, part)
		if err != nil {
			return hash{}, "", err
		}
		c.Tree, c.Parent = trees[i], newest
		if newest, err = to.Add(object.KindCommit, c.Encode()); err != nil {
			return hash{}, "", err
		}
		reflog = c.Reflog()
	}
	p.repo.mem.KeepCommit(newest, trees[len(trees)-1])
	return newest, reflog, nil
}

// commitOf is the commit of a part, without its tree and its parent.
func (l *Log) commitOf(p *publication, has part) (c object.Commit, err error) {
	now := l.cfg.Now()
	c = object.Commit{Committer: l.server(), Written: now, Made: now}
	if len(has.ops) > 0 {
		c.Author, c.Message = l.agent(has.ops[0].Agent), opsMessage(has.ops)
		if at := has.ops[len(has.ops)-1].At; !at.IsZero() {
			c.Written = at
		}
		return c, nil
	}
	c.Author, c.Message = l.server(), editMessage(p.plan.differing())
	id, err := p.repo.config.person()
	if id != "" {
		c.Author = id
	}
	return c, err
}

// divide makes the parts of a round and gives their trees to objects. No parts: there is nothing to
// commit.
func (p *plan) divide(b batch, to *object.Writer) (parts []part, trees []hash, err error) {
	if len(b.ops) == 0 {
		parts = p.editParts()
	} else if r := p.roundOf(b.ops); len(r.ops) > 0 {
		if len(r.ops) <= singles {
			parts, trees, err = r.divideSingly(to)
			if !errors.Is(err, errManyTrees) {
				return parts, trees, err
			}
		}
		parts = r.share(r.byAgent())
	}
	trees, err = p.chain(parts, func(data []byte) (hash, error) { return to.Add(object.KindTree, data) })
	return parts, trees, err
}

// editParts is one part of all that differs from HEAD, if anything does.
func (p *plan) editParts() []part {
	var edits part
	for _, c := range p.differing() {
		edits.makes = append(edits.makes, version{c, c.new})
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
		if op.Recovered && !p.adds(op.Paths) && !p.touches(op.Revised) {
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

// byAgent tells which part an operation goes to where each agent has one.
func (r round) byAgent() (to []int) {
	parts := map[string]int{}
	for _, op := range r.ops {
		if _, ok := parts[op.Agent]; !ok {
			parts[op.Agent] = len(parts)
		}
		to = append(to, parts[op.Agent])
	}
	return to
}

// share makes the parts of a round, the i-th operation in part to[i]. A path goes to the last that
// names it.
func (r round) share(to []int) []part {
	parts := make([]part, slices.Max(to)+1)
	for i, op := range r.ops {
		its := &parts[to[i]]
		its.ops = append(its.ops, op)
		for _, path := range op.Paths {
			if c := r.changes[named(path)]; c != nil && r.last[c.path] == i {
				its.makes = append(its.makes, version{c, c.new})
			}
		}
	}
	return parts
}

// errManyTrees: the trees of single commits reach singleTrees.
var errManyTrees = errors.New("too much for single commits")

// divideSingly makes a part of each operation. It has what that operation made of a path even where
// a later one has changed it again. After errManyTrees nothing was given to objects.
func (r round) divideSingly(to *object.Writer) (parts []part, trees []hash, err error) {
	var own []int
	for i := range r.ops {
		own = append(own, i)
	}
	parts = r.share(own)
	var drafts []object.Object
	for i, op := range r.ops {
		for _, path := range op.Paths {
			c := r.changes[named(path)]
			if c == nil || r.last[c.path] == i {
				continue
			}
			is, ok, err := r.replaced(c, op)
			if err != nil {
				return nil, nil, err
			}
			if ok {
				parts[i].makes = append(parts[i].makes, version{c, is})
			}
			if is.Mode != 0 {
				drafts = append(drafts, object.Object{Kind: object.KindBlob, Data: op.Written[c.path].Data})
			}
		}
	}
	bytes := 0
	trees, err = r.chain(parts, func(data []byte) (hash, error) {
		if bytes += len(data); bytes >= singleTrees {
			return hash{}, errManyTrees
		}
		drafts = append(drafts, object.Object{Kind: object.KindTree, Data: data})
		return object.HashOf(object.KindTree, data), nil
	})
	for _, x := range drafts {
		if err == nil {
			_, err = to.Add(x.Kind, x.Data)
		}
	}
	return parts, trees, err
}

// chain writes the tree of every part, each as a change of the one before it, the first of HEAD's.
func (p *plan) chain(parts []part, keep keepTree) (trees []hash, err error) {
	p.root.rewind()
	for _, part := range parts {
		for _, v := range part.makes {
			v.made = v.is
			v.at.touch()
		}
		e, err := p.root.write(p.repo, keep)
		if err == nil && e.Mode == 0 {
			e.Hash, err = keep(nil)
		}
		if err != nil {
			return nil, err
		}
		trees = append(trees, e.Hash)
	}
	p.root.remember(p.repo.mem)
	return trees, nil
}
