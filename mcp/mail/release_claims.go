package mail

import "context"

type releasedShape struct {
	Released []claimShape `json:"released"`
	Count    int          `json:"count"`
}

func releaseClaims() tool {
	return tool{
		name: "release_claims", title: "Release claims", hints: removes(),
		about: "Give back your file claims: those on the given paths, or all of them.",
		in: []prop{
			projectKey(), agentName(),
			may("paths", list("exactly as they were claimed; leave out to release all", "app/api/*.py")),
		},
		out: []prop{need("released", claimsNode("")), need("count", whole(""))},
		run: func(ctx context.Context, t *Toolset, a *args) (any, error) {
			agent, paths := a.text("agent_name"), a.names("paths")
			if a.has("paths") && len(paths) == 0 {
				a.fail(invalid("paths is empty: name the paths to release, or leave it out to release all your claims"))
			}
			p, err := t.project(ctx, a)
			if err != nil {
				return nil, err
			}
			rows, err := p.Release(ctx, agent, paths)
			if err != nil {
				return nil, err
			}
			return releasedShape{shapeClaims(rows), len(rows)}, nil
		},
	}
}
