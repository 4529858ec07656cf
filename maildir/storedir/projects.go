package storedir

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mailtree/maildir/format"
	"mailtree/maildir/projectformat"
	"mailtree/maildir/refusal"
	"mailtree/maildir/repo"
	"mailtree/maildir/tree"
)

// These are folders in a store. projects/<slug>/repo is a project's working tree.
const (
	ProjectsDir = "projects"
	RepoDir     = "repo"
)

// Repo returns the path of a project's working tree in the store at root.
func Repo(root, slug string) string { return filepath.Join(root, ProjectsDir, slug, RepoDir) }

// SlugAt returns the slug of the project whose folder contains the path, in the store at root. It returns "" if the
// path is not in a project's folder. It returns an error only for a machine fault.
func SlugAt(root, path string) (slug string, err error) {
	if root, err = repo.WithoutLinks(root); err != nil {
		return "", err
	}
	if path, err = repo.WithoutLinks(path); err != nil {
		return "", err
	}
	below, ok := strings.CutPrefix(path, filepath.Join(root, ProjectsDir)+"/")
	if slug, _, _ = strings.Cut(below, "/"); !ok || !format.ValidSlug(slug) {
		return "", nil
	}
	return slug, nil
}

// OpenTree calls tree.OpenNoLink for the working tree of a project in the store at root. It returns any error from
// projectformat.Refuse.
func OpenTree(root, slug string, maxFile int64) (*tree.Tree, error) {
	t, err := tree.OpenNoLink(Repo(root, slug), maxFile)
	if err != nil {
		return nil, err
	}
	n, err := projectformat.Of(t)
	if err == nil && n <= projectformat.Highest {
		return t, nil
	}
	err = projectformat.Refuse(n, err, cmp.Or(HumanKeyOf(t), slug), projectformat.Highest)
	t.Close()
	return nil, err
}

// Refused returns, by slug, the refusals for projects in the store at root that this program must not use (see
// projectformat.Refuse). It omits projects that cannot be read.
func Refused(root string) (map[string]error, error) {
	slugs, err := Slugs(root)
	all := map[string]error{}
	for _, slug := range slugs {
		t, err := OpenTree(root, slug, 0)
		if err == nil {
			t.Close()
		}
		if errors.Is(err, projectformat.ErrRefused) {
			all[slug] = err
		}
	}
	return all, err
}

// OpenTrees returns the working trees of a store's projects, by slug, for reading without owning the store. It omits
// the projects that this program must not use (Refused). The trees do not keep any files open. Instead, each use opens
// the tree (Tree.Hold). OpenTrees returns the error for the first tree that cannot be opened.
func OpenTrees(root string, maxFile int64) (map[string]*tree.Tree, error) {
	slugs, err := Slugs(root)
	if err != nil {
		return nil, err
	}
	trees := map[string]*tree.Tree{}
	for _, slug := range slugs {
		t, err := OpenTree(root, slug, maxFile)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, projectformat.ErrRefused) {
			continue
		}
		if err != nil {
			return trees, fmt.Errorf("project %s: %w", slug, err)
		}
		t.Close() // there may be more trees than available file descriptors
		trees[slug] = t
	}
	return trees, nil
}

// Slugs lists the names of the folders below projects/ that may be projects, sorted. It returns ErrUnavailable if they
// cannot be read.
func Slugs(root string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(root, ProjectsDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, &refusal.Error{What: refusal.Unavailable("The store cannot be read: {why}."), Why: err.Error(), Err: err}
	}
	var slugs []string
	for _, e := range entries {
		if e.IsDir() && format.ValidSlug(e.Name()) {
			slugs = append(slugs, e.Name())
		}
	}
	return slugs, nil
}

// SlugWord returns a slug without its last hyphen and the digits after it, for lists that name several projects.
func SlugWord(slug string) string {
	if at := strings.LastIndexByte(slug, '-'); at > 0 {
		return slug[:at]
	}
	return slug
}
