package gitlog

import "strings"

// node is a folder or file on the way to a changed path.
type node struct {
	above *node
	old   entry // in HEAD's tree
	size  int   // of that tree object, in bytes
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
	n.size = len(data)
	err = eachEntry(data, func(name []byte, e entry, _ []byte) {
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
