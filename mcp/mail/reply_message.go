package mail

import (
	"context"

	"mailtree/maildir"
	"mailtree/maildir/attachment"
	"mailtree/mcp/tool"
)

type replyRequest struct {
	Project string `json:"project_key" example:"/abs/path/backend"`
	maildir.ReplyDraft
	Wait tool.Wait `json:"wait_reply_seconds,omitempty" max:"50"`
}

func (t *Toolset) replyMessage() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "reply_message",
		Hints: tool.Adds(),
		About: "Reply to a message in its thread; without recipients the reply goes to its sender.",
		Out:   sentShape{},
	}, func(ctx context.Context, r *replyRequest) (any, error) {
		p, note, err := t.project(ctx, r.Project)
		if err != nil {
			return nil, err
		}
		c := tool.CallerOf(ctx)
		r.Origin, r.WorkDir, r.Images = c.Origin, c.WorkDir(r.Project), &attachment.Images{}
		sent, err := p.Reply(ctx, r.ReplyDraft)
		if err != nil {
			return nil, err
		}
		return t.viewOf(ctx, p, notes(note, r.Wait.Note)).answerSent(ctx, sent, r.Wait.For), nil
	})
}
