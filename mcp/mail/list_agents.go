package mail

import "context"

type listedShape struct {
	profileShape
	Unread int `json:"unread"`
}

type directoryShape struct {
	Project string        `json:"project"`
	Agents  []listedShape `json:"agents"`
}

func listAgents() tool {
	return tool{
		name: "list_agents", title: "List agents", hints: reads(),
		about: "List the agents of a project with program, model, task and last activity: the directory of whom you can write to.",
		in:    []prop{projectKey(), may("active_only", flag("only those active within seven days", true))},
		out: []prop{
			need("project", text("slug")),
			need("agents", arrayOf("by name", object("", append(profileProps(), need("unread", whole("unread messages in its inbox")))...))),
		},
		run: func(ctx context.Context, t *Toolset, a *args) (any, error) {
			active := a.flag("active_only")
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
