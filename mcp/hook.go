package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"mailtree/maildir"
)

// HookEvent is the body of POST /mailtree/hook: what a client has told its hook.
type HookEvent struct {
	Kind string `json:"kind"` // HookStart and its like
	maildir.Visit
	Deaf bool `json:"deaf,omitempty"` // nothing reaches the model now
}

// The kinds of HookEvent: a session begins or loses its context, a prompt comes, tools have run,
// a subagent has done something, a person is asked whether a tool may run, a turn ends, the context is cut, the session ends.
const (
	HookStart    = "start"
	HookPrompt   = "prompt"
	HookTool     = "tool"
	HookSubagent = "subagent"
	HookAsk      = "ask"
	HookStop     = "stop"
	HookCompact  = "compact"
	HookEnd      = "end"
)

// HookAnswer is what the hook is to say. All of it is empty where the folder is no project's.
type HookAnswer struct {
	Agent string `json:"agent,omitempty"` // who the session is
	Tell  string `json:"tell,omitempty"`  // to the model
}

func (s *Server) hookEvent(ctx context.Context, _ *maildir.Project, e *HookEvent) (HookAnswer, error) {
	return e.happened(ctx, s.cfg.Store)
}

// happened notes in the store what has happened, and returns what is to be told. Errors: those of the
// store.
func (e *HookEvent) happened(ctx context.Context, store *maildir.Store) (a HookAnswer, err error) {
	v := e.Visit
	if !v.Valid() || e.Dir == "" {
		return a, errors.New("a hook names no session, or no folder")
	}
	p, err := store.Project(ctx, e.Dir)
	switch {
	case errors.Is(err, maildir.ErrNotFound): // not ours
		return a, nil
	case err != nil:
		return a, err
	case e.Kind == HookEnd:
		p.EndSession(ctx, v.SessionKey)
		return a, nil
	}
	if a.Agent, err = p.BeginSession(ctx, v); err != nil {
		return e.nobody(err)
	}
	p.SessionAsks(v.SessionKey, e.Kind == HookAsk)
	switch e.Kind {
	case HookSubagent, HookAsk:
		return a, nil
	case HookCompact, HookStart:
		p.SessionCut(v.SessionKey)
	case HookStop:
		p.SessionWorks(v.SessionKey, false)
	default:
		p.SessionWorks(v.SessionKey, true)
	}
	if e.Deaf || e.Kind == HookCompact {
		return a, nil
	}
	a.Tell, err = e.tell(ctx, p, v.SessionKey, a.Agent)
	return a, err
}

// nobody is the answer where the session is no agent: to a session that begins, why its name is none.
func (e *HookEvent) nobody(err error) (a HookAnswer, _ error) {
	unusable := errors.Is(err, maildir.ErrInvalid) || errors.Is(err, maildir.ErrConflict)
	if e.Kind != HookStart || e.Agent == "" || !unusable {
		return a, err
	}
	a.Tell = "You have no mail in this session, because AGENT_NAME names no agent. " + err.Error()
	return a, nil
}

// tell returns what the model is told at the event: who it is, once, and new mail, but at the start
// of a session. At its end a turn goes on for mail alone.
func (e *HookEvent) tell(ctx context.Context, p *maildir.Project, k maildir.SessionKey, agent string) (string, error) {
	news := ""
	if e.Kind != HookStart {
		told, err := p.TellSession(ctx, k)
		if err != nil {
			return "", err
		}
		news = told.String()
	}
	if e.Kind == HookStop {
		if news == "" {
			return "", nil
		}
		p.SessionWorks(k, true)
	}
	if !p.IntroduceSession(k) {
		return news, nil
	}
	return strings.TrimSuffix(introduction(agent, p.HumanKey())+"\n"+news, "\n"), nil
}

// introduction tells a model who it is in the mail.
func introduction(agent, project string) string {
	return fmt.Sprintf("You are %s (mail: agent_name %s, project_key %s).", agent, agent, project)
}
