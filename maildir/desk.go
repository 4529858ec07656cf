package maildir

import (
	"context"
	"errors"
	"path"
	"path/filepath"
	"slices"

	"mailtree/maildir/core"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
	"mailtree/maildir/storedir"
)

// Users type short forms that programs do not use: the last element of a project's path, or part of an id. The
// functions below accept these short forms.

// ProjectNamed is like Project, but also finds a project by the last element of its path, and by a path in the
// project's folder in the store. It returns any error from Project, ErrConflict if several projects have that name, and
// machine faults.
func (s *Store) ProjectNamed(ctx context.Context, name string) (*Project, error) {
	if filepath.IsAbs(name) {
		if slug, err := storedir.SlugAt(s.core.Root, name); err != nil {
			return nil, err
		} else if slug != "" {
			return s.Project(ctx, slug)
		}
	}
	p, err := s.Project(ctx, name)
	if unknown := errors.Is(err, ErrNotFound) || errors.Is(err, ErrInvalid); !unknown || filepath.IsAbs(name) {
		return p, err
	}
	var found []*Project
	var names []string
	for _, p := range s.Projects() {
		if path.Base(p.mail.Name()) == name {
			found, names = append(found, p), append(names, p.mail.Name())
		}
	}
	switch len(found) {
	case 0:
		return nil, err
	case 1:
		return found[0], nil
	}
	slices.Sort(names)
	return nil, &Error{
		What:  refusal.Conflict("Several projects are called {name}: {choices}. {name one project}"),
		Field: refusal.Project,
		Name:  name,
		Near:  names,
	}
}

// FullID finds the message that a shortened id identifies: a prefix of the id, with or without "msg_". For messages
// from the last format.ShortDays days, it also accepts a prefix of the part after the day. A prefix must have at least
// MinShort characters. FullID returns short unchanged if it is a thread id or a complete id, or if it matches no id. It
// returns ErrConflict if several ids match.
func (p *Project) FullID(ctx context.Context, short string) (string, error) {
	return p.mail.Store.FullID(ctx, p.mail.Slug, refusal.Message, short)
}

// formerID is like FullID, but also finds a message that has been removed, by searching the newest operations in the
// history. It returns "" if no recent message has that id, and any error from FullID.
func (p *Project) formerID(ctx context.Context, short string) (string, error) {
	id, err := p.FullID(ctx, short)
	if err != nil {
		return "", err
	}
	m, err := p.mail.Store.Index.Message(ctx, p.mail.Slug, id, index.WithoutBody, nil)
	if err != nil || m != nil {
		return id, err
	}
	found, err := p.mail.History.NamedDone(ctx, core.IDPrefixes(short, p.mail.Store.Now().UTC()))
	switch {
	case err != nil || slices.Contains(found, short):
		return short, err
	case len(found) == 0 || len(short) < core.MinShort:
		return "", nil
	}
	return core.OneID(refusal.Message, short, found)
}
