package main

import (
	"errors"
	"path/filepath"
	"runtime/debug"

	"mailtree/clients/event"
	"mailtree/guard"
	"mailtree/maildir/refusal"
	"mailtree/maildir/seat"
	"mailtree/maildir/storedir"
)

// checkEdit checks the files that a tool is about to change for claims of other agents. It only reads files, and needs
// no server.
func (p *program) checkEdit(e event.Event) event.Answer {
	debug.SetGCPercent(-1) // no garbage collection, because this run needs only a few megabytes; tuneMemory's limit still applies
	q := guard.Edit{
		Store: p.cfg.Store,
		Usual: p.usualStore(),
		Scope: p.cfg.Scope,
		Dir:   e.Dir,
		Agent: func() (string, error) { return p.editor(e) },
		Paths: editedFiles(e),
		Env:   p.env,
		Words: words,
	}
	q.Program, _ = guard.Program()
	deny, warn := guard.CheckEdit(q)
	return event.Answer{Deny: deny, Warn: warn}
}

// editedFiles returns the absolute paths of an event's files.
func editedFiles(e event.Event) (all []string) {
	for _, path := range e.Paths {
		if !filepath.IsAbs(path) {
			path = filepath.Join(e.Dir, path)
		}
		all = append(all, path)
	}
	return all
}

// editor returns the agent that is making the edit: the agent of the event's session or, if the session is not
// recorded, the value of AGENT_NAME. It returns "" if there is no agent.
func (p *program) editor(e event.Event) (string, error) {
	t, _, err := storedir.OpenProject(p.cfg.Store, e.Root, p.cfg.Scope)
	switch {
	case errors.Is(err, refusal.ErrNotFound) || errors.Is(err, refusal.ErrInvalid):
		return p.variable("AGENT_NAME"), nil
	case err != nil:
		return "", err
	}
	defer t.Close()
	if s, ok := seat.Read(t, seat.Key{Client: e.Client, ID: e.Session}); ok {
		return s.Agent, nil
	}
	return p.variable("AGENT_NAME"), nil
}
