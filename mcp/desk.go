package mcp

import (
	"context"

	"mailtree/maildir"
)

// DeskAsk is the body of POST /mailtree/desk. It contains the user and the ids from a command line.
type DeskAsk struct {
	Person string   `json:"person,omitempty"` // the user who runs the command; empty if there is none
	Agent  string   `json:"agent,omitempty"`  // name or address of another agent to act as, instead of the user
	IDs    []string `json:"ids,omitempty"`    // shortened message ids, or thread ids
}

// Desk is the response to POST /mailtree/desk. It describes the project and the user's agent. If this agent does not
// exist, the call creates it. If the request specifies another agent, Person is the name of that agent, which need not
// exist.
type Desk struct {
	Slug     string   `json:"slug"`
	HumanKey string   `json:"human_key"`
	Person   string   `json:"person,omitempty"`
	IsPerson bool     `json:"is_person,omitempty"` // whether the agent named DeskAsk.Person belongs to a user
	Made     bool     `json:"made,omitempty"`      // whether this call created the agent
	IDs      []string `json:"ids,omitempty"`       // DeskAsk.IDs, with each shortened id replaced by the full id
}

func (s *Server) desk(ctx context.Context, p *maildir.Project, ask *DeskAsk) (d Desk, err error) {
	d.Slug, d.HumanKey = p.Slug, p.HumanKey()
	if ask.Person != "" {
		if d.Person, d.Made, err = p.Agents.Person(ctx, ask.Person); err != nil {
			return d, err
		}
		if d.IsPerson, err = p.Agents.IsPerson(ctx, d.Person); err != nil {
			return d, err
		}
	}
	if ask.Agent != "" {
		if d.Person, err = p.Agents.Named(ctx, s.cfg.Store.Domains().Named(ask.Agent)); err != nil {
			return d, err
		}
	}
	for _, short := range ask.IDs {
		id, err := p.FullID(ctx, short)
		if err != nil {
			return d, err
		}
		d.IDs = append(d.IDs, id)
	}
	return d, nil
}
