package aimx

import (
	"context"

	"mailtree/mcp/tool"
)

type addressShape struct {
	Address string `json:"address"` // full address of the mailbox
}

type createRequest struct {
	Name string `json:"name" jsonschema:"name of the mailbox, [a-z0-9._-]+" example:"task-42"`
}

func (t *toolset) mailboxCreate() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "mailbox_create",
		Hints: tool.Marks(),
		About: "Use to create a mailbox that you own. Returns its address. If you own it already, returns the same address.",
		Out:   addressShape{},
	}, func(ctx context.Context, r *createRequest) (any, error) {
		name := t.local(r.Name)
		if err := checkName(name); err != nil {
			return nil, err
		}
		c := tool.CallerOf(ctx)
		v, err := t.store.As(c.User(), c.Origin).EnsureProject(ctx, c.ProjectKey())
		if err != nil {
			return nil, err
		}
		m, err := v.CreateMailbox(ctx, name)
		if err != nil {
			return nil, err
		}
		address := t.store.Domains().Of(m.Name)
		return tool.Result{Text: address, Value: addressShape{address}}, nil
	})
}
