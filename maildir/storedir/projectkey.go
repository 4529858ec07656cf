package storedir

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/repo"
	"mailtree/maildir/tree"
)

// ResolveKey turns a key of a project in the store at root into a human key ("" for a slug) and a
// slug. A file:// URI is the path in it. Errors: ErrInvalid, and ErrUnavailable where the machine
// does not let the code base be looked at: another one would be another project.
func ResolveKey(root, key string) (human, slug string, err error) {
	if u, err := url.Parse(key); err == nil && u.Scheme == "file" && filepath.IsAbs(u.Path) {
		key = u.Path
	}
	switch {
	case key == "":
		return "", "", &refusal.Error{What: refusal.EmptyProjectKey, Field: refusal.Project}
	case len(key) > 4096 || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }):
		return "", "", &refusal.Error{What: refusal.ProjectKeyUnusable, Field: refusal.Project, Name: key}
	case filepath.IsAbs(key):
		given := filepath.Clean(key)
		if human, err = repo.MainPath(given); err == nil && human != given {
			human, err = oldOrNew(root, given, human)
		}
		if err != nil {
			return "", "", &refusal.Error{
				What:  refusal.ProjectKeyUnread,
				Field: refusal.Project,
				Name:  key,
				Why:   refusal.DiskFault(err),
				Err:   err,
			}
		}
		return human, format.Slug(human), nil
	case format.ValidSlug(key):
		return "", key, nil
	}
	return "", "", &refusal.Error{What: refusal.ProjectKeyRelative, Field: refusal.Project, Name: key}
}

// oldOrNew is which of two names of a code base the project goes by: the new one, unless there is
// only a project of the old one, which was made before there was a work tree. Errors: the machine's
// faults.
func oldOrNew(root, old, new string) (string, error) {
	isNew, err := hasProject(root, format.Slug(new))
	if err != nil || isNew {
		return new, err
	}
	isOld, err := hasProject(root, format.Slug(old))
	if err == nil && isOld {
		return old, nil
	}
	return new, err
}

// hasProject reports whether the store at root has a project of that slug. Errors: the machine's
// faults.
func hasProject(root, slug string) (bool, error) {
	_, err := os.Lstat(Repo(root, slug))
	return err == nil, tree.MachineFault(err)
}
