package storedir

import (
	"errors"
	"io/fs"
	"strings"

	"mailtree/maildir/format"
	"mailtree/maildir/projectformat"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
)

// OpenProject opens the working tree of one of a store's projects for reading, without owning the store. key has the
// same meaning as in Resolver.ResolveKey. The caller must close the tree. OpenProject returns ErrInvalid,
// ErrUnavailable, or an ErrNotFound that lists similar projects and projects in subfolders.
func OpenProject(root, key string, scope Scope) (t *tree.Tree, slug string, err error) {
	r := NewResolver(root, scope)
	m, err := r.ResolveKey(key)
	if err != nil {
		return nil, "", err
	}
	human, slug := m.HumanKey, m.Slug
	t, err = OpenTree(root, slug, 0)
	if err == nil {
		return t, slug, nil
	}
	if errors.Is(err, projectformat.ErrRefused) {
		return nil, slug, err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, slug, &refusal.Error{
			What: refusal.Unavailable("The mail of project {name} cannot be read: {why}."),
			Name: slug,
			Why:  tree.PlainFault(err),
			Err:  err,
		}
	}
	e := &refusal.Error{
		What:  refusal.NotFound("The store {=other} has no project {name} {arg}. {near} {projects below} {make a project}"),
		Field: refusal.Project,
		Name:  key,
		Other: root,
	}
	if all, err := Slugs(root); err == nil {
		e.Near = format.Near(slug, all)
	}
	if names, err := r.Names(); err == nil && human != "" {
		for _, n := range names {
			if strings.HasPrefix(n.HumanKey, human+"/") {
				e.All = append(e.All, n.HumanKey)
			}
		}
	}
	return nil, slug, e
}

// AgentNamed returns the tree's agent with the given name, spelled like the agent's folder. No two names differ only in
// case (docs/reference/tree.md, "An agent"). If there is no such agent, AgentNamed returns "" and similar names. It
// returns ErrUnavailable if the agents cannot be read.
func AgentNamed(t *tree.Tree, name string) (agent string, near []string, err error) {
	if !format.ValidName(name) {
		return "", nil, nil
	}
	cannotTell := func(err error) error {
		return &refusal.Error{What: refusal.Unavailable("The agents cannot be read: {why}."), Why: tree.PlainFault(err), Err: err}
	}
	if is, err := hasProfile(t, name); err != nil {
		return "", nil, cannotTell(err)
	} else if is {
		return name, nil, nil
	}
	entries, err := t.List(format.AgentsDir)
	if err := tree.MachineFault(err); err != nil {
		return "", nil, cannotTell(err)
	}
	var all []string
	for _, e := range entries {
		if !format.ValidName(e.Name()) {
			continue
		}
		if is, err := hasProfile(t, e.Name()); err != nil {
			return "", nil, cannotTell(err)
		} else if !is {
			continue
		}
		if strings.EqualFold(e.Name(), name) {
			return e.Name(), nil, nil
		}
		all = append(all, e.Name())
	}
	return "", format.Near(name, all), nil
}

// hasProfile reports whether the agent has a profile file. It returns an error only for a machine fault.
func hasProfile(t *tree.Tree, name string) (bool, error) {
	st, err := t.Stat(format.ProfilePath(name))
	return err == nil && st.Mode.IsRegular(), tree.MachineFault(err)
}
