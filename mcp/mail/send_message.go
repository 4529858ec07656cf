package mail

import (
	"context"

	"mailtree/maildir"
	"mailtree/maildir/attachment"
	"mailtree/mcp/tool"
)

type sendRequest struct {
	Project     string                 `json:"project_key" jsonschema:"path of the top of the working tree" example:"/abs/path/backend"`
	From        string                 `json:"from_agent" jsonschema:"your agent name" example:"GreenCastle"`
	To          []string               `json:"to" jsonschema:"agent names; NAME@PROJECT in other projects" example:"BlueLake" as:"commas"`
	Subject     string                 `json:"subject" jsonschema:"one line" example:"Plan for /api/users"`
	Body        string                 `json:"body_md" jsonschema:"markdown" example:"Here is the plan ..."`
	CC          []string               `json:"cc,omitempty" jsonschema:"copies" example:"RedStone" as:"commas"`
	BCC         []string               `json:"bcc,omitempty" jsonschema:"blind copies, hidden from the other recipients" example:"RedStone" as:"commas"`
	Importance  string                 `json:"importance,omitempty" jsonschema:"how urgent it is" enum:"low,normal,high,urgent" default:"normal"`
	AckRequired bool                   `json:"ack_required,omitempty" jsonschema:"recipients must call acknowledge_message"`
	ThreadID    string                 `json:"thread_id,omitempty" jsonschema:"thread to start or continue, such as a ticket; omit for a new thread" example:"TKT-123"`
	Convert     *bool                  `json:"convert_images,omitempty" jsonschema:"convert images to WebP; false keeps them"`
	Embed       attachment.ImagePolicy `json:"image_embed_policy,omitempty" jsonschema:"where images in the body go: separate files or inline" enum:"auto,file,inline"`
	MaxInline   *int                   `json:"inline_max_bytes,omitempty" jsonschema:"largest inline image, in bytes"`
	Attachments []string               `json:"attachments,omitempty" jsonschema:"paths, absolute or relative to the top of the working tree" example:"docs/flow.png"`
	variants
	Key  string    `json:"key,omitempty" jsonschema:"idempotency key: resending with the same key delivers once" example:"plan-1"`
	Wait tool.Wait `json:"wait_reply_seconds,omitempty" jsonschema:"wait for an answer" max:"50"`
}

// variants contains the two alternatives to a Markdown body.
type variants struct {
	TextOnly bool   `json:"text_only,omitempty" jsonschema:"body_md is plain text"`
	HTML     string `json:"html_body,omitempty" jsonschema:"body_md as HTML" example:"<p>Hello</p>"`
}

func (t *Toolset) sendMessage() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "send_message",
		Hints: tool.Adds(),
		About: "Use to mail people, or agents in other sessions and programs. Sends a markdown message to all recipients " +
			"or to none, and " +
			"returns its id.",
		Out: Sent{},
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
			Anywhere:    true,
		}
		p, note, err := t.project(ctx, r.Project)
		if err != nil {
			return nil, err
		}
		if r.From, err = p.Agents.Named(ctx, r.From); err != nil {
			return nil, err
		}
		sent, err := tool.Box(ctx, p, r.From).Send(ctx, d)
		if err != nil {
			return nil, err
		}
		return t.viewOf(ctx, p, notes(note, r.Wait.Note)).answerSent(ctx, sent, r.Wait.For), nil
	})
}

// images returns the image settings from the call's arguments. If an argument is omitted, the store's setting applies.
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
