package maildir

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
	"mailtree/maildir/storedir"
)

// A person types less than a program writes: the last element of a project's path, the end of an id, and no
// registration at all.

// personProgram is the program name of agents that are people.
const personProgram = "person"

// ProjectNamed is Project that also finds a project by the last element of its path, and by a path in the
// project's folder of the store. It returns the errors of Project, ErrConflict if several projects have
// that name, and the machine's faults.
func (s *Store) ProjectNamed(ctx context.Context, name string) (*Project, error) {
	if filepath.IsAbs(name) {
		if slug, err := storedir.SlugAt(s.cfg.Root, name); err != nil {
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
		if path.Base(p.name()) == name {
			found, names = append(found, p), append(names, p.name())
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

// PersonName returns the name of a person's agent: name without the characters that agents' names must not
// have.
func PersonName(name string) string {
	if clean := sanitizeName(name); clean != "" {
		return clean
	}
	return name
}

// Person returns the agent of a person and creates it at first use: see PersonName. It returns the errors
// of EnsureAgent.
func (p *Project) Person(ctx context.Context, name string) (agent string, made bool, err error) {
	name = PersonName(name)
	is, err := p.hasAgent(ctx, name)
	if err != nil || is {
		return name, false, err
	}
	return name, true, p.EnsureAgent(ctx, name, Registration{Program: personProgram})
}

// IsPerson reports whether a name is that of a person's agent.
func (p *Project) IsPerson(ctx context.Context, name string) (bool, error) {
	a, err := p.store.index.Agent(ctx, p.Slug, name)
	if err != nil {
		return false, fmt.Errorf("look up agent %s: %w", format.Printable(name), err)
	}
	return a != nil && a.Program == personProgram, nil
}

// NewAgent creates an agent of exactly that name. It returns ErrConflict if the agent exists, and the
// errors of EnsureAgent.
func (p *Project) NewAgent(ctx context.Context, name string, r Registration) error {
	is, err := p.hasAgent(ctx, name)
	if err == nil && is {
		err = &Error{What: refusal.Conflict("There is an agent {name} {arg} already."), Field: refusal.Agent, Name: name}
	}
	if err != nil {
		return err
	}
	return p.EnsureAgent(ctx, name, r)
}

// minShort is the length of the shortest text that is taken for a shortened id: a slip must not hit a message.
const minShort = 4

// FullID finds the message that a shortened id means: a prefix of the id, a prefix without "msg_", or,
// within the last format.ShortDays days, a prefix of the part after the day, of at least minShort
// characters. It returns thread ids, whole ids, and texts that match no id, unchanged. It returns ErrConflict if several ids match.
func (p *Project) FullID(ctx context.Context, short string) (string, error) {
	return p.store.fullID(ctx, p.Slug, refusal.Message, short)
}

// fullID is Project.FullID for an id that a field gives. slug "" means all projects.
func (s *Store) fullID(ctx context.Context, slug string, field refusal.Field, short string) (string, error) {
	threads, err := s.index.Names(ctx, slug, format.KindOther, short, 1)
	if err != nil || slices.Contains(threads, short) {
		return short, err
	}
	return s.lengthen(field, short, func(prefix string) ([]string, error) {
		return s.index.Names(ctx, slug, format.KindCanonical, prefix, maxListed)
	})
}

// lengthen returns the id that short means among those that with returns for a prefix. See Project.FullID.
func (s *Store) lengthen(field refusal.Field, short string, with func(prefix string) ([]string, error)) (string, error) {
	var found []string
	for _, prefix := range idPrefixes(short, s.cfg.Now().UTC()) {
		ids, err := with(prefix)
		if err != nil {
			return "", err
		}
		if slices.Contains(ids, short) {
			return short, nil
		}
		found = append(found, ids...)
	}
	return oneID(field, short, found)
}

// formerID is FullID for a message that may be gone: the newest operations still name it. It returns the
// errors of FullID, and ErrNotFound if there was no such message recently.
func (p *Project) formerID(ctx context.Context, short string) (string, error) {
	id, err := p.FullID(ctx, short)
	if err != nil {
		return "", err
	}
	m, err := p.store.index.Message(ctx, p.Slug, id, index.WithoutBody, nil)
	if err != nil || m != nil {
		return id, err
	}
	found, err := p.History.NamedDone(ctx, idPrefixes(short, p.store.cfg.Now().UTC()))
	switch {
	case err != nil || slices.Contains(found, short):
		return short, err
	case len(found) == 0 || len(short) < minShort:
		return "", p.noMessage(ctx, refusal.Message, short)
	}
	return oneID(refusal.Message, short, found)
}

// oneID returns the only id among found; short itself if there is none, or if it is too short. It returns ErrConflict if there are
// several.
func oneID(field refusal.Field, short string, found []string) (string, error) {
	slices.Sort(found)
	found = slices.Compact(found)
	switch {
	case len(found) == 0 || len(short) < minShort:
		return short, nil
	case len(found) == 1:
		return found[0], nil
	}
	return "", &Error{
		What:  refusal.Conflict("{name} {arg} is short for several messages: {choices}. Write more of the id."),
		Field: field,
		Name:  short,
		Near:  found[:min(len(found), maxListed)],
	}
}

// idPrefixes lists the prefixes that short stands for in an id.
func idPrefixes(short string, now time.Time) []string {
	const made = "msg_"
	if !format.ValidID(short) {
		return nil
	}
	all := []string{short, made + short}
	if strings.Contains(short, "_") {
		return all
	}
	for day := range format.ShortDays {
		all = append(all, made+now.AddDate(0, 0, -day).Format("20060102")+"_"+short)
	}
	return all
}
