package storedir

import (
	"cmp"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"mailtree/maildir/folders"
	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/repo"
	"mailtree/maildir/tree"
)

// Scope determines which project a path inside a Git working tree belongs to. The server, the commands and the guard
// must all use the same Scope. Except for Home, the zero value is the documented default. See
// docs/reference/settings.md, "Projects".
type Scope struct {
	PerPath bool   // each path is its own project; otherwise, a whole working tree is one project
	Home    string // the user's home folder, which is never a working tree, even with a .git; empty if there is none
}

// isTop reports whether all paths below the top of a working tree belong to the top's project.
func (s Scope) isTop(top string) (bool, error) {
	if s.PerPath || top == "" {
		return false, nil
	}
	wide, err := s.IsTooWide(top)
	return !wide, err
}

// IsTooWide reports whether a folder, given without symbolic links, is / or the user's home folder. Both folders may
// contain code bases, but neither is one itself. IsTooWide returns an error only for a machine fault.
func (s Scope) IsTooWide(dir string) (bool, error) {
	if dir == "/" || dir == s.Home {
		return true, nil
	}
	home, err := repo.WithoutLinks(s.Home)
	return dir == home, err
}

// Above returns the top of the working tree that contains the path, if all paths in that tree belong to the top's
// project by default. Otherwise, the path would be a project of its own, and Above returns "". It returns an error only
// for a machine fault.
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

// Resolver finds the project that a key refers to. The store uses a Resolver, and so do programs that read the store
// without owning it.
type Resolver struct {
	Root    string
	Scope   Scope
	Names   func() ([]ProjectName, error) // returns the known projects
	Folders func() (*folders.Map, error)  // returns the map of folders
}

// NewResolver returns a Resolver for a program that reads the store at root without owning it.
func NewResolver(root string, scope Scope) *Resolver {
	return &Resolver{
		Root:    root,
		Scope:   scope,
		Names:   func() ([]ProjectName, error) { return ProjectNames(root) },
		Folders: folders.Open(root).Load,
	}
}

// Rule is the reason why a path refers to a project. See docs/reference/settings.md, "Projects".
type Rule int

// These are the rules. The first one that matches applies.
const (
	Linked   Rule = iota + 1 // a user linked the folder
	Existing                 // there is a project at the path itself, or at a folder above it in the same working tree
	Main                     // the path is in a linked worktree, and this is the project of the main working tree
	Bare                     // the path is in a bare layout, and this is the project of its container
	Noted                    // the path is in another clone, or in a worktree that was removed
	New                      // there is no project yet
)

// Meaning identifies the project that a key refers to.
type Meaning struct {
	HumanKey string // empty if the key is a slug
	Slug     string
	Rule     Rule         // zero if the key is a slug
	Line     folders.Line // the line that matched, for the rules Linked and Noted
	Place    repo.Place   // the path's location; zero if the key is a slug
}

// ResolveKey finds the project that a key refers to. The key is a slug or the path of a folder. It returns ErrInvalid
// for an invalid key. If a machine fault prevents reading the code base, it returns ErrUnavailable, because a guess
// could pick the wrong project.
func (r *Resolver) ResolveKey(key string) (m Meaning, err error) {
	key = PlainKey(key)
	switch {
	case key == "":
		return m, &refusal.Error{
			What: refusal.Invalid("{field} is empty: pass the absolute path of the code base, such as /home/me/backend, or a project's " +
				"slug."),
			Field: refusal.Project,
		}
	case len(key) > 4096 || format.HasControls(key):
		return m, notPath(key)
	case filepath.IsAbs(key):
		m, err = r.projectAt(filepath.Clean(key))
		if refused := new(*refusal.Error); errors.As(err, refused) {
			return m, err
		}
		if err != nil {
			return m, &refusal.Error{
				What:  refusal.Unavailable("The server currently cannot look up {field} {name}: {why}. Try again."),
				Field: refusal.Project,
				Name:  key,
				Why:   refusal.DiskFault(err),
				Err:   err,
			}
		}
		if format.HasControls(m.Place.Path) || format.HasControls(m.Place.Top) { // the given path may contain a link
			return Meaning{}, notPath(m.Place.Path)
		}
		return m, nil
	case format.ValidSlug(key):
		return Meaning{Slug: key}, nil
	}
	return m, &refusal.Error{What: refusal.ProjectKeyRelative, Field: refusal.Project, Name: key}
}

