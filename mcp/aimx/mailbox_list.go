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
	InboxPath  string `json:"inbox_path"`
	SentPath   string `json:"sent_path"`
	Total      int    `json:"total"`
	Unread     int    `json:"unread"`
	Sent       int    `json:"sent_count"`
	Registered bool   `json:"registered"`
}

type mailboxesShape struct {
	Mailboxes []mailboxShape `json:"mailboxes"`
	Next      int            `json:"next_offset,omitempty"`
}

func (t *toolset) mailboxList() tool.Tool {
	return tool.Tool{
		Name: "mailbox_list", Title: "List mailboxes", Hints: tool.Reads(),
		About: "List the mailboxes that you own, with their folders and counts.",
		In:    []tool.Prop{offsetArg("next_offset of the answer before")},
		Out: []tool.Prop{tool.Need("mailboxes", tool.ArrayOf("by name", tool.Object("",
			tool.Need("name", tool.Text("")), tool.Need("inbox_path", tool.Text("folder of the inbox")), tool.Need("sent_path", tool.Text("folder of what was sent")),
			tool.Need("total", tool.Whole("emails in the inbox")), tool.Need("unread", tool.Whole("of them unread")), tool.Need("sent_count", tool.Whole("")),
			tool.Need("registered", tool.Truth("false for a folder without a valid profile"))))), nextOffset()},
		Run: func(ctx context.Context, a *tool.Args) (any, error) {
			offset := a.Count("offset", 0, math.MaxInt32)
			if a.Err() != nil {
				return nil, a.Err()
			}
			c := tool.CallerOf(ctx)
			p, err := t.store.Project(ctx, c.ProjectKey())
			var all []maildir.Mailbox
			if err == nil {
				all, err = p.Mailboxes(ctx, c.User())
			}
			if err != nil && !errors.Is(err, maildir.ErrNotFound) {
				return nil, err
			}
			page, next, err := tool.Page(ctx, t.budget, mailboxesShape{Next: math.MaxInt}, shapeMailboxes(all), offset)
			return listed(page, next), err
		},
	}
}

func shapeMailboxes(all []maildir.Mailbox) []mailboxShape {
	rows := make([]mailboxShape, len(all))
	for i, m := range all {
		rows[i] = mailboxShape{m.Name, m.InboxPath, m.OutboxPath, m.Total, m.Unread, m.Sent, m.Registered}
	}
	return rows
}

func listed(rows []mailboxShape, next int) tool.Result {
	return tool.Result{Text: string(tool.Encode(rows)), Value: mailboxesShape{rows, next}, Note: goesOn(next)}
}
