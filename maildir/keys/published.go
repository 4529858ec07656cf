package keys

import (
	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

// mostPublished is the maximum number of published keys to read from a tree.
const mostPublished = 1000

// Published returns the public keys that machines have published in a tree, sorted by id. Anyone who can write to the
// tree can publish a key with any name, so a published key proves nothing. Published skips files that are not keys. It
// returns any error from listing the folder.
func Published(t *tree.Tree) (all []Key, err error) {
	entries, err := t.List(format.MachinesDir)
	if tree.FaultOf(err) == tree.FaultGone {
		return nil, nil
	}
	for _, e := range entries[:min(len(entries), mostPublished)] {
		path := format.MachinesDir + "/" + e.Name()
		data, _, err := t.Read(path, format.MaxSmall)
		if err != nil {
			continue
		}
		if k, err := Parse(string(data)); err == nil && format.MachinePath(k.ID) == path {
			all = append(all, k)
		}
	}
	return all, err
}
