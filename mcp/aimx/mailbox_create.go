package aimx

import (
	"context"

	"mailtree/mcp/tool"
)

type addressShape struct {
	Address string `json:"address" jsonschema:"the mailbox's full address"`
}

func (t *toolset) mailboxCreate() tool.Tool {
	return tool.Tool{
		Name:  "mailbox_create",
		Hints: tool.Marks(),
		About: "Create a mailbox owned by you and return its address; again for one of yours it returns the same address.",
		In:    []tool.Prop{tool.Need("name", tool.Str("name of the mailbox, [a-z0-9._-]+", "task-42"))},
		Out:   addressShape{},
		Run: func(ctx context.Context, a *tool.Args) (any, error) {
			name, c := newName(a), tool.CallerOf(ctx)
			if a.Err() != nil {
				return nil, a.Err()
			}
			p, err := t.store.EnsureProjectFor(ctx, c.ProjectKey(), c.User())
			if err != nil {
				return nil, err
			}
			m, err := p.CreateMailbox(ctx, name, c.User())
			if err != nil {
				return nil, err
			}
			address := t.store.Domain().Of(m.Name)
			return tool.Result{Text: address, Value: addressShape{address}}, nil
		},
	}
}
