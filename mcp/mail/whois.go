package mail

import (
	"context"
	"strings"

	"mailtree/maildir/index"
	"mailtree/mcp/tool"
)

// Whois is the result of whois.
type Whois struct {
	profileShape
	Machine  string       `json:"machine,omitempty"`  // set if the agent is on another machine
	Wakeable string       `json:"wakeable,omitempty"` // why new mail cannot wake the agent; "" if it can
	Unread   int          `json:"unread"`
	Total    int          `json:"total"`
	Claims   []claimShape `json:"claims"`
	More     int          `json:"more_claims,omitempty"`
	Commit   []string     `json:"commits"` // hash, time and subject of the agent's newest Git commits
	Mail     []heldShape  `json:"mail,omitempty"`
	Note     string       `json:"note,omitempty"`
}

// heldShape is the receipt for a message in an agent's inbox.
type heldShape struct {
	ID      string        `json:"message_id"`
	From    string        `json:"from"`
	Receipt index.Receipt `json:"receipt"`
}

type whoisRequest struct {
	Project string `json:"project_key" jsonschema:"path of the top of the working tree" example:"/abs/path/backend"`
	Agent   string `json:"agent_name" jsonschema:"name of the agent to look up" example:"BlueLake"`
}

func (t *Toolset) whois() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "whois",
		Hints: tool.Reads(),
		About: "Use to look up one agent, or to check your own name. Returns profile, activity, unread mail, claims and commits.",
		Out:   Whois{},
	}, func(ctx context.Context, r *whoisRequest) (any, error) {
		p, note, err := t.project(ctx, r.Project)
		if err != nil {
			return nil, err
		}
		w, err := p.Agents.Whois(ctx, r.Agent)
		if err != nil {
			return nil, err
		}
		out := Whois{
			profileShape: shapeProfile(p, &w.AgentRow),
			Machine:      p.MachineOf(&w.AgentRow),
			Wakeable:     p.Sessions.Unwakeable(&w.AgentRow),
			Unread:       w.Unread,
			Total:        w.Total,
			Claims:       shapeClaims(w.Claims),
			More:         len(w.Claims),
			Commit:       []string{},
			Note:         note,
		}
		for _, c := range w.Commits {
			out.Commit = append(out.Commit, c.Hash[:8]+" "+tool.Stamp(c.At)+" "+c.Subject)
		}
		unwoken, err := p.Sessions.AgentUnwoken(ctx, w.Name)
		if err != nil {
			return nil, err
		}
		if unwoken != nil {
			out.Note = strings.TrimSpace(note + " " + unwoken.String())
		}
		for i := range w.Mail {
			d := &w.Mail[i]
			out.Mail = append(out.Mail, heldShape{d.ID, d.From, p.ReceiptOf(d)})
		}
		rest := out
		rest.Claims = nil
		n, err := tool.Fit(ctx, t.budget, tool.InTool, rest, out.Claims)
		out.Claims, out.More = out.Claims[:n], len(w.Claims)-n
		return out, err
	})
}
