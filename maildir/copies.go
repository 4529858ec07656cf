package maildir

import (
	"cmp"
	"context"
	"crypto/sha256"
	"io/fs"
	"maps"
	"slices"

	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

// Copies is the result of CheckCopies.
type Copies struct {
	Differing []string // paths of inbox and outbox copies that differ from the canonical file
	Orphaned  []string // for each message without a canonical file, the path of the copy that readers see
}

// CheckCopies compares the header and body of each inbox and outbox copy in a tree with the canonical file, ignoring
// the parts that are allowed to differ. It skips invalid files, which are reported as problems. CheckCopies changes
// nothing. It returns the error of ctx, and machine faults. See docs/reference/tree.md, "Copies".
func CheckCopies(ctx context.Context, t *tree.Tree) (*Copies, error) {
	found := &Copies{}
	canonical := map[string]*[sha256.Size]byte{} // digests of the canonical files, by id; nil if the file is invalid
	err := eachCopy(ctx, t, func(path string, at format.Place, sum *[sha256.Size]byte) {
		if at.Kind == format.KindCanonical && canonical[at.ID] == nil {
			canonical[at.ID] = sum
		}
	})
	if err != nil {
		return nil, err
	}
	shown := map[string]string{} // paths by id, for messages without a canonical file
	err = eachCopy(ctx, t, func(path string, at format.Place, sum *[sha256.Size]byte) {
		if at.Kind == format.KindCanonical || sum == nil {
			return
		}
		want, known := canonical[at.ID]
		switch {
		case !known:
			shown[at.ID] = shownFirst(shown[at.ID], path)
		case want != nil && *want != *sum:
			found.Differing = append(found.Differing, path)
		}
	})
	found.Orphaned = slices.Sorted(maps.Values(shown))
	slices.Sort(found.Differing)
	return found, err
}

// shownFirst returns the path of the copy that readers see when a message has no canonical file. It chooses between the
// copies at a and b. It prefers outbox copies to inbox copies and, among copies of the same kind, the path that sorts
// first. If a is "", it returns b.
func shownFirst(a, b string) string {
	inbox := func(path string) int {
		if format.Locate(path).Kind == format.KindInbox {
			return 1
		}
		return 0
	}
	if a == "" || cmp.Or(cmp.Compare(inbox(b), inbox(a)), cmp.Compare(b, a)) < 0 {
		return b
	}
	return a
}

// eachCopy calls f for every canonical file, inbox copy and outbox copy. sum is nil if the file is invalid.
func eachCopy(ctx context.Context, t *tree.Tree, f func(path string, at format.Place, sum *[sha256.Size]byte)) error {
	return t.Walk(ctx, "", func(path string, _ fs.DirEntry) error {
		at := format.Locate(path)
		if at.Kind != format.KindCanonical && at.Kind != format.KindInbox && at.Kind != format.KindOutbox {
			return nil
		}
		data, _, err := t.Read(path, t.MaxFile())
		if tree.FaultOf(err) == tree.FaultMachine {
			return err
		}
		if tree.FaultOf(err) == tree.FaultGone { // the file was removed after the folder was listed
			return nil
		}
		f(path, at, format.CopySum(at.ID, data))
		return nil
	})
}
