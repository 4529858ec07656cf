package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"mailtree/maildir"
	"mailtree/maildir/format"
)

// HookEvent is the body of POST /mailtree/hook. It describes an event that a client has reported to its hook.
type HookEvent struct {
	Kind string `json:"kind"` // HookStart or another of the constants below
	maildir.SessionEvent
	Deaf  bool     `json:"deaf,omitempty"`  // the client does not show the response to the model
	Paths []string `json:"paths,omitempty"` // absolute paths of the files that the tools have edited
	Asks  string   `json:"asks,omitempty"`  // for HookAsk: what the client asks the user's permission for
}

// The kinds of HookEvent:
//
//   - HookStart: a session begins or loses its context
//   - HookPrompt: the user enters a prompt
//   - HookTool: tools have run
//   - HookSubagent: a subagent has reported an event of any kind
//   - HookAsk: the client asks the user whether a tool may run
//   - HookStop: a turn ends
//   - HookCompact: the context is compacted
//   - HookEnd: the session ends
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

// HookAnswer is the hook's output. It is empty if the folder does not belong to any project.
type HookAnswer struct {
	Agent string `json:"agent,omitempty"` // the agent of the session
	Tell  string `json:"tell,omitempty"`  // text for the model
	Turn  int    `json:"turn,omitempty"`  // for HookPrompt: the number of the new turn
}

func (s *Server) hookEvent(ctx context.Context, _ *maildir.Project, e *HookEvent) (HookAnswer, error) {
	return e.happened(ctx, s.cfg.Store)
}

// happened records the event in the store and returns the hook's response. It returns any error from the store.
func (e *HookEvent) happened(ctx context.Context, store *maildir.Store) (a HookAnswer, err error) {
	v := e.SessionEvent
	if !v.Valid() || e.Dir == "" {
		return a, errors.New("the hook's input must contain a session and a folder")
	}
	p, err := store.Project(ctx, e.Dir)
	switch {
	case errors.Is(err, maildir.ErrNotFound): // the folder does not belong to a project
		return a, nil
	case err != nil:
		return a, err
	case e.Kind == HookEnd:
		p.Sessions.End(ctx, v.SessionKey)
		return a, nil
	}
	if e.Kind == HookStart {
		p.Code.Visited(ctx, e.Dir)
	}
	if a.Agent, err = p.Sessions.Begin(ctx, v); err != nil {
		return e.nobody(err)
	}
	tool := ""
	if e.Kind == HookAsk {
		tool = format.Cut(e.Asks, maxPath)
	}
	p.Sessions.SetAsking(v.SessionKey, e.Kind == HookAsk, tool)
	e.noteEdits(p, a.Agent)
	switch e.Kind {
	case HookSubagent, HookAsk:
		return a, nil
	case HookCompact, HookStart:
		p.Sessions.ContextCut(v.SessionKey)
	case HookStop:
		p.Sessions.SetWorking(v.SessionKey, false)
	case HookTool:
		p.Sessions.SetWorking(v.SessionKey, true)
	default:
		a.Turn = p.Sessions.Prompted(v.SessionKey)
	}
	if e.Deaf || e.Kind == HookCompact {
		return a, nil
	}
	a.Tell, err = e.tell(ctx, p, v.SessionKey, a.Agent)
	return a, err
}

// maxEdits is the maximum number of edits that are recorded per event. The server looks up each edited file on disk.
const maxEdits = 256

// noteEdits records the edits that the tools have made.
func (e *HookEvent) noteEdits(p *maildir.Project, agent string) {
	for _, path := range e.Paths[:min(len(e.Paths), maxEdits)] {
		if f, ok := p.Code.File(path); ok {
			p.Edits.Edited(agent, f)
		}
	}
}

// nobody returns the response to an event in a session that has no agent. When the session starts, the response
// explains why the session's AGENT_NAME was refused.
func (e *HookEvent) nobody(err error) (a HookAnswer, _ error) {
	unusable := errors.Is(err, maildir.ErrInvalid) || errors.Is(err, maildir.ErrConflict)
	if e.Kind != HookStart || e.Agent == "" || !unusable {
		return a, err
	}
	a.Tell = "You cannot use mail in this session, because its AGENT_NAME is not usable. " + err.Error()
	return a, nil
}

// tell returns the text for the model in response to this event. The text introduces the agent once per session. It
// also reports new mail, except when a session starts. For HookTool and HookPrompt, it also reports which other agents
// have edited the same files. For HookStop, the text is empty if there is no new mail, because the introduction alone
// must not prolong a turn.
func (e *HookEvent) tell(ctx context.Context, p *maildir.Project, k maildir.SessionKey, agent string) (string, error) {
	news := ""
	if e.Kind != HookStart {
		told, err := p.Sessions.Tell(ctx, k)
		if err != nil {
			return "", err
		}
		news = told.String()
	}
	if e.Kind == HookTool || e.Kind == HookPrompt {
		met, err := meetings(ctx, p, agent)
		if err != nil {
			return "", err
		}
		news = strings.Trim(news+"\n"+met, "\n")
	}
	if e.Kind == HookStop {
		if news == "" {
			return "", nil
		}
		p.Sessions.SetWorking(k, true)
	}
	if !p.Sessions.Introduce(k) {
		return news, nil
	}
	return strings.TrimSuffix(introduction(agent, p.HumanKey())+"\n"+news, "\n"), nil
}

// maxPath is the maximum length in bytes of a path in a notice, and of HookEvent.Asks.
const maxPath = 200

// meetings returns the text that tells an agent's model which other agents have edited the same files, and which agents
// have claimed these files. If the claims cannot be listed, it returns an error.
func meetings(ctx context.Context, p *maildir.Project, agent string) (string, error) {
	var lines []string
	for _, m := range p.Edits.Meetings(agent) {
		claims, err := p.Claims.Covering(ctx, []string{m.Path})
		if err != nil {
			return "", fmt.Errorf("cannot find the claims on an edited file: %w", err)
		}
		when := "just now"
		if minutes := int(m.Ago.Minutes()); minutes == 1 {
			when = "1 minute ago"
		} else if minutes > 1 {
			when = fmt.Sprintf("%d minutes ago", minutes)
		}
		advice := "consider claiming it"
		if len(claims) > 0 {
			advice = claims[0].Claim.Agent + " has claimed it"
			if claims[0].Claim.Agent == agent {
				advice = "you have claimed it"
			}
		}
		lines = append(lines, fmt.Sprintf("%s edited %s %s; %s.", m.Other, format.Printable(format.Cut(m.Path, maxPath)), when, advice))
	}
	return strings.Join(lines, "\n"), nil
}

// introduction returns the line that tells a model which agent it is.
func introduction(agent, project string) string {
	return fmt.Sprintf("You are %s (mail: agent_name %s, project_key %s).", agent, agent, project)
}
