package mail

import (
	"context"

	"mailtree/mcp/tool"
)

type releasedShape struct {
	Released []claimShape `json:"released" jsonschema:"the first of them"`
	Count    int          `json:"count" jsonschema:"of all of them"`
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
			p, err := t.project(ctx, a)
			if err != nil {
				return nil, err
			}
			rows, err := p.Release(ctx, agent, paths)
			if err != nil {
				return nil, err
			}
			out := releasedShape{shapeClaims(rows), len(rows)}
			n, _ := tool.Fit(ctx, t.budget, tool.InTool, releasedShape{Count: out.Count}, out.Released) // they are released in any case
			out.Released = out.Released[:n]
			return out, nil
		},
	}
}
