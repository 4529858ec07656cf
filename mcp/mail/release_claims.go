package mail

import (
	"context"

	"mailtree/maildir/claim"
	"mailtree/mcp/tool"
)

// Released is the result of release_claims.
type Released struct {
	Released []claimShape `json:"released"`
	Count    int          `json:"count"` // number of released claims, including those that the response omits
	NotHeld  []string     `json:"not_held,omitempty"`
	Held     []string     `json:"held,omitempty"`
	Note     string       `json:"note,omitempty"`
}

type releaseRequest struct {
	Project string   `json:"project_key" jsonschema:"path of the top of the working tree" example:"/abs/path/backend"`
	Agent   string   `json:"agent_name" jsonschema:"your agent name" example:"BlueLake"`
	Paths   []string `json:"paths,omitempty" jsonschema:"exactly as claimed; omit to release all" example:"app/api/*.py"`
}

func (t *Toolset) releaseClaims() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "release_claims",
		Hints: tool.Marks(),
		About: "Use when you are done with files: releases (unlocks) your claims on these paths, or all of yours.",
		Out:   Released{},
	}, func(ctx context.Context, r *releaseRequest) (any, error) {
		p, note, err := t.project(ctx, r.Project)
		if err != nil {
			return nil, err
		}
		if r.Agent, err = p.Agents.Named(ctx, r.Agent); err != nil {
			return nil, err
		}
		res, err := tool.Box(ctx, p, r.Agent).ReleaseFrom(ctx, callerFrom(ctx, p, r.Project), r.Paths)
		if err != nil {
			return nil, err
		}
		return t.fitReleased(ctx, Released{
			Released: shapeClaims(res.Released),
			Count:    len(res.Released),
			NotHeld:  res.NotHeld,
			Held:     patterns(res.Held),
			Note:     note,
		}), nil
	})
}

func patterns(claims []claim.Row) []string {
	var all []string
	for _, c := range claims {
		all = append(all, c.Pattern)
	}
	return all
}

// fitReleased removes the paths that do not fit in the response. It cannot refuse the call instead, because the claims
// have already been released.
func (t *Toolset) fitReleased(ctx context.Context, out Released) Released {
	rest := Released{Count: out.Count, Note: out.Note}
	n, _ := tool.Fit(ctx, t.budget, tool.InTool, rest, out.Released)
	rest.Released = out.Released[:n]
	n, _ = tool.Fit(ctx, t.budget, tool.InTool, rest, out.NotHeld)
	rest.NotHeld = out.NotHeld[:n]
	n, _ = tool.Fit(ctx, t.budget, tool.InTool, rest, out.Held)
	rest.Held = out.Held[:n]
	return rest
}
