package mail

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/mcp/tool"
)

type conflictShape struct {
	Path      string `json:"path"` // the path as given in the request
	Holder    string `json:"holder"`
	HeldPath  string `json:"held_path"`
	Exclusive bool   `json:"exclusive"`
	Reason    string `json:"reason"`
	Expires   string `json:"expires_ts"`
}

// Claimed is the result of claim_paths.
type Claimed struct {
	Granted   []claimShape    `json:"granted"`
	Conflicts []conflictShape `json:"conflicts"`
	Expires   string          `json:"expires_ts,omitempty"`
	More      int             `json:"more,omitempty"` // number of claims or conflicts that the response omits
	Note      string          `json:"note,omitempty"`
}

type claimRequest struct {
	Project   string   `json:"project_key" jsonschema:"path of the top of the working tree" example:"/abs/path/backend"`
	Agent     string   `json:"agent_name" jsonschema:"your agent name" example:"BlueLake"`
	Paths     []string `json:"paths" jsonschema:"files or globs, relative to the top of the working tree" example:"app/api/*.py" alias:"paths_list"`
	TTL       int      `json:"ttl_seconds,omitempty" jsonschema:"how long the claims last" min:"60" max:"2592000" default:"3600"`
	Exclusive bool     `json:"exclusive,omitempty" jsonschema:"false lets other agents share the files" default:"true"`
	Reason    string   `json:"reason,omitempty" jsonschema:"shown to other agents" example:"migrations"`
	DryRun    bool     `json:"dry_run,omitempty" jsonschema:"only report conflicts"`
}

func (t *Toolset) claimPaths() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "claim_paths",
		Hints: tool.Adds(),
		About: "Use before you edit files that others may edit: locks or reserves files or globs (advisory lease). If any path " +
			"conflicts with another agent's claim, none is granted. All claims: resource://claims/{project}.",
		Out: Claimed{},
	}, func(ctx context.Context, r *claimRequest) (any, error) {
		p, note, err := t.project(ctx, r.Project)
		if err != nil {
			return nil, err
		}
		if r.Agent, err = p.Agents.Named(ctx, r.Agent); err != nil {
			return nil, err
		}
		res, err := tool.Box(ctx, p, r.Agent).Claim(ctx, claim.Request{
			Patterns: r.Paths,
			From:     callerFrom(ctx, p, r.Project),
			Shared:   !r.Exclusive,
			TTL:      time.Duration(r.TTL) * time.Second,
			Reason:   r.Reason,
			DryRun:   r.DryRun,
		})
		if err != nil {
			return nil, err
		}
		out := shapeClaimed(res)
		out.Note = notes(note, movedNote(res.Moved), unmatchedNote(res.Unmatched()), aloneNote(res))
		return t.fitClaimed(ctx, out), nil
	})
}

// callerFrom returns the folders in which the caller is working. The argument key is the caller's key for the project.
func callerFrom(ctx context.Context, p *maildir.Project, key string) claim.From {
	return claim.From{Folder: p.Code.Below(key), WorkDir: tool.CallerOf(ctx).WorkDir(key)}
}

// movedNote returns a note that explains up to maxMoved corrected paths.
func movedNote(moved []claim.Moved) string {
	const maxMoved = 10
	var b strings.Builder
	for i, m := range moved {
		if i == maxMoved {
			fmt.Fprintf(&b, " %d more were normalized.", len(moved)-i)
			break
		}
		fmt.Fprintf(&b, " %s does not exist in the folder passed as project_key, so it was read as %s at the top of the code base.",
			m.Text, m.Path)
	}
	return strings.TrimSpace(b.String())
}

// unmatchedNote returns a note that lists up to maxUnmatched claimed paths that do not match any file.
func unmatchedNote(paths []string) string {
	const maxUnmatched = 10
	if len(paths) == 0 {
		return ""
	}
	named, more := paths[:min(len(paths), maxUnmatched)], ""
	if len(paths) > maxUnmatched {
		more = fmt.Sprintf(" and %d more", len(paths)-maxUnmatched)
	}
	note := strings.Join(named, ", ") + more + ": Git tracks no matching file yet."
	if slices.ContainsFunc(paths, hasBrackets) {
		note += ` To match a literal bracket or brace, put a backslash before it.`
	}
	return note
}

// hasBrackets reports whether a pattern contains brackets or braces that are not escaped with a backslash.
func hasBrackets(pattern string) bool {
	return strings.ContainsAny(strings.NewReplacer(`\[`, "", `\{`, "", `\\`, "").Replace(pattern), "[{")
}

// aloneNote returns a note if other machines do not know about the claims in the response, and otherwise "".
func aloneNote(r *claim.Result) string {
	switch {
	case r.Alone == "":
		return ""
	case len(r.Granted) == 0:
		return "The other machines cannot be reached (" + r.Alone + "). This is the last known state."
	}
	return "The other machines cannot be reached (" + r.Alone + "), so only this machine knows what you claimed. You will be " +
		"notified if another machine's claim conflicts with yours."
}

func shapeClaimed(r *claim.Result) Claimed {
	out := Claimed{
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

// fitClaimed removes the claims or conflicts that do not fit in the response. It cannot refuse the call instead,
// because the claims have already been granted. One of the two lists is always empty.
func (t *Toolset) fitClaimed(ctx context.Context, out Claimed) Claimed {
	rest := Claimed{Note: out.Note}
	granted, _ := tool.Fit(ctx, t.budget, tool.InTool, rest, out.Granted)
	conflicts, _ := tool.Fit(ctx, t.budget, tool.InTool, rest, out.Conflicts)
	out.More += len(out.Granted) - granted + len(out.Conflicts) - conflicts
	out.Granted, out.Conflicts = out.Granted[:granted], out.Conflicts[:conflicts]
	return out
}
