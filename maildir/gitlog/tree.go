package gitlog

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// Modes as tree objects write them. 0 stands for: nothing there.
const (
	modeTree   = 0o040000
	modeFile   = 0o100644
	modeExec   = 0o100755
	modeLink   = 0o120000
	modeModule = 0o160000
)

// entry is what a tree says of a name. The zero entry: nothing.
type entry struct {
	mode uint32
	hash hash
}

func (e entry) isTree() bool { return e.mode == modeTree }

// isFile reports whether e has a blob: a file, an executable, a link.
func (e entry) isFile() bool { return e.mode != 0 && e.mode != modeTree && e.mode != modeModule }

var errDamaged = errors.New("damaged tree object")

// eachEntry calls fn for the entries of a tree object in their order; raw is the entry as it stands.
func eachEntry(data []byte, fn func(name []byte, e entry, raw []byte)) error {
	for len(data) > 0 {
		space := bytes.IndexByte(data, ' ')
		if space < 1 {
			return errDamaged
		}
		nul := bytes.IndexByte(data[space:], 0)
		if nul < 2 || len(data) < space+nul+1+len(hash{}) {
			return errDamaged
		}
		mode, err := strconv.ParseUint(string(data[:space]), 8, 32)
		if err != nil || mode == 0 {
			return errDamaged
		}
		end := space + nul + 1 + len(hash{})
		fn(data[space+1:space+nul], entry{uint32(mode), hash(data[end-len(hash{}) : end])}, data[:end])
		data = data[end:]
	}
	return nil
}

func appendEntry(b []byte, name string, e entry) []byte {
	b = strconv.AppendUint(b, uint64(e.mode), 8)
	b = append(append(append(b, ' '), name...), 0)
	return append(b, e.hash[:]...)
}

// treeOrder compares names as Git sorts them: a folder as if its name ended in a slash.
func treeOrder[A, B string | []byte](a A, aTree bool, b B, bTree bool) int {
	n := min(len(a), len(b))
	if c := strings.Compare(string(a[:n]), string(b[:n])); c != 0 {
		return c
	}
	next := func(rest int, at byte, tree bool) int {
		switch {
		case rest > 0:
			return int(at)
		case tree:
			return '/'
		}
		return -1
	}
	var ca, cb byte
	if len(a) > n {
		ca = a[n]
	}
	if len(b) > n {
		cb = b[n]
	}
	return next(len(a)-n, ca, aTree) - next(len(b)-n, cb, bTree)
}

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
	if !n.old.isTree() || len(n.kids) == 0 {
		for _, kid := range n.kids {
			if err := kid.resolve(r); err != nil {
				return err
			}
		}
		return nil
	}
	data, err := r.tree(n.old.hash)
	if err != nil {
		return err
	}
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

// write returns what n is in the new tree; only tree objects on changed paths are made.
func (n *node) write(r *repository, to *objects) (entry, error) {
	if c := n.leaf; c != nil && (c.new.isFile() || c.gone || len(n.kids) == 0) {
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
		if e.mode != 0 {
			order = append(order, name)
		}
	}
	if !changed {
		if n.leaf != nil && n.leaf.new.mode == 0 {
			return entry{}, nil
		}
		return n.old, nil
	}
	slices.SortFunc(order, func(a, b string) int { return treeOrder(a, adds[a].isTree(), b, adds[b].isTree()) })
	data, err := n.merge(r, adds, order)
	if err != nil || len(data) == 0 {
		return entry{}, err
	}
	h, err := to.add(treeObject, data)
	r.mem.keep(h, data)
	return entry{modeTree, h}, err
}

// merge is the content of n's tree object with the entries of adds in place of those of the same names.
func (n *node) merge(r *repository, adds map[string]entry, order []string) ([]byte, error) {
	var old []byte
	if n.old.isTree() {
		var err error
		if old, err = r.tree(n.old.hash); err != nil {
			return nil, err
		}
	}
	data := make([]byte, 0, len(old)+64*len(order))
	err := eachEntry(old, func(name []byte, e entry, raw []byte) {
		if _, ok := adds[string(name)]; ok {
			return
		}
		for len(order) > 0 && treeOrder(order[0], adds[order[0]].isTree(), name, e.isTree()) < 0 {
			data = appendEntry(data, order[0], adds[order[0]])
			order = order[1:]
		}
		data = append(data, raw...)
	})
	for _, name := range order {
		data = appendEntry(data, name, adds[name])
	}
	return data, err
}
