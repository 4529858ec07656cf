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
	Project  string `json:"project_key" jsonschema:"absolute path of the top of the working tree; the same in all tools" example:"/abs/path/backend"`
	Program  string `json:"program" jsonschema:"the program you run in" example:"claude-code"`
	Model    string `json:"model" jsonschema:"your model" example:"opus-4.1"`
	Task     string `json:"task_description" jsonschema:"what you are working on" example:"Auth refactor"`
	NameHint string `json:"name_hint,omitempty" jsonschema:"name you want; used if free" example:"GreenCastle"`
}

func (t *Toolset) createAgent() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "create_agent",
		Hints: tool.Adds(),
		About: "Use once, if you do not know your agent name: registers an agent identity and returns its memorable name. Creates the " +
			"project if it is new.",
		Out: createdShape{},
	}, func(ctx context.Context, r *agentRequest) (any, error) {
		_, missing := t.store.Project(ctx, r.Project)
		p, err := t.store.EnsureProject(ctx, r.Project)
		if err != nil {
			return nil, err
		}
		related := ""
		if missing != nil {
			related = relatedNote(p)
		}
		made, err := p.Agents.Register(ctx, maildir.Registration{Program: r.Program, Model: r.Model, Task: r.Task, NameHint: r.NameHint})
		if err != nil {
			return nil, err
		}
		return createdShape{shapeProfile(p, &made.AgentRow), notes(say(made.Note), say(p.Code.NoteBelow(r.Project)), p.Code.NoteMade(r.Project), related)}, nil
	})
}

// relatedNote returns a note if the repository of another project has the same first commit, and otherwise "". The note
// names that project, and says how a user can use one project for both code bases.
func relatedNote(p *maildir.Project) string {
	fork, moved := p.Code.Relatives()
	switch {
	case moved != "":
		return "The project of " + moved + " has the same repository, but that folder no longer exists. If the code base was moved " +
			"here, ask the user to run `mailtree link " + moved + "` in this folder."
	case fork != "":
		return fork + " has the same first commit but a different remote, so this folder has a separate project. To use the " +
			"project of " + fork + " here too, ask the user to run `mailtree link " + fork + "` in this folder."
	}
	return ""
}
