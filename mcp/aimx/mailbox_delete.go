package aimx

import (
	"context"
	"fmt"

	"mailtree/mcp/tool"
)

// doneShape is the answer of a tool that only says what it did.
type doneShape struct {
	Message string `json:"message" jsonschema:"what was done"`
}

func done(format string, a ...any) tool.Result {
	text := fmt.Sprintf(format, a...)
	return tool.Result{Text: text, Value: doneShape{text}}
}

func (t *toolset) mailboxDelete() tool.Tool {
	return tool.Tool{
		Name:  "mailbox_delete",
		Hints: tool.Removes(),
		About: "Delete a mailbox of yours with its hooks; one with mail in it only with force.",
		In: []tool.Prop{
			tool.Need("name", tool.Str("name of the mailbox", "task-42")),
			tool.May("force", tool.Flag("delete the mail in it too")),
		},
		Out: doneShape{},
		Run: func(ctx context.Context, a *tool.Args) (any, error) {
			force := a.Flag("force")
			if reserved(a.Text("name")) {
				a.Fail(tool.Invalid("Validation: reserved"))
			}
			b, err := t.box(ctx, a, "name")
			if err != nil {
				return nil, err
			}
			if _, err := b.Delete(ctx, force); err != nil {
				return nil, err
			}
			return done("Mailbox '%s' deleted.", b.Name), nil
		},
	}
}
