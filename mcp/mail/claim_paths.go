package mail

import (
	"context"
	"math"
	"time"

	"mailtree/maildir/claim"
	"mailtree/mcp/tool"
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
	More      int             `json:"more,omitempty"`
}

func (t *Toolset) claimPaths() tool.Tool {
	return tool.Tool{
		Name: "claim_paths", Title: "Claim paths", Hints: tool.Adds(),
		About: "Claim files or globs before editing them, as an advisory lease; any conflict with another agent's claim grants none and is returned.",
		In: []tool.Prop{
			projectKey(), agentName(),
			tool.May("paths", tool.List("required: paths or globs relative to the repository's root", "app/api/*.py")),
			tool.May("paths_list", tool.List("another name for paths", "app/api/*.py")),
			tool.May("ttl_seconds", tool.Num("how long the claim holds", 60, 30*24*3600, 3600)),
			tool.May("exclusive", tool.Flag("false: others may hold shared claims on the same files", true)),
			tool.May("reason", tool.Str("shown to whoever asks for the same files", "migrations")),
			tool.May("dry_run", tool.Flag("only tell what would happen", false)),
		},
		Out: []tool.Prop{
			tool.Need("granted", claimsNode("all that was asked for, or none")),
			tool.Need("conflicts", tool.ArrayOf("", tool.Object("", tool.Need("path", tool.Text("asked for")), tool.Need("holder", tool.Text("agent")), tool.Need("held_path", tool.Text("what the holder claimed")),
				tool.Need("exclusive", tool.Truth("")), tool.Need("reason", tool.Text("")), tool.Need("expires_ts", tool.Text(""))))),
			tool.May("expires_ts", tool.Text("when the granted claims end")), tool.May("more", tool.Whole("granted ones or conflicts that are not listed")),
		},
		Run: func(ctx context.Context, a *tool.Args) (any, error) {
			r := claim.Request{
				Agent: a.Text("agent_name"), Patterns: append(a.Names("paths"), a.Names("paths_list")...), Shared: !a.Flag("exclusive"),
				TTL: time.Duration(a.Count("ttl_seconds", 1, math.MaxInt32)) * time.Second, Reason: a.Text("reason"), DryRun: a.Flag("dry_run"),
			}
			p, err := t.project(ctx, a)
			if err != nil {
				return nil, err
			}
			res, err := p.Claim(ctx, r)
			if err != nil {
				return nil, err
			}
			return t.fitClaimed(ctx, shapeClaimed(res)), nil
		},
	}
}

func shapeClaimed(r *claim.Result) claimedShape {
	out := claimedShape{shapeClaims(r.Granted), make([]conflictShape, len(r.Conflicts)), tool.Stamp(r.Expires), r.More}
	for i, c := range r.Conflicts {
		out.Conflicts[i] = conflictShape{c.Pattern, c.Held.Agent, c.Held.Pattern, c.Held.Exclusive, c.Held.Reason, tool.Stamp(c.Held.Expires)}
	}
	return out
}

// fitClaimed leaves out what does not fit into an answer, which must come: it is done. One of the lists is empty.
func (t *Toolset) fitClaimed(ctx context.Context, out claimedShape) claimedShape {
	rest := claimedShape{Expires: out.Expires, More: math.MaxInt}
	granted, _ := tool.Fit(ctx, t.budget, tool.InTool, rest, out.Granted)
	conflicts, _ := tool.Fit(ctx, t.budget, tool.InTool, rest, out.Conflicts)
	out.More += len(out.Granted) - granted + len(out.Conflicts) - conflicts
	out.Granted, out.Conflicts = out.Granted[:granted], out.Conflicts[:conflicts]
	return out
}
