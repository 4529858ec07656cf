package mail

import (
	"context"

	"mailtree/maildir"
	"mailtree/maildir/attachment"
	"mailtree/mcp/tool"
)

type replyRequest struct {
	Project     string   `json:"project_key" example:"/abs/path/backend"`
	From        string   `json:"from_agent" jsonschema:"your name" example:"GreenCastle"`
	ReplyTo     string   `json:"reply_to_message_id" example:"msg_20251023_3a51c0f7b3dc3a7e"`
	Body        string   `json:"body_md" jsonschema:"markdown" example:"Questions: ..."`
	Subject     string   `json:"subject,omitempty"`
	To          []string `json:"to,omitempty" jsonschema:"agent names" example:"GreenCastle" as:"commas"`
	CC          []string `json:"cc,omitempty" example:"RedStone" as:"commas"`
	BCC         []string `json:"bcc,omitempty" example:"RedStone" as:"commas"`
	Importance  string   `json:"importance,omitempty" enum:"low,normal,high,urgent"`
	AckRequired bool     `json:"ack_required,omitempty"`
	Attachments []string `json:"attachments,omitempty" jsonschema:"paths, as in send_message" example:"docs/flow.png"`
	variants
	Key  string    `json:"key,omitempty" jsonschema:"yours, as in send_message" example:"answer-1"`
	Wait tool.Wait `json:"wait_reply_seconds,omitempty" max:"50"`
}

func (t *Toolset) replyMessage() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "reply_message",
		Hints: tool.Adds(),
		About: "Reply in a message's thread, by default to its sender; that reads and acknowledges it.",
		Out:   Sent{},
	}, func(ctx context.Context, r *replyRequest) (any, error) {
		p, note, err := t.project(ctx, r.Project)
		if err != nil {
			return nil, err
		}
		answered, err := p.FullID(ctx, r.ReplyTo)
		if err != nil {
			return nil, err
		}
		sent, err := tool.Box(ctx, p, r.From).Reply(ctx, answered, maildir.Draft{
			Body:        r.Body,
			Subject:     r.Subject,
			To:          r.To,
			CC:          r.CC,
			BCC:         r.BCC,
			Importance:  r.Importance,
			AckRequired: r.AckRequired,
			Attachments: r.Attachments,
			Variants:    maildir.Variants(r.variants),
			Key:         r.Key,

			WorkDir: tool.CallerOf(ctx).WorkDir(r.Project),
			Images:  &attachment.Images{},
		})
		if err != nil {
			return nil, err
		}
		return t.viewOf(ctx, p, notes(note, r.Wait.Note)).answerSent(ctx, sent, r.Wait.For), nil
	})
}
