package mail

import (
	"context"

	"mailtree/maildir/claim"
	"mailtree/mcp/tool"
)

type releasedShape struct {
	Released []claimShape `json:"released"`
	Count    int          `json:"count" jsonschema:"of all of them"`
	NotHeld  []string     `json:"not_held,omitempty"`
	Held     []string     `json:"held,omitempty"`
	Note     string       `json:"note,omitempty"`
}

func (t *Toolset) releaseClaims() tool.Tool {
	return tool.Tool{
		Name:  "release_claims",
		Hints: tool.Removes(),
		About: "Unlock files: give back your claims on the given paths, or all of them.",
		In: []tool.Prop{
			projectKey(), agentName(),
			tool.May("paths", tool.List("as claimed; none: all", "app/api/*.py")),
		},
		Out: releasedShape{},
		Run: func(ctx context.Context, a *tool.Args) (any, error) {
			agent, paths := a.Text("agent_name"), a.Names("paths")
			p, note, err := t.project(ctx, a)
			if err != nil {
				return nil, err
			}
			res, err := p.ReleaseFrom(ctx, agent, p.KeyFolder(a.Text("project_key")), paths)
			if err != nil {
				return nil, err
			}
			return t.fitReleased(ctx, releasedShape{
				Released: shapeClaims(res.Released),
				Count:    len(res.Released),
				NotHeld:  res.NotHeld,
				Held:     patterns(res.Held),
				Note:     note,
			}), nil
		},
	}
}

func patterns(claims []claim.Row) []string {
	var all []string
	for _, c := range claims {
		all = append(all, c.Pattern)
	}
	return all
}

// fitReleased drops what does not fit into the answer. The claims are released in any case.
func (t *Toolset) fitReleased(ctx context.Context, out releasedShape) releasedShape {
	rest := releasedShape{Count: out.Count, Note: out.Note}
	n, _ := tool.Fit(ctx, t.budget, tool.InTool, rest, out.Released)
	rest.Released = out.Released[:n]
	n, _ = tool.Fit(ctx, t.budget, tool.InTool, rest, out.NotHeld)
	rest.NotHeld = out.NotHeld[:n]
	n, _ = tool.Fit(ctx, t.budget, tool.InTool, rest, out.Held)
	rest.Held = out.Held[:n]
	return rest
}
