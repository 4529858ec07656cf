package storedir

import (
	"cmp"
	"path"
	"path/filepath"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

// ProjectName contains a project's slug and the content of its project.json.
type ProjectName struct {
	Slug     string
	HumanKey string    // empty if the file contains no key
	Created  time.Time // zero if the file contains no time
}

// ProjectNames lists the projects in the store at root, sorted by slug. It has to be fast, because it runs at every
// commit in a working tree. Therefore, it opens only one folder for all projects. It returns ErrUnavailable or a
// machine fault.
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

// read sets all fields of n except the slug from a project.json. If the file is invalid, the fields stay empty. read
// returns any error from tree.Tree.Read.
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

// readShared sets the human key that a shared project has on this machine (see Shared). It returns machine faults.
func (n *ProjectName) readShared(projects *tree.Tree) error {
	shared, err := loadShared(projects, n.Slug)
	n.HumanKey = cmp.Or(shared.Key, n.HumanKey)
	return tree.MachineFault(err)
}

// HumanKeyOf returns the absolute path that is the human key of a tree's project, or "" if no file contains it.
func HumanKeyOf(t *tree.Tree) string {
	dir := filepath.Dir(t.Dir())
	n := ProjectName{Slug: filepath.Base(dir)}
	_ = n.read(t, format.ProjectFile) // if the file cannot be read, n stays empty
	if projects, err := tree.Open(filepath.Dir(dir), 0); err == nil {
		_ = n.readShared(projects)
		projects.Close()
	}
	return n.HumanKey
}
