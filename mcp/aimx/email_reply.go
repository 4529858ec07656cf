package aimx

import (
	"cmp"
	"context"

	"mailtree/maildir"
	"mailtree/mcp/tool"
)

type replyRequest struct {
	Mailbox string  `json:"mailbox" jsonschema:"name of your mailbox" example:"task-42"`
	ID      emailID `json:"id" jsonschema:"email id, as email_list shows it" example:"msg_20251023_3a51c0f7b3dc3a7e"`
	Body    string  `json:"body" jsonschema:"text of the reply, in markdown" example:"Thanks ..."`
	variants
}

func (t *toolset) emailReply() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "email_reply",
		Hints: tool.Mails(t.leaves()),
		About: "Use to answer an email in your mailbox. Sends a reply in its thread.",
		Out:   sentShape{},
	}, func(ctx context.Context, r *replyRequest) (any, error) {
		if err := cmp.Or(r.ID.usable(), r.variants.exclusive()); err != nil {
			return nil, err
		}
		b, id, err := t.email(ctx, r.Mailbox, r.ID)
		if err != nil {
			return nil, err
		}
		m, err := b.Reply(ctx, id, maildir.Draft{Body: r.Body, Variants: maildir.Variants(r.variants)})
		if err != nil {
			return nil, err
		}
		return t.sent(t.store.Domains().Join(m.Recipients()), m), nil
	})
}
