package gitlog

import (
	"slices"
	"strings"

	"mailtree/maildir/gitlog/object"
)

// node is a folder or file on the way to a changed path.
type node struct {
	above *node
	old   entry  // in HEAD's tree
	now   entry  // in the last tree that was written
	data  []byte // of that, where it is not HEAD's
	stale bool   // it, or what is below it, is another since
	leaf  *change
	kids  map[string]*node
}

// findNode returns the node of a path, making those that are missing.
func (n *node) findNode(path string) *node {
	for _, name := range strings.Split(path, "/") {
		kid := n.kids[name]
		if kid == nil {
			kid = &node{above: n}
			if n.kids == nil {
				n.kids = map[string]*node{}
			}
			n.kids[name] = kid
		}
		n = kid
	}
	return n
}

// resolve notes for every node below n what HEAD has there.
func (n *node) resolve(r *repository) error {
	if n.leaf != nil {
		n.leaf.old = n.old
	}
	if !n.old.IsTree() || len(n.kids) == 0 {
		for _, kid := range n.kids {
			if err := kid.resolve(r); err != nil {
				return err
			}
		}
		return nil
	}
	data, err := r.Tree(n.old.Hash)
	if err != nil {
		return err
	}
	err = object.EachEntry(data, func(name []byte, e entry, _ []byte) {
		if kid := n.kids[string(name)]; kid != nil {
			kid.old = e
		}
	})
	if err != nil {
		return err
	}
	for _, kid := range n.kids {
		if err := kid.resolve(r); err != nil {
			return err
		}
	}
	return nil
}

// rewind makes HEAD's tree the last one that was written.
func (n *node) rewind() {
	n.now, n.data, n.stale = n.old, nil, false
	if n.leaf != nil {
		n.leaf.made = n.old
	}
	for _, kid := range n.kids {
		kid.rewind()
	}
}

// touch says that n is to be written again.
func (n *node) touch() {
	for ; n != nil; n = n.above {
		n.stale = true
	}
}

// write returns what n is in the next tree; only tree objects on changed paths are made, and given
// to keep.
func (n *node) write(r *repository, keep keepTree) (entry, error) {
	n.stale = false
	if c := n.leaf; c != nil && (c.made.IsFile() || c.gone && c.made == c.new || len(n.kids) == 0) {
		n.now, n.data = c.made, nil
		return n.now, nil
	}
	adds := make(map[string]entry, len(n.kids))
	order := make([]string, 0, len(n.kids))
	changed := false
	for name, kid := range n.kids {
		if !kid.stale {
			continue
		}
		was := kid.now
		e, err := kid.write(r, keep)
		if err != nil {
			return entry{}, err
		}
		changed = changed || e != was
		adds[name] = e
		if e.Mode != 0 {
			order = append(order, name)
		}
	}
	if !changed {
		if n.leaf != nil && n.now.IsFile() {
			n.now = entry{}
		}
		return n.now, nil
	}
	slices.SortFunc(order, func(a, b string) int { return object.TreeOrder(a, adds[a].IsTree(), b, adds[b].IsTree()) })
	data, err := n.merge(r, adds, order)
	if err != nil {
		return entry{}, err
	}
	n.now, n.data = entry{}, data
	if len(data) > 0 {
		n.now.Mode = object.ModeTree
		n.now.Hash, err = keep(data)
	}
	return n.now, err
}

// keepTree takes the content of a tree object and returns its name.
type keepTree func(data []byte) (hash, error)

// remember keeps the trees that were written last for the next commit.
func (n *node) remember(mem *memory) {
	if len(n.data) > 0 {
		mem.Keep(n.now.Hash, n.data)
	}
	for _, kid := range n.kids {
		kid.remember(mem)
	}
}

// content is n's tree object as it was written last.
func (n *node) content(r *repository) ([]byte, error) {
	if n.data != nil || !n.now.IsTree() {
		return n.data, nil
	}
	return r.Tree(n.now.Hash)
}

// merge is the content of n's tree object with the entries of adds in place of those of the same
// names.
func (n *node) merge(r *repository, adds map[string]entry, order []string) ([]byte, error) {
	old, err := n.content(r)
	if err != nil {
		return nil, err
	}
	data := make([]byte, 0, len(old)+64*len(order))
	err = object.EachEntry(old, func(name []byte, e entry, raw []byte) {
		if _, ok := adds[string(name)]; ok {
			return
		}
		for len(order) > 0 && object.TreeOrder(order[0], adds[order[0]].IsTree(), name, e.IsTree()) < 0 {
			data = object.AppendEntry(data, order[0], adds[order[0]])
			order = order[1:]
		}
		data = append(data, raw...)
	})
	for _, name := range order {
		data = object.AppendEntry(data, name, adds[name])
	}
	return data, err
}
