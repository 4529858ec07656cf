package aimx

import (
	"context"

	"mailtree/maildir"
	"mailtree/mcp/tool"
)

func (t *toolset) emailReply() tool.Tool {
	return tool.Tool{
		Name:  "email_reply",
		Hints: tool.Adds(),
		About: "Reply to an email in a mailbox of yours, in its thread.",
		In:    append([]tool.Prop{mailboxArg(), idArg(), tool.Need("body", tool.Str("body in markdown", "Thanks ..."))}, variantArgs()...),
		Out:   sentShape{},
		Run: func(ctx context.Context, a *tool.Args) (any, error) {
			d := maildir.ReplyDraft{
				ReplyTo:  emailID(a),
				Body:     a.Text("body"),
				Variants: variants(a),
				Origin:   tool.CallerOf(ctx).Origin,
			}
			b, err := t.box(ctx, a, "mailbox")
			if err != nil {
				return nil, err
			}
			m, err := b.Reply(ctx, d)
			if err != nil {
				return nil, err
			}
			return t.sent(t.store.Domain().Join(m.Recipients()), m), nil
		},
	}
}
