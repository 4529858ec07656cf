package aimx

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"mailtree/maildir"
	"mailtree/maildir/refusal"
	"mailtree/mcp/tool"
)

type sentShape struct {
	To        string `json:"to"` // recipients
	MessageID string `json:"message_id"`

	Notes []string `json:"notes,omitempty"`
}

type sendRequest struct {
	From    string `json:"from_mailbox" jsonschema:"name of your mailbox" example:"task-42"`
	To      string `json:"to" jsonschema:"addresses, separated by commas" example:"bob@mailtree.local" as:"joined"`
	Subject string `json:"subject" jsonschema:"one line" example:"Plan for /api/users"`
	Body    string `json:"body" jsonschema:"text of the email, in markdown" example:"Here is the plan ..."`
	variants
	Attachments []string `json:"attachments,omitempty" jsonschema:"paths of files to attach, absolute or relative to the top of your working tree" example:"docs/flow.png"`
	ReplyTo     string   `json:"reply_to,omitempty" jsonschema:"Message-ID of the email that this one answers" example:"<msg_20251023_3a51c0f7b3dc3a7e@mailtree.local>"`
	References  string   `json:"references,omitempty" jsonschema:"Message-IDs of the thread, separated by spaces; only with reply_to" example:"<msg_20251023_3a51c0f7b3dc3a7e@mailtree.local>"`
}

func (t *toolset) emailSend() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "email_send",
		Hints: tool.Mails(t.leaves()),
		About: "Use to send an email in Markdown, plain text or HTML from your mailbox. If it cannot be sent to every recipient, it " +
			"is sent to none.",
		Out: sentShape{},
	}, func(ctx context.Context, r *sendRequest) (any, error) {
		if err := cmp.Or(r.lines(), r.variants.exclusive()); err != nil {
			return nil, err
		}
		d := maildir.Draft{
			Subject:     r.Subject,
			Body:        r.Body,
			Variants:    maildir.Variants(r.variants),
			Attachments: r.Attachments,
			WorkDir:     tool.CallerOf(ctx).WorkDir(""),
		}
		if err := t.answers(r, &d); err != nil {
			return nil, err
		}
		b, err := t.box(ctx, r.From)
		if err != nil {
			return nil, err
		}
		if d.InReplyTo, err = b.FullID(ctx, refusal.InReplyTo, d.InReplyTo); err != nil {
			return nil, err
		}
		if d.To, err = t.store.Domains().Recipients(r.To); err != nil {
			return nil, err
		}
		m, err := b.Send(ctx, d)
		if err != nil {
			return nil, err
		}
		return t.sent(strings.TrimSpace(r.To), m), nil
	})
}

// lines returns a refusal if an argument that must be a single line contains line breaks.
func (r *sendRequest) lines() error {
	for _, line := range []struct{ name, text string }{
		{"to", r.To}, {"subject", r.Subject}, {"reply_to", r.ReplyTo}, {"references", r.References},
	} {
		if strings.ContainsAny(line.text, "\r\n") {
			return tool.Invalid("%s is %q, which contains a line break (CR or LF): write it on one line.", line.name, tool.Clip(line.text))
		}
	}
	return nil
}

// answers turns the draft into a reply to the messages in reply_to and references. If reply_to is missing, it ignores
// references.
func (t *toolset) answers(r *sendRequest, d *maildir.Draft) (err error) {
	if strings.TrimSpace(r.ReplyTo) == "" {
		return nil
	}
	domains := t.store.Domains()
	if d.InReplyTo, err = domains.IDOf(refusal.InReplyTo, r.ReplyTo); err != nil {
		return err
	}
	for _, m := range strings.Fields(strings.ReplaceAll(r.References, "><", "> <")) { // RFC 5322: the space is optional
		id, err := domains.IDOf(refusal.References, m)
		if err != nil {
			return err
		}
		d.References = append(d.References, id)
	}
	return nil
}

func (t *toolset) sent(to string, m *maildir.Sent) tool.Result {
	s := sentShape{To: to, MessageID: t.store.Domains().MessageID(m.ID)}
	for _, n := range m.Notes {
		s.Notes = append(s.Notes, words.Say(n))
	}
	text := fmt.Sprintf("Email sent to %s. Message-ID: %s", s.To, s.MessageID)
	return tool.Result{Text: text, Value: s, Note: strings.Join(s.Notes, "\n")}
}
