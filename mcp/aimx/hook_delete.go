package aimx

import (
	"context"
	"errors"

	"mailtree/maildir"
	"mailtree/maildir/refusal"
	"mailtree/mcp/tool"
)

func (t *toolset) hookDelete() tool.Tool {
	return tool.Tool{
		Name:  "hook_delete",
		Hints: tool.Removes(),
		About: "Delete a hook on a mailbox of yours by its name.",
		In:    []tool.Prop{tool.Need("name", tool.Str("name of the hook, given or derived", "wake"))},
		Out:   doneShape{},
		Run: func(ctx context.Context, a *tool.Args) (any, error) {
			name, c := a.Text("name"), tool.CallerOf(ctx)
			if a.Err() != nil {
				return nil, a.Err()
			}
			p, err := t.store.ProjectFor(ctx, c.ProjectKey(), c.User())
			if errors.Is(err, maildir.ErrNotFound) { // no hooks there
				err = &maildir.Error{What: refusal.UnknownHook, Field: refusal.HookName, Name: name}
			}
			if err == nil {
				err = p.DeleteHook(ctx, name, c.User())
			}
			if err != nil {
				return nil, err
			}
			return done("Hook '%s' deleted.", name), nil
		},
	}
}
