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

// checkEdit compares the files that a tool is about to change with the claims of other agents. It only reads files
// and needs no server.
func (p *program) checkEdit(e event.Event) event.Answer {
	debug.SetGCPercent(-1) // turn garbage collection off: this run needs only a few megabytes, and tuneMemory's limit still applies
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

// editor returns the agent that makes the edit: the agent of the event's session or, if there is none, the agent
// named in the client's environment. It returns "" if the project of the session's folder has neither agent.
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
