package mcp

import (
	"context"

	"mailtree/maildir"
	"mailtree/mcp/tool"
)

// SyncAsk is the body of POST /mailtree/sync.
type SyncAsk struct {
	Do string `json:"do"` // on, off, now or status
}

// sync turns a project's sync with other machines on or off, or runs one sync round. It returns the state of the sync.
func (s *Server) sync(ctx context.Context, p *maildir.Project, ask *SyncAsk) (maildir.SyncState, error) {
	switch ask.Do {
	case "status":
	case "now":
		return p.Sync.Now(ctx)
	case "on", "off":
		if err := p.Sync.Set(ask.Do == "on"); err != nil {
			return maildir.SyncState{}, err
		}
		if ask.Do == "on" {
			state, _ := p.Sync.Now(ctx) // the returned state reports the problem; sync stays on
			return state, nil
		}
	default:
		return maildir.SyncState{}, tool.Invalid("sync must be on, off, now or status")
	}
	return p.Sync.State(), nil
}

// JoinAsk is the body of POST /mailtree/join. It contains the URL of the repository through which other machines share
// their mail, and the local path of the code base.
type JoinAsk struct {
	URL string `json:"url"`
	Key string `json:"key"`
}

func (s *Server) join(ctx context.Context, _ *maildir.Project, ask *JoinAsk) (made MadeProject, err error) {
	p, err := s.cfg.Store.Join(ctx, ask.URL, ask.Key)
	if err != nil {
		return made, err
	}
	return MadeProject{Slug: p.Slug, HumanKey: p.HumanKey(), Created: true, Note: p.Code.NoteMade(ask.Key)}, nil
}

// RaisedFormat is the response to POST /mailtree/raise-format. It contains the project's old and new format.
type RaisedFormat struct {
	Project string `json:"project"`
	Was     int    `json:"was"`
	Format  int    `json:"format"`
}

// raiseFormat raises a project's format. See peers.Sync.RaiseFormat.
func (s *Server) raiseFormat(ctx context.Context, p *maildir.Project, _ *struct{}) (r RaisedFormat, err error) {
	r.Project = p.Slug
	r.Was, r.Format, err = p.Sync.RaiseFormat(ctx)
	return r, err
}
