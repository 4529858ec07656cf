package aimx

import (
	"context"
	"errors"

	"mailtree/maildir"
	"mailtree/mcp/tool"
)

type mailboxesShape struct {
	Mailboxes []maildir.Mailbox `json:"mailboxes"`             // sorted by name
	Next      int               `json:"next_offset,omitempty"` // pass this as offset to get more; absent at the end
}

func (t *toolset) mailboxList() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "mailbox_list",
		Hints: tool.Reads(),
		About: "Use to see which mailboxes you own. Lists them with their folders and counts.",
		Out:   mailboxesShape{},
	}, func(ctx context.Context, r *pageRequest) (any, error) {
		v, err := t.project(ctx)
		var all []maildir.Mailbox
		if err == nil {
			all, err = v.Mailboxes(ctx)
		}
		if err != nil && !errors.Is(err, maildir.ErrNotFound) {
			return nil, err
		}
		page, next, err := tool.Page(ctx, t.budget, tool.Listed(all), r.Offset)
		return listed(page, next), err
	})
}

func listed(rows []maildir.Mailbox, next int) tool.Result {
	return tool.Result{Text: string(tool.Encode(rows)), Value: mailboxesShape{rows, next}, Note: goesOn(next)}
}
