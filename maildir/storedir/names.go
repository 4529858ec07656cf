package storedir

import (
	"path"
	"path/filepath"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

// ProjectName is the content of a project.json.
type ProjectName struct {
	Slug     string
	HumanKey string    // "" if the file does not say
	Created  time.Time // zero if the file does not say
}

// ProjectNames lists the projects of the store at root, by slug. It opens one folder for all projects,
// because every commit in a work tree calls it. It returns ErrUnavailable, and the machine's faults.
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

// read fills in n, except its slug, from a project.json. An invalid file leaves the fields empty. It
// returns the errors of tree.Tree.Read.
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

// HumanKeyOf returns the absolute path that names the tree's project; "" if project.json does not say.
func HumanKeyOf(t *tree.Tree) string {
	var n ProjectName
	_ = n.read(t, format.ProjectFile) // an unreadable file says nothing
	return n.HumanKey
}
