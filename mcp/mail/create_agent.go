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

type agentRequest struct {
	Project string `json:"project_key" jsonschema:"absolute path of the top of the work tree; the same in all tools" example:"/abs/path/backend"`
	maildir.Registration
}

func (t *Toolset) createAgent() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "create_agent",
		Hints: tool.Adds(),
		About: "Register an agent identity with a memorable name in a project, which is made when it is new.",
		Out:   createdShape{},
	}, func(ctx context.Context, r *agentRequest) (any, error) {
		p, err := t.store.EnsureProject(ctx, r.Project)
		if err != nil {
			return nil, err
		}
		made, err := p.Register(ctx, r.Registration)
		if err != nil {
			return nil, err
		}
		return createdShape{shapeProfile(p, &made.AgentRow), notes(say(made.Note), say(p.KeyNote(r.Project)), p.MakingNote(r.Project))}, nil
	})
}
