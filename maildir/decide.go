package maildir

import (
	"context"

	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
)

// Decision is a yes-or-no answer to a message that asks a question.
type Decision struct {
	ID   string `json:"message_id"` // the message to answer
	Yes  bool   `json:"yes"`
	Text string `json:"text,omitempty"` // follows "Yes." or "No."; "" if there is nothing to add

	// Shown is the TextSum of the message that the user saw. If Shown is "", Decide does not check for later changes.
	Shown string `json:"shown,omitempty"`
}

// TextSum returns a digest of a message's subject and text.
func TextSum(subject, body string) string { return tree.SHA256([]byte(subject + "\n" + body)) }

// Decided is a decision that was sent.
type Decided struct {
	Asker    string `json:"asker"`
	Subject  string `json:"subject"`  // the subject of the question
	Question string `json:"question"` // the text of the question
	Body     string `json:"body"`     // the text of the reply
	Sent     *Sent  `json:"-"`
	ID       string `json:"id"` // the id of the reply
	Acked    bool   `json:"acknowledged"`
}

// Decide replies to a message that asks for an answer. The reply consists of "Yes." or "No.", followed by the
// decision's text, and goes only to the asker. Like any other reply, it marks the message as read and, if the message
// requests an acknowledgment, as acknowledged. Decide returns ErrNotFound if the message is not in the agent's inbox,
// and ErrInvalid if the message does not ask for an answer or cannot be answered this way. It returns ErrConflict if
// the agent has already answered or acknowledged the message, or if the message has changed since the user saw it. It
// also returns any error from Reply.
func (b *Box) Decide(ctx context.Context, d Decision) (*Decided, error) {
	if err := b.p.mail.NeedThisMachine(ctx, b.agent); err != nil {
		return nil, err
	}
	m, err := b.Delivery(ctx, d.ID)
	if err != nil {
		return nil, err
	}
	whole, err := b.p.Message(ctx, m.ID)
	if err != nil {
		return nil, err
	}
	if d.Shown != "" && d.Shown != TextSum(whole.Subject, whole.Body) {
		return nil, &Error{
			What:  refusal.Conflict("Message {name} has changed since you saw it, so nothing was sent: read it again."),
			Field: refusal.Message,
			Name:  m.ID,
		}
	}
	if !m.Question {
		return nil, &Error{
			What:  refusal.Invalid("Message {name} does not ask for an answer: write a reply instead."),
			Field: refusal.Message,
			Name:  m.ID,
		}
	}
	if !b.Decides(m) {
		return nil, &Error{
			What: refusal.Invalid("Message {name} cannot be answered with yes or no, because it is not a verified message from " +
				"another agent in this store: write a reply instead."),
			Field: refusal.Message,
			Name:  m.ID,
		}
	}
	replied, err := b.p.mail.Store.Index.Replied(ctx, b.p.mail.Slug, b.agent, []int64{m.Cursor})
	if err != nil {
		return nil, err
	}
	if m.Acked || replied[m.Cursor].ByAgent {
		return nil, &Error{
			What:  refusal.Conflict("You have already answered or acknowledged message {name}: to say something else, write a reply."),
			Field: refusal.Message,
			Name:  m.ID,
		}
	}
	body := "No."
	if d.Yes {
		body = "Yes."
	}
	if d.Text != "" {
		body += "\n\n" + d.Text
	}
	sent, err := b.Reply(ctx, m.ID, Draft{To: []string{m.From}, Body: body})
	if err != nil {
		return nil, err
	}
	return &Decided{Asker: m.From, Subject: m.Subject, Question: whole.Body, Body: body, Sent: sent, ID: sent.ID, Acked: m.AckRequired}, nil
}
