package aimx

import (
	"context"
	"errors"
	"math"

	"mailtree/maildir"
	"mailtree/mcp/tool"
)

type mailboxShape struct {
	Name       string `json:"name"`
	InboxPath  string `json:"inbox_path" jsonschema:"folder of the inbox"`
	SentPath   string `json:"sent_path" jsonschema:"folder of what was sent"`
	Total      int    `json:"total" jsonschema:"emails in the inbox"`
	Unread     int    `json:"unread" jsonschema:"of them unread"`
	Sent       int    `json:"sent_count"`
	Registered bool   `json:"registered" jsonschema:"false for a folder without a valid profile"`
}

type mailboxesShape struct {
	Mailboxes []mailboxShape `json:"mailboxes" jsonschema:"by name"`
	Next      int            `json:"next_offset,omitempty" jsonschema:"pass as offset for more; absent at the end"`
}

func (t *toolset) mailboxList() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "mailbox_list",
		Hints: tool.Reads(),
		About: "List the mailboxes that you own, with their folders and counts.",
		Out:   mailboxesShape{},
	}, func(ctx context.Context, r *pageRequest) (any, error) {
		c := tool.CallerOf(ctx)
		p, err := t.store.ProjectFor(ctx, c.ProjectKey(), c.User())
		var all []maildir.Mailbox
		if err == nil {
			all, err = p.Mailboxes(ctx, c.User())
		}
		if err != nil && !errors.Is(err, maildir.ErrNotFound) {
			return nil, err
		}
		page, next, err := tool.Page(ctx, t.budget, mailboxesShape{Next: math.MaxInt}, shapeMailboxes(all), r.Offset)
		return listed(page, next), err
	})
}

func shapeMailboxes(all []maildir.Mailbox) []mailboxShape {
	rows := make([]mailboxShape, len(all))
	for i, m := range all {
		rows[i] = mailboxShape{
			Name:       m.Name,
			InboxPath:  m.InboxPath,
			SentPath:   m.OutboxPath,
			Total:      m.Total,
			Unread:     m.Unread,
			Sent:       m.Sent,
			Registered: m.Registered,
		}
	}
	return rows
}

func listed(rows []mailboxShape, next int) tool.Result {
	return tool.Result{Text: string(tool.Encode(rows)), Value: mailboxesShape{rows, next}, Note: goesOn(next)}
}
