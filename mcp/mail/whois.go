package mail

import "context"

type whoisShape struct {
	profileShape
	Unread int          `json:"unread"`
	Total  int          `json:"total"`
	Claims []claimShape `json:"claims"`
}

func whois() tool {
	return tool{
		name: "whois", title: "Who is", hints: reads(),
		about: "Look up one agent: profile, when it was last active, unread count and the file claims it holds.",
		in:    []prop{projectKey(), need("agent_name", str("the agent to look up", "BlueLake"))},
		out: append(profileProps(), need("unread", whole("unread messages in its inbox")), need("total", whole("messages in its inbox")),
			need("claims", claimsNode("live file claims"))),
		run: func(ctx context.Context, t *Toolset, a *args) (any, error) {
			agent := a.text("agent_name")
			p, err := t.project(ctx, a)
			if err != nil {
				return nil, err
			}
			w, err := p.Whois(ctx, agent)
			if err != nil {
				return nil, err
			}
			return whoisShape{shapeProfile(p, &w.AgentRow), w.Unread, w.Total, shapeClaims(w.Claims)}, nil
		},
	}
}
