package maildir

import (
	"path"
	"slices"

	"mailtree/maildir/core"
	"mailtree/maildir/format"
)

// If a name is unknown, the refusal lists the existing names so that the caller can correct the request.

// unknownProject adds the names of the existing projects to the refusal of a project's key.
func (s *Store) unknownProject(e *Error) *Error {
	var all, bases []string
	shown := map[string]string{} // the name to list for a project, keyed by its base name and by its slug
	for _, p := range s.Projects() {
		base := path.Base(p.mail.Name())
		all, bases = append(all, p.mail.Name()), append(bases, base, p.mail.Slug)
		shown[base], shown[p.mail.Slug] = p.mail.Name(), p.mail.Name()
	}
	slices.Sort(all)
	for _, name := range format.Near(path.Base(e.Name), bases) {
		if !slices.Contains(e.Near, shown[name]) {
			e.Near = append(e.Near, shown[name])
		}
	}
	e.All = core.Few(all)
	return e
}
