package aimx

import (
	"context"

	"mailtree/mcp/tool"
)

// The marks of an email: the words that the two tools end in.
const (
	markRead   = "read"
	markUnread = "unread"
)

// emailMark is email_mark_read or email_mark_unread.
func (t *toolset) emailMark(word string) tool.Tool {
	return tool.Tool{
		Name:  "email_mark_" + word,
		Hints: tool.Marks(),
		About: "Mark an email in the inbox of a mailbox of yours as " + word + ".",
		In:    []tool.Prop{mailboxArg(), idArg()},
		Out:   doneShape{},
		Run: func(ctx context.Context, a *tool.Args) (any, error) {
			id := emailID(a)
			b, err := t.box(ctx, a, "mailbox")
			if err != nil {
				return nil, err
			}
			if err := b.SetRead(ctx, id, word == markRead); err != nil {
				return nil, err
			}
			return done("Email '%s' marked as %s.", id, word), nil
		},
	}
}
