package mail

import (
	"context"
	"time"

	"mailtree/maildir"
)

type conflictShape struct {
	Path      string `json:"path"`
	Holder    string `json:"holder"`
	HeldPath  string `json:"held_path"`
	Exclusive bool   `json:"exclusive"`
	Reason    string `json:"reason"`
	Expires   string `json:"expires_ts"`
}

type claimedShape struct {
	Granted   []claimShape    `json:"granted"`
	Conflicts []conflictShape `json:"conflicts"`
	Expires   string          `json:"expires_ts,omitempty"`
}

func claimPaths() tool {
	return tool{
		name: "claim_paths", title: "Claim paths", hints: adds(),
		about: "Claim files or globs before editing them, as an advisory lease; any conflict with another agent's claim grants none and is returned.",
		in: []prop{
			projectKey(), agentName(),
			may("paths", list("required: paths or globs relative to the repository's root", "app/api/*.py")),
			may("paths_list", list("another name for paths", "app/api/*.py")),
			may("ttl_seconds", num("how long the claim holds", 60, 30*24*3600, 3600)),
			may("exclusive", flag("false: others may hold shared claims on the same files", true)),
			may("reason", str("shown to whoever asks for the same files", "migrations")),
			may("dry_run", flag("only tell what would happen", false)),
		},
		out: []prop{
			need("granted", claimsNode("all that was asked for, or none")),
			need("conflicts", arrayOf("", object("", need("path", text("asked for")), need("holder", text("agent")), need("held_path", text("what the holder claimed")),
				need("exclusive", truth("")), need("reason", text("")), need("expires_ts", text(""))))),
			may("expires_ts", text("when the granted claims end")),
		},
		run: func(ctx context.Context, t *Toolset, a *args) (any, error) {
			r := maildir.ClaimRequest{
				Agent: a.text("agent_name"), Patterns: append(a.names("paths"), a.names("paths_list")...), Shared: !a.flag("exclusive"),
				TTL: time.Duration(a.count("ttl_seconds", 1, 1<<32)) * time.Second, Reason: a.text("reason"), DryRun: a.flag("dry_run"),
			}
			p, err := t.project(ctx, a)
			if err != nil {
				return nil, err
			}
			res, err := p.Claim(ctx, r)
			if err != nil {
				return nil, err
			}
			return shapeClaimed(res), nil
		},
	}
}

func shapeClaimed(r *maildir.ClaimResult) claimedShape {
	out := claimedShape{shapeClaims(r.Granted), make([]conflictShape, len(r.Conflicts)), stamp(r.Expires)}
	for i, c := range r.Conflicts {
		out.Conflicts[i] = conflictShape{c.Pattern, c.Held.Agent, c.Held.Pattern, c.Held.Exclusive, c.Held.Reason, stamp(c.Held.Expires)}
	}
	return out
}
