package mail

import (
	"context"

	"mailtree/maildir"
	"mailtree/maildir/attachment"
	"mailtree/mcp/tool"
)

type sendRequest struct {
	Project     string                 `json:"project_key" jsonschema:"top of the work tree" example:"/abs/path/backend"`
	From        string                 `json:"from_agent" jsonschema:"your name" example:"GreenCastle"`
	To          []string               `json:"to" jsonschema:"agent names" example:"BlueLake" as:"commas"`
	Subject     string                 `json:"subject" jsonschema:"one line" example:"Plan for /api/users"`
	Body        string                 `json:"body_md" jsonschema:"markdown" example:"Here is the plan ..."`
	CC          []string               `json:"cc,omitempty" example:"RedStone" as:"commas"`
	BCC         []string               `json:"bcc,omitempty" jsonschema:"hidden from the others" example:"RedStone" as:"commas"`
	Importance  string                 `json:"importance,omitempty" enum:"low,normal,high,urgent" default:"normal"`
	AckRequired bool                   `json:"ack_required,omitempty" jsonschema:"ask for acknowledge_message"`
	ThreadID    string                 `json:"thread_id,omitempty" jsonschema:"yours, such as a ticket; none: a new thread" example:"TKT-123"`
	Convert     *bool                  `json:"convert_images,omitempty" jsonschema:"to WebP; false: none"`
	Embed       attachment.ImagePolicy `json:"image_embed_policy,omitempty" enum:"auto,file,inline"`
	MaxInline   *int                   `json:"inline_max_bytes,omitempty"`
	Attachments []string               `json:"attachments,omitempty" jsonschema:"paths, absolute or from the top of the work tree" example:"docs/flow.png"`
	variants
	Key  string    `json:"key,omitempty" jsonschema:"your own id: sent again, it is delivered once" example:"plan-1"`
	Wait tool.Wait `json:"wait_reply_seconds,omitempty" max:"50"`
}

// variants are further forms of a body.
type variants struct {
	TextOnly bool   `json:"text_only,omitempty" jsonschema:"body_md is plain text"`
	HTML     string `json:"html_body,omitempty" jsonschema:"body_md in HTML too" example:"<p>Hello</p>"`
}

func (t *Toolset) sendMessage() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "send_message",
		Hints: tool.Adds(),
		About: "Mail agents in other sessions and programs, and people: a markdown message, delivered to all or to none.",
		Out:   Sent{},
	}, func(ctx context.Context, r *sendRequest) (any, error) {
		d := maildir.Draft{
			To:          r.To,
			CC:          r.CC,
			BCC:         r.BCC,
			Subject:     r.Subject,
			Body:        r.Body,
			Importance:  r.Importance,
			AckRequired: r.AckRequired,
			ThreadID:    r.ThreadID,
			Attachments: r.Attachments,
			Variants:    maildir.Variants(r.variants),
			Key:         r.Key,
			WorkDir:     tool.CallerOf(ctx).WorkDir(r.Project),
			Images:      r.images(),
		}
		p, note, err := t.project(ctx, r.Project)
		if err != nil {
			return nil, err
		}
		sent, err := tool.Box(ctx, p, r.From).Send(ctx, d)
		if err != nil {
			return nil, err
		}
		return t.viewOf(ctx, p, notes(note, r.Wait.Note)).answerSent(ctx, sent, r.Wait.For), nil
	})
}

// images returns the arguments about images. The settings of the store apply to absent arguments.
func (r *sendRequest) images() *attachment.Images {
	i := &attachment.Images{Embed: r.Embed}
	if r.Convert != nil {
		i.Convert = attachment.ConvertNone
		if *r.Convert {
			i.Convert = attachment.ConvertAll
		}
	}
	if r.MaxInline != nil {
		if i.MaxInline = *r.MaxInline; i.MaxInline == 0 {
			i.MaxInline = -1
		}
	}
	return i
}
