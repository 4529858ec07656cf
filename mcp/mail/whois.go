package mail

import (
	"context"
	"strings"

	"mailtree/mcp/tool"
)

type whoisShape struct {
	profileShape
	Unread int          `json:"unread"`
	Total  int          `json:"total"`
	Claims []claimShape `json:"claims"`
	More   int          `json:"more_claims,omitempty"`
	Commit []string     `json:"commits" jsonschema:"in Git: hash, time, subject"`
	Mail   []heldShape  `json:"mail,omitempty"`
	Note   string       `json:"note,omitempty"`
}

// heldShape says how far an agent is with a message in its inbox.
type heldShape struct {
	ID      string       `json:"message_id"`
	From    string       `json:"from"`
	Receipt receiptShape `json:"receipt"`
}

func (t *Toolset) whois() tool.Tool {
	return tool.Tool{
		Name:  "whois",
		Hints: tool.Reads(),
		About: "Look up one agent: profile, last activity, unread count, claims, commits, how far it is with its mail.",
		In:    []tool.Prop{projectKey(), tool.Need("agent_name", tool.Str("", "BlueLake"))},
		Out:   whoisShape{},
		Run: func(ctx context.Context, a *tool.Args) (any, error) {
			agent := a.Text("agent_name")
			p, note, err := t.project(ctx, a)
			if err != nil {
				return nil, err
			}
			w, err := p.Whois(ctx, agent)
			if err != nil {
				return nil, err
			}
			out := whoisShape{
				profileShape: shapeProfile(p, &w.AgentRow),
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
			unwoken, err := p.AgentUnwoken(ctx, agent)
			if err != nil {
				return nil, err
			}
			if unwoken != nil {
				out.Note = strings.TrimSpace(note + " " + unwoken.String())
			}
			for i := range w.Mail {
				d := &w.Mail[i]
				out.Mail = append(out.Mail, heldShape{d.ID, d.From, shapeReceipt(p.ReceiptOf(d))})
			}
			rest := out
			rest.Claims = nil
			n, err := tool.Fit(ctx, t.budget, tool.InTool, rest, out.Claims)
			out.Claims, out.More = out.Claims[:n], len(w.Claims)-n
			return out, err
		},
	}
}
