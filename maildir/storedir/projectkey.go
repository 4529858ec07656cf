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

// Scope determines which project a path inside a Git working tree belongs to. The server, the commands and the guard
// must all use the same Scope. Except for Home, the zero value is the documented default. See docs/settings.md,
// "Projects".
type Scope struct {
	PerPath bool   // each path is its own project; otherwise, a whole working tree is one project
	Home    string // the user's home folder, which is never a working tree, even with a .git; "" for none
}

// isTop reports whether all paths below the top of a working tree belong to the top's project.
func (s Scope) isTop(top string) (bool, error) {
	if s.PerPath || top == "" {
		return false, nil
	}
	wide, err := s.IsTooWide(top)
	return !wide, err
}

// IsTooWide reports whether a folder, given without symbolic links, is / or the user's home folder. They contain code
// bases, but neither is one. IsTooWide returns an error only for a machine fault.
func (s Scope) IsTooWide(dir string) (bool, error) {
	if dir == "/" || dir == s.Home {
		return true, nil
	}
	home, err := repo.WithoutLinks(s.Home)
	return dir == home, err
}

// Above returns the top of the working tree whose project the path would belong to if the path had no project of its
// own. It returns "" if the path itself would be a project. It returns an error only for a machine fault.
func (s Scope) Above(path string) (top string, err error) {
	place, err := repo.PlaceOf(path)
	if err != nil || place.Path == place.Top {
		return "", err
	}
	if is, err := s.isTop(place.Top); err != nil || !is {
		return "", err
	}
	return place.Top, nil
}

// Resolver finds the project that a key refers to, for the store and for programs that read the store from outside.
type Resolver struct {
	Root  string
	Scope Scope
	Names func() ([]ProjectName, error) // returns the known projects
}

// ResolveKey converts a project's key into a human key and a slug. The human key is "" if the key is a slug. It returns
// ErrInvalid for an invalid key. If a machine fault prevents reading the code base, it returns ErrUnavailable, because
// a guess could pick the wrong project.
func (r *Resolver) ResolveKey(key string) (human, slug string, err error) {
	key = PlainKey(key)
	switch {
	case key == "":
		return "", "", &refusal.Error{
			What: refusal.Invalid("{field} is empty: pass the absolute path of the code base, such as /home/me/backend, or a project's " +
				"slug."),
			Field: refusal.Project,
		}
	case len(key) > 4096 || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }):
		return "", "", &refusal.Error{
			What:  refusal.Invalid("{field} {name} is not a path: it is too long or contains control characters."),
			Field: refusal.Project,
			Name:  key,
		}
	case filepath.IsAbs(key):
		if human, slug, err = r.projectAt(filepath.Clean(key)); err != nil {
			return "", "", &refusal.Error{
				What:  refusal.Unavailable("The server cannot look up {field} {name} now: {why}. Try again."),
				Field: refusal.Project,
				Name:  key,
				Why:   refusal.DiskFault(err),
				Err:   err,
			}
		}
		return human, slug, nil
	case format.ValidSlug(key):
		return "", key, nil
	}
	return "", "", &refusal.Error{What: refusal.ProjectKeyRelative, Field: refusal.Project, Name: key}
}

// PlainKey returns the key without surrounding white space, or the path in a file:// URI.
func PlainKey(key string) string {
	key = strings.TrimSpace(key)
	if u, err := url.Parse(key); err == nil && u.Scheme == "file" && filepath.IsAbs(u.Path) {
		return u.Path
	}
	return key
}

// projectAt finds the project that a path refers to. It is the existing project of the path itself or of the nearest
// folder above it, up to the top that the scope determines. If there is none, it is a new project at that top. A
// project that was created before its folder was in a working tree, or through a path that contains a link, keeps its
// old name. projectAt returns an error only for a machine fault.
func (r *Resolver) projectAt(given string) (human, slug string, err error) {
	place, err := repo.PlaceOf(given)
	if err != nil {
		return "", "", err
	}
	top := place.Path
	if is, err := r.Scope.isTop(place.Top); err != nil {
		return "", "", err
	} else if is {
		top = place.Top
	}
	names, err := r.Names()
	if err != nil {
		return "", "", err
	}
	for at, old := place.Path, given; ; at, old = filepath.Dir(at), above(at, old) {
		for _, human := range []string{at, old} {
			if slug, err := r.named(names, human); err != nil || slug != "" {
				return human, slug, err
			}
		}
		if at == top {
			return top, format.Slug(top), nil
		}
	}
}

// above returns the folder above old if at is another name for old, and "" otherwise.
func above(at, old string) string {
	if filepath.Base(at) != filepath.Base(old) {
		return ""
	}
	return filepath.Dir(old)
}

// named returns the slug of the project with the given human key, or "" if there is none. If there are two such
// projects, it picks the older one. If they are equally old, because one is a copy, it picks the one whose folder is
// named after the key. It returns an error only for a machine fault.
func (r *Resolver) named(names []ProjectName, human string) (slug string, err error) {
	if human == "" {
		return "", nil
	}
	var oldest *ProjectName
	for i := range names {
		n := &names[i]
		if n.HumanKey != human {
			continue
		}
		same := oldest != nil && n.Created.Equal(oldest.Created) && n.Slug == format.Slug(human)
		if oldest == nil || n.Created.Before(oldest.Created) || same {
			oldest = n
		}
	}
	if oldest != nil {
		return oldest.Slug, nil
	}
	slug = format.Slug(human)
	if is, err := hasProject(r.Root, slug); err != nil || !is {
		return "", err
	}
	return slug, nil
}

// hasProject reports whether the store at root has a project with the given slug. It returns an error only for a
// machine fault.
func hasProject(root, slug string) (bool, error) {
	_, err := os.Lstat(Repo(root, slug))
	return err == nil, tree.MachineFault(err)
}
