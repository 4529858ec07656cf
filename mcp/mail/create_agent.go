package mail

import (
	"context"

	"mailtree/maildir"
	"mailtree/mcp/tool"
)

type createdShape struct {
	profileShape
	Note string `json:"note,omitempty"`
}

func (t *Toolset) createAgent() tool.Tool {
	return tool.Tool{
		Name:  "create_agent",
		Hints: tool.Adds(),
		About: "Register an agent identity with a memorable name in a project, which is made when it is new.",
		In: []tool.Prop{
			tool.Need("project_key", tool.Str("absolute path of the top of the work tree; the same in all tools", "/abs/path/backend")),
			tool.Need("program", tool.Str("the program you run in", "claude-code")),
			tool.Need("model", tool.Str("the model you are", "opus-4.1")),
			tool.Need("task_description", tool.Str("what you are working on", "Auth refactor")),
			tool.May("name_hint", tool.Str("used if free", "GreenCastle")),
		},
		Out: createdShape{},
		Run: func(ctx context.Context, a *tool.Args) (any, error) {
			key := a.Text("project_key")
			r := maildir.Registration{
				Program:  a.Text("program"),
				Model:    a.Text("model"),
				Task:     a.Text("task_description"),
				NameHint: a.Text("name_hint"),
			}
			if a.Err() != nil {
				return nil, a.Err()
			}
			p, err := t.store.EnsureProject(ctx, key)
			if err != nil {
				return nil, err
			}
			made, err := p.Register(ctx, r)
			if err != nil {
				return nil, err
			}
			return createdShape{shapeProfile(p, &made.AgentRow), notes(say(made.Note), say(p.KeyNote(key)), p.MakingNote(key))}, nil
		},
	}
}