// notPath returns the refusal for a path that cannot be the path of a code base.
func notPath(path string) error {
	return &refusal.Error{
		What:  refusal.Invalid("{field} {name} is not a path: it is too long or contains control characters."),
		Field: refusal.Project,
		Name:  path,
	}
}

// PlainKey returns the key without surrounding white space, or the path in a file:// URI.
func PlainKey(key string) string {
	key = strings.TrimSpace(key)
	if u, err := url.Parse(key); err == nil && u.Scheme == "file" && filepath.IsAbs(u.Path) {
		return u.Path
	}
	return key
}

// projectAt finds the project that a path refers to. The first rule that matches applies. A project that was created
// before its folder was in a working tree, or through a path that contains a link, keeps its old name. projectAt
// returns errors from Names and Folders, or a machine fault.
func (r *Resolver) projectAt(given string) (m Meaning, err error) {
	names, err := r.Names()
	if err != nil {
		return m, err
	}
	marked, err := r.Folders()
	if err != nil {
		return m, err
	}
	return r.meaningOf(given, names, marked)
}

// meaningOf is like projectAt, but takes the known projects and the map of folders as arguments.
func (r *Resolver) meaningOf(given string, names []ProjectName, marked *folders.Map) (m Meaning, err error) {
	if m.Place, err = repo.PlaceOf(given); err != nil {
		return m, err
	}
	if r.Scope.PerPath && m.Place.Bare != "" {
		m.Place.Path, m.Place.Top = m.Place.Bare, m.Place.BareTop
	}
	paths := []string{m.Place.Path, given} // there may be a line for a linked worktree
	for _, path := range paths {
		line, ok := marked.Linked(path)
		if other, err := repo.IsOther(path, line.Folder); err != nil {
			return m, err
		} else if ok && !other && m.takeLine(Linked, line, path, names) {
			return m, nil
		}
	}
	if found, err := r.existing(&m, given, names); err != nil || found {
		return m, err
	}
	for _, path := range paths {
		var fault error
		line, ok := marked.Noted(path, func(l folders.Line) bool {
			is, err := r.counts(l, marked)
			fault = cmp.Or(fault, err)
			return is
		})
		if fault != nil {
			return m, fault
		}
		if other, err := repo.IsOther(path, line.Folder); err != nil {
			return m, err
		} else if ok && !other && m.takeLine(Noted, line, path, names) {
			return m, nil
		}
	}
	m.Rule, m.HumanKey = New, m.Place.Path
	if is, err := r.Scope.isTop(m.Place.Top); err != nil {
		return m, err
	} else if is {
		m.HumanKey = m.Place.Top
	}
	m.Slug = freeSlug(names, m.HumanKey)
	return m, nil
}

// FreeSlug returns the slug of a new project at a path, as freeSlug does. It returns errors from Names.
func (r *Resolver) FreeSlug(human string) (string, error) {
	names, err := r.Names()
	return freeSlug(names, human), err
}

// freeSlug returns the slug of a new project at a path. If a project with a different path already has that slug,
// freeSlug adds a number.
func freeSlug(names []ProjectName, human string) string {
	slug := format.Slug(human)
	for n := 2; slices.ContainsFunc(names, func(p ProjectName) bool { return p.Slug == slug && p.HumanKey != "" && p.HumanKey != human }); n++ {
		slug = format.Slug(human) + "-" + strconv.Itoa(n)
	}
	return slug
}

// counts reports whether an automatic line in the map of folders applies. A clone's line applies, unless
// r.Scope.PerPath is set or another repository has replaced the clone. A worktree's line applies once the worktree has
// been removed. counts returns an error only for a machine fault.
func (r *Resolver) counts(l folders.Line, marked *folders.Map) (bool, error) {
	if l.Kind == folders.Clone {
		if r.Scope.PerPath {
			return false, nil
		}
		return marked.IsStill(l)
	}
	_, err := os.Lstat(l.Folder)
	return errors.Is(err, fs.ErrNotExist), tree.MachineFault(err)
}

