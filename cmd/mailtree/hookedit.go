package main

import (
	"errors"
	"path/filepath"
	"runtime/debug"

	"mailtree/clients/event"
	"mailtree/guard"
	"mailtree/maildir/refusal"
	"mailtree/maildir/session"
	"mailtree/maildir/storedir"
)

// checkEdit holds the files that a tool is about to change against the claims of others, from files
// alone.
func (p *program) checkEdit(e event.Event) event.Answer {
	debug.SetGCPercent(-1) // a few megabytes, once; the limit of tuneMemory still holds
	q := guard.Edit{
		Store: p.cfg.Store,
		Agent: func() (string, error) { return p.sessionAgent(e) },
		Paths: editedFiles(e),
		Env:   p.env,
		Words: words,
	}
	q.Program, _ = guard.Program()
	deny, warn := guard.CheckEdit(q)
	return event.Answer{Deny: deny, Warn: warn}
}

// editedFiles are the files of an event by absolute paths.
func editedFiles(e event.Event) (all []string) {
	for _, path := range e.Paths {
		if !filepath.IsAbs(path) {
			path = filepath.Join(e.Dir, path)
		}
		all = append(all, path)
	}
	return all
}

// sessionAgent is the agent of the event's session, "" where the project of its folder knows none.
func (p *program) sessionAgent(e event.Event) (string, error) {
	t, _, err := storedir.OpenProject(p.cfg.Store, e.Root, p.cfg.Scope)
	if errors.Is(err, refusal.ErrNotFound) || errors.Is(err, refusal.ErrInvalid) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer t.Close()
	s, _ := session.Read(t, session.Key{Client: e.Client, ID: e.Session})
	return s.Agent, nil
}
