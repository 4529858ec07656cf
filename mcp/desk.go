package mcp

import (
	"context"

	"mailtree/maildir"
)

// DeskAsk is the body of POST /mailtree/desk: the person and the ids that a command line names.
type DeskAsk struct {
	Person string   `json:"person,omitempty"` // the person who runs the command; "": no person
	Agent  string   `json:"agent,omitempty"`  // instead of the person, another agent by name or address
	IDs    []string `json:"ids,omitempty"`    // shortened ids of messages, or ids of threads
}

// Desk is the project with the full ids and the person's agent, which is created if it is missing. If another
// agent is asked for, Person is its name, and the agent need not exist.
type Desk struct {
	Slug     string   `json:"slug"`
	HumanKey string   `json:"human_key"`
	Person   string   `json:"person,omitempty"`
	Made     bool     `json:"made,omitempty"` // the agent was created by this call
	IDs      []string `json:"ids,omitempty"`  // in full
}

func (s *Server) desk(ctx context.Context, p *maildir.Project, ask *DeskAsk) (d Desk, err error) {
	d.Slug, d.HumanKey = p.Slug, p.HumanKey()
	if ask.Person != "" {
		if d.Person, d.Made, err = p.Agents.Person(ctx, ask.Person); err != nil {
			return d, err
		}
	}
	if ask.Agent != "" {
		d.Person = s.cfg.Store.Domains().Named(ask.Agent)
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
