package aimx

import (
	"context"

	"mailtree/mcp/tool"
)

// The marks that emailMark sets. The name of each of the two tools ends with one of these words.
const (
	markRead   = "read"
	markUnread = "unread"
)

type markRequest struct {
	Mailbox string  `json:"mailbox" jsonschema:"name of your mailbox" example:"task-42"`
	ID      emailID `json:"id" jsonschema:"email id, as email_list shows it" example:"msg_20251023_3a51c0f7b3dc3a7e"`
}

// emailMark returns the tool email_mark_read or email_mark_unread.
func (t *toolset) emailMark(word string) tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "email_mark_" + word,
		Hints: tool.Marks(),
		About: "Use to mark an email in the inbox of your mailbox as " + word + ".",
		Out:   doneShape{},
	}, func(ctx context.Context, r *markRequest) (any, error) {
		if err := r.ID.usable(); err != nil {
			return nil, err
		}
		b, id, err := t.email(ctx, r.Mailbox, r.ID)
		if err != nil {
			return nil, err
		}
		if err := b.SetRead(ctx, id, word == markRead); err != nil {
			return nil, err
		}
		return done("Email '%s' marked as %s.", id, word), nil
	})
}
