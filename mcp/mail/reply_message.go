package mail

import (
	"context"

	"mailtree/maildir"
	"mailtree/maildir/attachment"
	"mailtree/mcp/tool"
)

type replyRequest struct {
	Project     string   `json:"project_key" jsonschema:"path of the top of the working tree" example:"/abs/path/backend"`
	From        string   `json:"from_agent" jsonschema:"your agent name" example:"GreenCastle"`
	ReplyTo     string   `json:"reply_to_message_id" jsonschema:"id of the message to answer" example:"msg_20251023_3a51c0f7b3dc3a7e"`
	Body        string   `json:"body_md" jsonschema:"markdown" example:"Questions: ..."`
	Subject     string   `json:"subject,omitempty" jsonschema:"default: Re: and the original subject"`
	To          []string `json:"to,omitempty" jsonschema:"recipients, instead of the sender" example:"GreenCastle" as:"commas"`
	CC          []string `json:"cc,omitempty" jsonschema:"copies" example:"RedStone" as:"commas"`
	BCC         []string `json:"bcc,omitempty" jsonschema:"blind copies" example:"RedStone" as:"commas"`
	Importance  string   `json:"importance,omitempty" jsonschema:"importance of the reply" enum:"low,normal,high,urgent"`
	AckRequired bool     `json:"ack_required,omitempty" jsonschema:"request an acknowledgement"`
	Attachments []string `json:"attachments,omitempty" jsonschema:"as in send_message" example:"docs/flow.png"`
	variants
	Key  string    `json:"key,omitempty" jsonschema:"as in send_message" example:"answer-1"`
	Wait tool.Wait `json:"wait_reply_seconds,omitempty" jsonschema:"wait for an answer" max:"50"`
}

func (t *Toolset) replyMessage() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "reply_message",
		Hints: tool.Adds(),
		About: "Use to answer a message. Sends a reply in its thread, by default to its sender. Also marks the original as read, and " +
			"acknowledges it if requested.",
		Out: Sent{},
	}, func(ctx context.Context, r *replyRequest) (any, error) {
		p, note, err := t.projectOf(ctx, r.Project, &r.From)
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
			Anywhere:    true,

			WorkDir: tool.CallerOf(ctx).WorkDir(r.Project),
			Images:  &attachment.Images{},
		})
		if err != nil {
			return nil, err
		}
		return t.viewOf(ctx, p, notes(note, r.Wait.Note)).answerSent(ctx, sent, r.Wait.For), nil
	})
}
