package storedir

import (
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

// ProjectName is what project.json says of a project.
type ProjectName struct {
	Slug     string
	HumanKey string    // "" where it does not say
	Created  time.Time // zero where it does not say
}

// ProjectNames lists the projects of the store at root, by slug. Errors: ErrUnavailable, and the
// machine's faults.
func ProjectNames(root string) ([]ProjectName, error) {
	slugs, err := Slugs(root)
	if err != nil {
		return nil, err
	}
	var all []ProjectName
	for _, slug := range slugs {
		t, err := OpenTree(root, slug, 0)
		if err := tree.MachineFault(err); err != nil {
			return nil, err
		}
		if err != nil {
			continue
		}
		n, err := nameOf(t)
		t.Close()
		if err != nil {
			return nil, err
		}
		n.Slug = slug
		all = append(all, n)
	}
	return all, nil
}

// nameOf reads the names of a tree's project but for its slug. Errors: the machine's faults.
func nameOf(t *tree.Tree) (n ProjectName, err error) {
	data, _, err := t.Read(format.ProjectFile, format.MaxSmall)
	if err != nil {
		return n, tree.MachineFault(err)
	}
	if human, created, err := format.ParseProject(data); err == nil {
		n.HumanKey, n.Created = human, created
	}
	return n, nil
}

// HumanKeyOf is the absolute path that the tree's project is named by; "" where project.json does
// not say.
func HumanKeyOf(t *tree.Tree) string {
	n, err := nameOf(t)
	if err != nil {
		return ""
	}
	return n.HumanKey
}
