package storedir

import (
	"path"
	"path/filepath"
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

// ProjectNames lists the projects of the store at root, by slug. It opens one folder for all: each
// commit in a work tree asks for them. Errors: ErrUnavailable, and the machine's faults.
func ProjectNames(root string) ([]ProjectName, error) {
	slugs, err := Slugs(root)
	if err != nil || len(slugs) == 0 {
		return nil, err
	}
	projects, err := tree.Open(filepath.Join(root, ProjectsDir), 0)
	if err != nil {
		return nil, err
	}
	defer projects.Close()
	var all []ProjectName
	for _, slug := range slugs {
		n := ProjectName{Slug: slug}
		err := n.read(projects, path.Join(slug, RepoDir, format.ProjectFile))
		if err := tree.MachineFault(err); err != nil {
			return nil, err
		}
		if err == nil {
			all = append(all, n)
		}
	}
	return all, nil
}

// read takes the names but for the slug from a project.json. A file that is not valid names nothing.
// Errors: as of tree.Tree.Read.
func (n *ProjectName) read(t *tree.Tree, file string) error {
	data, _, err := t.Read(file, format.MaxSmall)
	if err != nil {
		return err
	}
	if human, created, err := format.ParseProject(data); err == nil {
		n.HumanKey, n.Created = human, created
	}
	return nil
}

// HumanKeyOf is the absolute path that the tree's project is named by; "" where project.json does
// not say.
func HumanKeyOf(t *tree.Tree) string {
	var n ProjectName
	_ = n.read(t, format.ProjectFile) // which then does not say
	return n.HumanKey
}
