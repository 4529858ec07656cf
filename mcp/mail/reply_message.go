package mail

import (
	"context"

	"mailtree/maildir"
)

func replyMessage() tool {
	return tool{
		name: "reply_message", title: "Reply to message", hints: adds(),
		about: "Reply to a message in its thread; without recipients the reply goes to its sender.",
		in: []prop{
			projectKey(), fromAgent(),
			need("reply_to_message_id", str("id of the message", "msg_20251023_3a51c0f7b3dc3a7e")),
			need("body_md", str("body in markdown", "Questions: ...")),
			may("to", list("agent names", "GreenCastle")),
			may("cc", list("agent names", "RedStone")),
			may("bcc", list("agent names that the others do not see", "RedStone")),
			may("importance", importance("")),
			may("ack_required", flag("ask for acknowledge_message", false)),
			may("key", str("your own id for this reply: sending it again with the same key delivers it once", "answer-1")),
		},
		out: sentProps(),
		run: func(ctx context.Context, t *Toolset, a *args) (any, error) {
			d := maildir.ReplyDraft{
				From: a.text("from_agent"), ReplyTo: a.text("reply_to_message_id"), Body: a.text("body_md"),
				To: a.names("to"), CC: a.names("cc"), BCC: a.names("bcc"), Importance: a.choice("importance"),
				AckRequired: a.flag("ack_required"), Key: a.text("key"), Auth: t.auth(ctx),
			}
			p, err := t.project(ctx, a)
			if err != nil {
				return nil, err
			}
			sent, err := p.Reply(ctx, d)
			if err != nil {
				return nil, err
			}
			return shapeSent(sent, nil), nil
		},
	}
}
