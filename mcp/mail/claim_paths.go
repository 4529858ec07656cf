package mail

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"mailtree/maildir/claim"
	"mailtree/mcp/tool"
)

type conflictShape struct {
	Path      string `json:"path" jsonschema:"asked for"`
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
	More      int             `json:"more,omitempty" jsonschema:"not listed"`
	Note      string          `json:"note,omitempty"`
}

func (t *Toolset) claimPaths() tool.Tool {
	return tool.Tool{
		Name:  "claim_paths",
		Hints: tool.Adds(),
		About: "Lock or reserve files or globs before you edit them, as an advisory lease; a conflict with another's claim" +
			" (resource://claims/{project}) grants none.",
		In: []tool.Prop{
			projectKey(), agentName(),
			tool.Need("paths", tool.List("at least one file or glob, from the top of the work tree", "app/api/*.py")).Or("paths_list"),
			tool.May("ttl_seconds", tool.Num("", 60, 30*24*3600, 3600)),
			tool.May("exclusive", tool.TrueFlag("false: others may share the files")),
			tool.May("reason", tool.Str("shown to others", "migrations")),
			tool.May("dry_run", tool.Flag("")),
		},
		Out: claimedShape{},
		Run: func(ctx context.Context, a *tool.Args) (any, error) {
			r := claim.Request{
				Agent:    a.Text("agent_name"),
				Patterns: a.Names("paths"),
				Shared:   !a.Flag("exclusive"),
				TTL:      time.Duration(a.Within("ttl_seconds")) * time.Second,
				Reason:   a.Text("reason"),
				DryRun:   a.Flag("dry_run"),
			}
			p, note, err := t.project(ctx, a)
			if err != nil {
				return nil, err
			}
			r.Folder = p.KeyFolder(a.Text("project_key"))
			res, err := p.Claim(ctx, r)
			if err != nil {
				return nil, err
			}
			out := shapeClaimed(res)
			out.Note = notes(note, movedNote(res.Moved))
			return t.fitClaimed(ctx, out), nil
		},
	}
}

// movedNote says where paths were found, of maxMoved of them.
func movedNote(moved []claim.Moved) string {
	const maxMoved = 10
	var b strings.Builder
	for i, m := range moved {
		if i == maxMoved {
			fmt.Fprintf(&b, " So do %d more.", len(moved)-i)
			break
		}
		fmt.Fprintf(&b, " %s means %s.", m.Text, m.Path)
	}
	return strings.TrimSpace(b.String())
}

func shapeClaimed(r *claim.Result) claimedShape {
	out := claimedShape{
		Granted:   shapeClaims(r.Granted),
		Conflicts: make([]conflictShape, len(r.Conflicts)),
		Expires:   tool.Stamp(r.Expires),
		More:      r.More,
	}
	for i := range out.Granted {
		if n, ok := r.Matches[out.Granted[i].Path]; ok {
			out.Granted[i].Matches = &n
		}
	}
	for i, c := range r.Conflicts {
		out.Conflicts[i] = conflictShape{
			Path:      c.Pattern,
			Holder:    c.Held.Agent,
			HeldPath:  c.Held.Pattern,
			Exclusive: c.Held.Exclusive,
			Reason:    c.Held.Reason,
			Expires:   tool.Stamp(c.Held.Expires),
		}
	}
	return out
}

// fitClaimed drops what does not fit into the answer. The answer cannot be refused any more: the
// claims are made. One of the lists is empty.
func (t *Toolset) fitClaimed(ctx context.Context, out claimedShape) claimedShape {
	rest := claimedShape{Expires: out.Expires, More: math.MaxInt, Note: out.Note}
	granted, _ := tool.Fit(ctx, t.budget, tool.InTool, rest, out.Granted)
	conflicts, _ := tool.Fit(ctx, t.budget, tool.InTool, rest, out.Conflicts)
	out.More += len(out.Granted) - granted + len(out.Conflicts) - conflicts
	out.Granted, out.Conflicts = out.Granted[:granted], out.Conflicts[:conflicts]
	return out
}
