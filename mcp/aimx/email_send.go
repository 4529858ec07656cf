package aimx

import (
	"context"
	"fmt"
	"strings"

	"mailtree/maildir"
	"mailtree/maildir/refusal"
	"mailtree/mcp/tool"
)

type sentShape struct {
	To        string `json:"to" jsonschema:"where it went"`
	MessageID string `json:"message_id"`
}

func (t *toolset) emailSend() tool.Tool {
	return tool.Tool{
		Name:  "email_send",
		Hints: tool.Adds(),
		About: "Send an email in markdown, plain text or HTML from a mailbox of yours; every recipient gets it, or none.",
		In: append(append([]tool.Prop{
			tool.Need("from_mailbox", tool.Str("name of a mailbox of yours", "task-42")),
			tool.Need("to", tool.Str("addresses, separated by commas", "bob@mailtree.local")),
			tool.Need("subject", tool.Str("one line", "Plan for /api/users")),
			tool.Need("body", tool.Str("body in markdown", "Here is the plan ...")),
		}, variantArgs()...),
			tool.May("attachments", tool.List("paths of files to attach, absolute or from the top of your work tree", "docs/flow.png")),
			tool.May("reply_to", tool.Str("Message-ID that this answers", "<msg_20251023_3a51c0f7b3dc3a7e@mailtree.local>")),
			tool.May("references", tool.Str("Message-IDs of the thread, separated by blanks; only with reply_to",
				"<msg_20251023_3a51c0f7b3dc3a7e@mailtree.local>")),
		),
		Out: sentShape{},
		Run: func(ctx context.Context, a *tool.Args) (any, error) {
			to := oneLine(a, "to", a.Joined("to"))
			d := maildir.Draft{
				Subject:     line(a, "subject"),
				Body:        a.Text("body"),
				Variants:    variants(a),
				Attachments: a.Names("attachments"),
				Origin:      tool.CallerOf(ctx).Origin,
				WorkDir:     tool.CallerOf(ctx).WorkDir(""),
			}
			t.answers(a, &d)
			b, err := t.box(ctx, a, "from_mailbox")
			if err != nil {
				return nil, err
			}
			if d.To, err = t.store.Domain().Recipients(to); err != nil {
				return nil, err
			}
			m, err := b.Send(ctx, d)
			if err != nil {
				return nil, err
			}
			return t.sent(strings.TrimSpace(to), m), nil
		},
	}
}

// answers makes the draft a reply to what reply_to and references name. Without reply_to it ignores
// references.
func (t *toolset) answers(a *tool.Args, d *maildir.Draft) {
	replyTo, references := line(a, "reply_to"), line(a, "references")
	if a.Err() != nil || strings.TrimSpace(replyTo) == "" {
		return
	}
	d.InReplyTo = t.id(a, refusal.InReplyTo, replyTo)
	for _, m := range strings.Fields(strings.ReplaceAll(references, "><", "> <")) { // RFC 5322 wants no blank between them
		d.References = append(d.References, t.id(a, refusal.References, m))
	}
}

// id returns the message id that a Message-ID in a field stands for.
func (t *toolset) id(a *tool.Args, field refusal.Field, messageID string) string {
	id, err := t.store.Domain().IDOf(field, messageID)
	if err != nil {
		a.Fail(err)
	}
	return id
}

func (t *toolset) sent(to string, m *maildir.Sent) tool.Result {
	s := sentShape{to, t.store.Domain().MessageID(m.ID)}
	return tool.Result{Text: fmt.Sprintf("Email sent to %s. Message-ID: %s", s.To, s.MessageID), Value: s}
}
