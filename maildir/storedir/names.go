package storedir

import (
	"cmp"
	"path"
	"path/filepath"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

// ProjectName is the content of a project.json.
type ProjectName struct {
	Slug     string
	HumanKey string    // "" if the file has no key
	Created  time.Time // zero if the file has no time
}

// ProjectNames lists the projects of the store at root, by slug. It opens only one folder for all projects, because
// every commit in a work tree calls it. It returns ErrUnavailable, and faults of the machine.
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
		if err == nil {
			err = n.readShared(projects)
		}
		if err := tree.MachineFault(err); err != nil {
			return nil, err
		}
		if err == nil {
			all = append(all, n)
		}
	}
	return all, nil
}

// read fills in n, except its slug, from a project.json. An invalid file leaves the fields empty. It returns the
// errors of tree.Tree.Read.
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

// readShared fills in the human key of a shared project on this machine (Shared). It returns faults of the machine.
func (n *ProjectName) readShared(projects *tree.Tree) error {
	shared, err := loadShared(projects, n.Slug)
	n.HumanKey = cmp.Or(shared.Key, n.HumanKey)
	return tree.MachineFault(err)
}

// HumanKeyOf returns the absolute path that names the project of a tree, or "" if no file contains it.
func HumanKeyOf(t *tree.Tree) string {
	dir := filepath.Dir(t.Dir())
	n := ProjectName{Slug: filepath.Base(dir)}
	_ = n.read(t, format.ProjectFile) // an unreadable file leaves n empty
	if projects, err := tree.Open(filepath.Dir(dir), 0); err == nil {
		_ = n.readShared(projects)
		projects.Close()
	}
	return n.HumanKey
}
