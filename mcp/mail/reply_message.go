package mail

import (
	"context"

	"mailtree/maildir"
	"mailtree/maildir/attachment"
	"mailtree/mcp/tool"
)

func (t *Toolset) replyMessage() tool.Tool {
	return tool.Tool{
		Name:  "reply_message",
		Hints: tool.Adds(),
		About: "Reply to a message in its thread; without recipients the reply goes to its sender.",
		In: []tool.Prop{
			projectKey(), fromAgent(),
			tool.Need("reply_to_message_id", tool.Str("", "msg_20251023_3a51c0f7b3dc3a7e")),
			tool.Need("body_md", tool.Str("markdown", "Questions: ...")),
			tool.May("to", tool.CommaList("agent names", "GreenCastle")),
			tool.May("cc", tool.CommaList("", "RedStone")),
			tool.May("bcc", tool.CommaList("", "RedStone")),
			tool.May("importance", importance("")),
			tool.May("ack_required", tool.Flag("ask for acknowledge_message")),
			tool.May("attachments", tool.List("paths, as in send_message", "docs/flow.png")),
			tool.May("key", tool.Str("your own id: sent again, it is delivered once", "answer-1")),
			waitReply(),
		},
		Out: sentShape{},
		Run: func(ctx context.Context, a *tool.Args) (any, error) {
			d := maildir.ReplyDraft{
				From:        a.Text("from_agent"),
				ReplyTo:     a.Text("reply_to_message_id"),
				Body:        a.Text("body_md"),
				To:          a.Names("to"),
				CC:          a.Names("cc"),
				BCC:         a.Names("bcc"),
				Importance:  a.Choice("importance"),
				AckRequired: a.Flag("ack_required"),
				Attachments: a.Names("attachments"),
				Key:         a.Text("key"),
				Origin:      tool.CallerOf(ctx).Origin,
				WorkDir:     tool.CallerOf(ctx).WorkDir(a.Text("project_key")),
				Images:      &attachment.Images{},
			}
			wait, bounded := a.Wait("wait_reply_seconds", tool.MaxWait)
			p, note, err := t.project(ctx, a)
			if err != nil {
				return nil, err
			}
			sent, err := p.Reply(ctx, d)
			if err != nil {
				return nil, err
			}
			return t.viewOf(ctx, p, notes(note, bounded)).answerSent(ctx, sent, wait), nil
		},
	}
}
