package aimx

import (
	"context"
	"errors"

	"mailtree/maildir"
	"mailtree/maildir/refusal"
	"mailtree/mcp/tool"
)

type unhookRequest struct {
	Name string `json:"name" jsonschema:"name of the hook, as hook_list shows it" example:"wake"`
}

func (t *toolset) hookDelete() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "hook_delete",
		Hints: tool.Marks(),
		About: "Use to delete a hook of your mailbox, by its name.",
		Out:   doneShape{},
	}, func(ctx context.Context, r *unhookRequest) (any, error) {
		v, err := t.project(ctx)
		if errors.Is(err, maildir.ErrNotFound) { // there is no project, so there are no hooks
			err = &maildir.Error{What: refusal.UnknownHook, Field: refusal.HookName, Name: r.Name}
		}
		if err == nil {
			err = v.DeleteHook(ctx, r.Name)
		}
		if err != nil {
			return nil, err
		}
		return done("Hook '%s' deleted.", r.Name), nil
	})
}
