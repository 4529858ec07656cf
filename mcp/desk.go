package mcp

import (
	"context"

	"mailtree/maildir"
)

// DeskAsk is the body of POST /mailtree/desk: what a person at a command line means in the project.
type DeskAsk struct {
	Person string   `json:"person,omitempty"` // whose command it is; "": nobody's
	IDs    []string `json:"ids,omitempty"`    // of messages, shortened, or of threads
}

// Desk is what there is of that. The person's agent is made where it is missing.
type Desk struct {
	Slug     string   `json:"slug"`
	HumanKey string   `json:"human_key"`
	Person   string   `json:"person,omitempty"`
	Made     bool     `json:"made,omitempty"` // just now
	IDs      []string `json:"ids,omitempty"`  // in full
}

func (s *Server) desk(ctx context.Context, p *maildir.Project, ask *DeskAsk) (d Desk, err error) {
	d.Slug, d.HumanKey = p.Slug, p.HumanKey()
	if ask.Person != "" {
		if d.Person, d.Made, err = p.Person(ctx, ask.Person); err != nil {
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
