package mail

import (
	"cmp"
	"context"
	"strings"

	"mailtree/maildir"
	"mailtree/mcp/tool"
)

// maxNameBytes is the length of the longest agent name.
const maxNameBytes = 64

type listedShape struct {
	profileShape
	Unread int `json:"unread"`
}

type directoryShape struct {
	Project string        `json:"project"`
	Agents  []listedShape `json:"agents"`
	Next    string        `json:"next_cursor,omitempty"`
}

func (t *Toolset) listAgents() tool.Tool {
	return tool.Tool{
		Name:  "list_agents",
		Hints: tool.Reads(),
		About: "List agents in other sessions and programs, and people: the directory of whom in a project you can mail.",
		In: []tool.Prop{
			projectKey(), tool.May("active_only", tool.TrueFlag("within seven days")),
			tool.May("cursor", tool.Str("", "BlueLake")),
		},
		Out: directoryShape{},
		Run: func(ctx context.Context, a *tool.Args) (any, error) {
			q := maildir.AgentsQuery{Active: a.Flag("active_only"), After: a.Text("cursor")}
			p, err := t.project(ctx, a)
			if err != nil {
				return nil, err
			}
			out := directoryShape{p.Slug(), []listedShape{}, ""}
			list := t.budget.Listing(ctx, tool.InTool, directoryShape{Project: p.Slug(), Next: strings.Repeat("x", maxNameBytes)})
			q.Take = func(a *maildir.AgentRow) bool {
				s := listedShape{shapeProfile(p, a), a.Unread}
				fits := list.Add(s)
				if fits {
					out.Agents = append(out.Agents, s)
				}
				return fits
			}
			end, err := p.EachAgent(ctx, q)
			if err = cmp.Or(err, list.Err()); err != nil {
				return nil, err
			}
			if n := len(out.Agents); !end && n > 0 {
				out.Next = out.Agents[n-1].Name
			}
			return out, nil
		},
	}
}
