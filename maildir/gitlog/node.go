package gitlog

import (
	"slices"
	"strings"

	"mailtree/maildir/gitlog/object"
)

// node is a folder or file on the way to a changed path.
type node struct {
	name string
	old  entry // in HEAD's tree
	leaf *change
	kids map[string]*node
}

// findNode returns the node of a path, making those that are missing.
func (n *node) findNode(path string) *node {
	for _, name := range strings.Split(path, "/") {
		kid := n.kids[name]
		if kid == nil {
			kid = &node{name: name}
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

// write returns what n is in the new tree; only tree objects on changed paths are made.
func (n *node) write(r *repository, to *object.Writer) (entry, error) {
	if c := n.leaf; c != nil && (c.new.IsFile() || c.gone || len(n.kids) == 0) {
		return c.new, nil
	}
	adds := make(map[string]entry, len(n.kids))
	order := make([]string, 0, len(n.kids))
	changed := false
	for name, kid := range n.kids {
		e, err := kid.write(r, to)
		if err != nil {
			return entry{}, err
		}
		changed = changed || e != kid.old
		adds[name] = e
		if e.Mode != 0 {
			order = append(order, name)
		}
	}
	if !changed {
		if n.leaf != nil && n.leaf.new.Mode == 0 {
			return entry{}, nil
		}
		return n.old, nil
	}
	slices.SortFunc(order, func(a, b string) int { return object.TreeOrder(a, adds[a].IsTree(), b, adds[b].IsTree()) })
	data, err := n.merge(r, adds, order)
	if err != nil || len(data) == 0 {
		return entry{}, err
	}
	h, err := to.Add(object.KindTree, data)
	r.mem.Keep(h, data)
	return entry{Mode: object.ModeTree, Hash: h}, err
}

// merge is the content of n's tree object with the entries of adds in place of those of the same
// names.
func (n *node) merge(r *repository, adds map[string]entry, order []string) ([]byte, error) {
	var old []byte
	if n.old.IsTree() {
		var err error
		if old, err = r.Tree(n.old.Hash); err != nil {
			return nil, err
		}
	}
	data := make([]byte, 0, len(old)+64*len(order))
	err := object.EachEntry(old, func(name []byte, e entry, raw []byte) {
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