// takeLine finds the project of a path in a line's folder, and stores the result in m. It maps the path to the same
// path in the folder of the line's project. The result is that project, or a project for a subfolder that contains the
// mapped path. takeLine returns false if the line's project is unknown.
func (m *Meaning) takeLine(rule Rule, line folders.Line, path string, names []ProjectName) bool {
	i := slices.IndexFunc(names, func(n ProjectName) bool { return n.Slug == line.Project })
	if i < 0 || names[i].HumanKey == "" {
		return false
	}
	m.Rule, m.Line, m.Slug, m.HumanKey = rule, line, names[i].Slug, names[i].HumanKey
	same := filepath.Join(m.HumanKey, strings.TrimPrefix(path, line.Folder))
	for _, n := range names {
		below := n.HumanKey == same || strings.HasPrefix(same, n.HumanKey+"/")
		if below && len(n.HumanKey) > len(m.HumanKey) {
			m.Slug, m.HumanKey = n.Slug, n.HumanKey
		}
	}
	return true
}

// existing looks for the project of the path itself or of the nearest folder above it, up to the top that the scope
// determines. It returns an error only for a machine fault.
func (r *Resolver) existing(m *Meaning, given string, names []ProjectName) (found bool, err error) {
	for _, from := range []struct{ path, given, top string }{
		{m.Place.Path, given, m.Place.Top},
		{m.Place.Bare, "", m.Place.BareTop},
	} {
		top := from.path
		if is, err := r.Scope.isTop(from.top); err != nil {
			return false, err
		} else if is {
			top = from.top
		}
		for at, old := from.path, from.given; at != ""; at, old = filepath.Dir(at), above(at, old) {
			for _, human := range []string{at, old} {
				slug, err := r.named(names, human)
				if err != nil {
					return false, err
				}
				if slug != "" {
					m.HumanKey, m.Slug, m.Rule = human, slug, m.ruleFor(human, given)
					return true, nil
				}
			}
			if at == top {
				break
			}
		}
	}
	return false, nil
}

// ruleFor returns the rule by which an existing project at the path human was found for the given path.
func (m *Meaning) ruleFor(human, given string) Rule {
	real, err := repo.WithoutLinks(given)
	own := err == nil && (human == real || strings.HasPrefix(real, human+"/")) || human == given || strings.HasPrefix(given, human+"/")
	switch top, err := repo.WorkTree(real); {
	case err == nil && own && (top == m.Place.Top || len(human) >= len(top)):
		return Existing
	case m.Place.Bare != "":
		return Bare
	}
	return Main
}

// above returns the parent folder of old if the last elements of at and old are the same, and "" otherwise.
func above(at, old string) string {
	if filepath.Base(at) != filepath.Base(old) {
		return ""
	}
	return filepath.Dir(old)
}

// named returns the slug of the project with the given human key, or "" if there is none. If there are two such
// projects, it picks the older one. If both have the same age, because one is a copy of the other, it picks the project
// with the slug derived from the key. It returns an error only for a machine fault.
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
	slug = freeSlug(names, human)
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

// Places returns the folders on this machine that contain the same code base as a project's folder, according to the
// applicable lines in the map of folders.
func (r *Resolver) Places() (all repo.Folders, err error) {
	marked, err := r.Folders()
	if err != nil || len(marked.Lines) == 0 {
		return nil, err
	}
	names, err := r.Names()
	if err != nil {
		return nil, err
	}
	keys := map[string]string{} // human keys, by slug
	for _, n := range names {
		keys[n.Slug] = n.HumanKey
	}
	for _, l := range marked.Lines {
		same := keys[l.Project]
		if same == "" || same == l.Folder {
			continue
		}
		if l.Kind != folders.Link {
			if is, err := r.counts(l, marked); err != nil {
				return nil, err
			} else if !is {
				continue
			}
		}
		if own, err := r.meaningOf(l.Folder, names, marked); err != nil {
			return nil, err
		} else if own.Slug == l.Project { // otherwise, another line or project takes precedence
			all = append(all, repo.Folder{Path: l.Folder, Same: same})
		}
	}
	return all, nil
}
