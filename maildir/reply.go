package maildir

import (
	"context"
	"strings"

	"mailtree/maildir/attachment"
	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
)

// ReplyDraft is a reply; recipients default from the original. Importance is normal where it is not
// given, but that of a high or urgent original where the reply asks for acknowledgement.
type ReplyDraft struct {
	From, ReplyTo string // agent, message id
	Body          string
	To, CC, BCC   []string
	Importance    string
	AckRequired   bool
	Attachments   []string
	WorkDir       string // as of Draft
	Key           string
	format.Origin
	Variants
	Images *attachment.Images // as of Draft
}

// Reply sends a reply in the original's thread. Errors: as Send; ErrNotFound for the original.
// See docs/tools.md, "Sending".
func (p *Project) Reply(ctx context.Context, d ReplyDraft) (*Sent, error) {
	n, err := p.replyDraft(ctx, d)
	if err != nil {
		return nil, err
	}
	return p.send(ctx, "reply", *n)
}

// replyDraft is the message that a reply becomes: what it leaves out comes from the original.
func (p *Project) replyDraft(ctx context.Context, d ReplyDraft) (*Draft, error) {
	orig, err := p.messageHead(ctx, d.ReplyTo)
	if err != nil {
		return nil, err
	}
	n := &Draft{
		From:        d.From,
		To:          d.To,
		CC:          d.CC,
		BCC:         d.BCC,
		Subject:     replySubject(orig.Subject),
		Body:        d.Body,
		Importance:  d.Importance,
		AckRequired: d.AckRequired,
		ThreadID:    orig.ThreadID,
		InReplyTo:   orig.ID,
		Attachments: d.Attachments,
		WorkDir:     d.WorkDir,
		Images:      d.Images,
		Key:         d.Key,
		Origin:      d.Origin,
		Variants:    d.Variants,
	}
	if n.Importance == "" && d.AckRequired && (orig.Importance == format.High || orig.Importance == format.Urgent) {
		n.Importance = orig.Importance
	}
	if n.ThreadID == "" {
		n.ThreadID = orig.ID
	}
	if len(n.To) == 0 {
		if orig.From != d.From {
			ok, err := p.hasAgent(ctx, orig.From)
			if err == nil && !ok {
				err = p.Sure()
			}
			if err != nil {
				return nil, err
			}
			if !ok {
				return nil, &Error{
					What: refusal.NotFound("Message {id} was written by {name}, who is not an agent of project {=other} and has no inbox. " +
						"{answer somebody else}"),
					Name:  orig.From,
					Other: p.name(),
					ID:    orig.ID,
				}
			}
			n.To = []string{orig.From}
		} else {
			n.To = orig.To
			if len(n.CC) == 0 {
				n.CC = orig.CC
			}
		}
	}
	return n, nil
}

// replySubject puts "Re: " before a subject once.
func replySubject(s string) string {
	if len(s) >= 3 && strings.EqualFold(s[:3], "re:") {
		return s
	}
	return "Re: " + format.Cut(s, format.MaxSubject-4)
}
