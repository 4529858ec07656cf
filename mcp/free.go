package mcp

import (
	"context"

	"mailtree/maildir"
	"mailtree/maildir/refusal"
	"mailtree/mcp/tool"
)

// FreeAsk is the body of POST /mailtree/free. It names another agent's claim to release.
type FreeAsk struct {
	Person string `json:"person"` // the user who releases the claim
	Holder string `json:"holder"`
	Path   string `json:"path"` // path of the claim
	Reason string `json:"reason,omitempty"`
}

// Freed is the response to POST /mailtree/free.
type Freed struct {
	Holder string `json:"holder"`
	Path   string `json:"path"`
	ID     string `json:"id"` // id of the message that notifies the holder
}

// free releases another agent's claim. Only users may do this. Agents must ask the holder instead.
func (s *Server) free(ctx context.Context, p *maildir.Project, ask *FreeAsk) (f Freed, err error) {
	is, err := p.Agents.IsPerson(ctx, ask.Person)
	if err != nil {
		return f, err
	}
	if !is {
		return f, &maildir.Error{
			What: refusal.Invalid("{=name} is not a user, and only users may release another agent's claim. Send {=other} " +
				"a message instead."),
			Name:  ask.Person,
			Other: ask.Holder,
		}
	}
	if ask.Holder, err = p.Agents.Named(ctx, ask.Holder); err != nil {
		return f, err
	}
	notice, err := tool.Box(ctx, p, ask.Person).Free(ctx, maildir.Freeing{
		Holder:  ask.Holder,
		Pattern: ask.Path,
		WorkDir: tool.CallerOf(ctx).WorkDir(""),
		Reason:  ask.Reason,
	})
	if err != nil {
		return f, err
	}
	if notice == nil {
		return f, &maildir.Error{
			What:  refusal.NotFound("{=other} has no claim on {name}. Run `mailtree claims` to list the claims."),
			Name:  ask.Path,
			Other: ask.Holder,
		}
	}
	return Freed{ask.Holder, ask.Path, notice.ID}, nil
}
