package aimx

import (
	"context"

	"mailtree/maildir"
	"mailtree/maildir/index"
	"mailtree/mcp/tool"
)

// rowShape is one email in a list. Read is set only for the inbox, and Status only for sent mail. For mail to local
// mailboxes, Status is delivered or pending. For mail to other domains, it is queued, deferred, sending, sent, unknown
// or failed.
type rowShape struct {
	ID      string `json:"id"`
	From    string `json:"from"` // address
	To      string `json:"to"`   // comma-separated addresses
	Subject string `json:"subject"`
	Date    string `json:"date"`
	Auth    string `json:"auth"`                      // how the server authenticated the sender, or "self-asserted"
	Read    *bool  `json:"read,omitempty"`            // only in the inbox
	Status  string `json:"delivery_status,omitempty"` // described at rowShape
}

type emailsShape struct {
	Emails []rowShape `json:"emails"`                // newest first
	Next   int        `json:"next_offset,omitempty"` // offset of the next page if the size limit was reached
}

type listRequest struct {
	Mailbox  string `json:"mailbox" jsonschema:"name of your mailbox" example:"task-42"`
	Folder   folder `json:"folder,omitempty" jsonschema:"which folder of the mailbox" enum:"inbox,sent" default:"inbox" as:"given"`
	Limit    int    `json:"limit,omitempty" jsonschema:"page size, at most 200" most:"200" default:"50" as:"limit"`
	Offset   int    `json:"offset,omitempty" jsonschema:"number of newest emails to skip"`
	Archived bool   `json:"archived,omitempty" jsonschema:"include archived emails in the inbox"`
}

func (t *toolset) emailList() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "email_list",
		Hints: tool.Reads(),
		About: "Use to see what is in your mailbox. Lists a page of its emails, newest first.",
		Out:   emailsShape{},
	}, func(ctx context.Context, r *listRequest) (any, error) {
		if err := r.Folder.known(); err != nil {
			return nil, err
		}
		q := index.BoxQuery{
			Sent:         r.Folder == sent,
			HideArchived: !r.Archived,
			Limit:        r.Limit,
			Offset:       r.Offset,
		}
		b, err := t.box(ctx, r.Mailbox)
		if err != nil {
			return nil, err
		}
		rows, err := b.List(ctx, q)
		if err != nil {
			return nil, err
		}
		page, next, err := tool.Page(ctx, t.budget, t.shapeRows(b, rows, q.Sent), 0)
		if next > 0 {
			next += q.Offset
		}
		return emails(page, next), err
	})
}

func (t *toolset) shapeRows(b *maildir.UserBox, rows []index.BoxRow, outbox bool) []rowShape {
	out := make([]rowShape, len(rows))
	for i := range rows {
		r := &rows[i]
		by, _ := t.store.VerifiedIn(&r.MessageRow)
		out[i] = rowShape{
			ID:      r.ID,
			From:    t.store.Domains().Of(r.From),
			To:      t.store.Domains().Join(r.To),
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
