package aimx

import (
	"context"
	"fmt"

	"mailtree/mcp/tool"
)

// doneShape is a response that only confirms an action.
type doneShape struct {
	Message string `json:"message"` // what the tool has done
}

func done(format string, a ...any) tool.Result {
	text := fmt.Sprintf(format, a...)
	return tool.Result{Text: text, Value: doneShape{text}}
}

type deleteRequest struct {
	Name  string `json:"name" jsonschema:"name of the mailbox" example:"task-42"`
	Force bool   `json:"force,omitempty" jsonschema:"also delete the mail in it"`
}

func (t *toolset) mailboxDelete() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "mailbox_delete",
		Hints: tool.Destroys(),
		About: "Use to delete your mailbox and its hooks. If it contains mail, also pass force.",
		Out:   doneShape{},
	}, func(ctx context.Context, r *deleteRequest) (any, error) {
		if reserved(t.local(r.Name)) {
			return nil, tool.Invalid("Validation: reserved")
		}
		b, err := t.box(ctx, r.Name)
		if err != nil {
			return nil, err
		}
		if _, err := b.Delete(ctx, r.Force); err != nil {
			return nil, err
		}
		return done("Mailbox '%s' deleted.", b.Name), nil
	})
}
