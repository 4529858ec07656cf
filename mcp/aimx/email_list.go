package aimx

import (
	"context"
	"fmt"
	"math"

	"mailtree/maildir"
	"mailtree/mcp/tool"
)

// defaultPage is the page size of email_list where a call names none; at most it is
// maildir.MaxPage.
const defaultPage = 50

// rowShape is one email of a list: Read of an inbox row, Status of a sent one.
type rowShape struct {
	ID      string `json:"id"`
	From    string `json:"from" jsonschema:"address"`
	To      string `json:"to" jsonschema:"addresses, separated by commas"`
	Subject string `json:"subject"`
	Date    string `json:"date"`
	Auth    string `json:"auth" jsonschema:"who vouches for the sender; self-asserted: nobody"`
	Read    *bool  `json:"read,omitempty" jsonschema:"in the inbox"`
	Status  string `json:"delivery_status,omitempty" jsonschema:"in the sent folder: delivered or pending"`
}

type emailsShape struct {
	Emails []rowShape `json:"emails" jsonschema:"newest first"`
	Next   int        `json:"next_offset,omitempty" jsonschema:"where the page ended early, because it was large: the offset of the next"`
}

func (t *toolset) emailList() tool.Tool {
	return tool.Tool{
		Name:  "email_list",
		Hints: tool.Reads(),
		About: "List a page of the emails in a mailbox of yours, newest first.",
		In: []tool.Prop{
			mailboxArg(), folderArg(),
			tool.May("limit", tool.Num(fmt.Sprintf("page size; above %[1]d it is %[1]d", maildir.MaxPage), 0, math.MaxInt32, defaultPage)),
			tool.May("offset", tool.Num("newest emails to skip", 0, math.MaxInt32, 0)),
			tool.May("archived", tool.Flag("archived emails of the inbox too")),
		},
		Out: emailsShape{},
		Run: func(ctx context.Context, a *tool.Args) (any, error) {
			q := maildir.BoxQuery{
				Sent:         folder(a),
				HideArchived: !a.Flag("archived"),
				Limit:        a.Limit("limit", 0, maildir.MaxPage),
				Offset:       a.Count("offset", 0, math.MaxInt32),
			}
			b, err := t.box(ctx, a, "mailbox")
			if err != nil {
				return nil, err
			}
			rows, err := b.List(ctx, q)
			if err != nil {
				return nil, err
			}
			page, next, err := tool.Page(ctx, t.budget, emailsShape{Next: math.MaxInt}, t.shapeRows(b, rows, q.Sent), 0)
			if next > 0 {
				next += q.Offset
			}
			return emails(page, next), err
		},
	}
}

func (t *toolset) shapeRows(b *maildir.Box, rows []maildir.BoxRow, outbox bool) []rowShape {
	out := make([]rowShape, len(rows))
	for i := range rows {
		r := &rows[i]
		by, _ := t.store.VerifiedIn(&r.MessageRow)
		out[i] = rowShape{
			ID:      r.ID,
			From:    t.store.Domain().Of(r.From),
			To:      t.store.Domain().Join(r.To),
			Subject: r.Subject,
			Date:    tool.Stamp(r.Created),
			Auth:    by.String(),
		}
		if outbox {
			out[i].Status, _ = b.Delivery(r)
		} else {
			out[i].Read = &r.Read
		}
	}
	return out
}

func emails(rows []rowShape, next int) tool.Result {
	return tool.Result{Text: string(tool.Encode(rows)), Value: emailsShape{rows, next}, Note: goesOn(next)}
}
