package mail

import (
	"context"

	"mailtree/mcp/tool"
)

type listedShape struct {
	profileShape
	Unread int `json:"unread"`
}

type directoryShape struct {
	Project string        `json:"project"`
	Agents  []listedShape `json:"agents"`
}

func (t *Toolset) listAgents() tool.Tool {
	return tool.Tool{
		Name: "list_agents", Title: "List agents", Hints: tool.Reads(),
		About: "List the agents of a project with program, model, task and last activity: the directory of whom you can write to.",
		In:    []tool.Prop{projectKey(), tool.May("active_only", tool.Flag("only those active within seven days", true))},
		Out: []tool.Prop{
			tool.Need("project", tool.Text("slug")),
			tool.Need("agents", tool.ArrayOf("by name", tool.Object("", append(profileProps(), tool.Need("unread", tool.Whole("unread messages in its inbox")))...))),
		},
		Run: func(ctx context.Context, a *tool.Args) (any, error) {
			active := a.Flag("active_only")
			p, err := t.project(ctx, a)
			if err != nil {
				return nil, err
			}
			rows, err := p.Agents(ctx, active)
			if err != nil {
				return nil, err
			}
			out := directoryShape{p.Slug(), make([]listedShape, len(rows))}
			for i := range rows {
				out.Agents[i] = listedShape{shapeProfile(p, &rows[i]), rows[i].Unread}
			}
			return out, nil
		},
	}
}
