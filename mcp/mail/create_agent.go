package mail

import (
	"context"

	"mailtree/maildir"
)

type createdShape struct {
	profileShape
	Note string `json:"note,omitempty"`
}

func createAgent() tool {
	return tool{
		name: "create_agent", title: "Create agent", hints: adds(),
		about: "Register a new agent identity with a memorable name in a project, which is made when it is new; returns the profile.",
		in: []prop{
			projectKey(),
			need("program", str("the program you run in", "claude-code")),
			need("model", str("the model you are", "opus-4.1")),
			need("task_description", str("what you are working on", "Auth refactor")),
			may("name_hint", str("name you would like; used if free", "GreenCastle")),
		},
		out: append(profileProps(), may("note", text("why the hint was not used"))),
		run: func(ctx context.Context, t *Toolset, a *args) (any, error) {
			key := a.text("project_key")
			r := maildir.Registration{Program: a.text("program"), Model: a.text("model"), Task: a.text("task_description"), NameHint: a.text("name_hint")}
			if a.err != nil {
				return nil, a.err
			}
			p, err := t.cfg.Store.EnsureProject(ctx, key)
			if err != nil {
				return nil, err
			}
			made, err := p.Register(ctx, r)
			if err != nil {
				return nil, err
			}
			return createdShape{shapeProfile(p, &made.AgentRow), made.Note}, nil
		},
	}
}
