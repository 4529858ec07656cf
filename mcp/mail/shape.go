package mail

import (
	"context"
	"path/filepath"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/mcp/tool"
)

// These types define the form of the responses. They are used only on the wire. The output schemas are derived from
// their struct tags. See tool.OutputSchema.

type profileShape struct {
	Name       string     `json:"name"`
	Program    string     `json:"program"`
	Model      string     `json:"model"`
	Task       string     `json:"task_description"`
	Inception  string     `json:"inception_ts,omitempty"`
	LastActive string     `json:"last_active_ts,omitempty"`
	Status     string     `json:"status,omitempty"`
	Asks       bool       `json:"asks,omitempty"`
	Held       *HeldShape `json:"held,omitempty"`
	Editing    string     `json:"editing,omitempty"` // the last file that the agent edited, as reported by its client's hook
	Edited     string     `json:"edited_ts,omitempty"`
	Subject    string     `json:"last_subject,omitempty"` // subject of the newest message from the agent
	Project    string     `json:"project"`
	HumanKey   string     `json:"human_key"`
}

// HeldShape describes a hold on an agent. During a hold, the agent's edits and commits are refused.
type HeldShape struct {
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
	Until  string `json:"until_ts"`
}

func shapeHold(h *format.Hold) *HeldShape {
	if h == nil {
		return nil
	}
	return &HeldShape{h.By, h.Reason, tool.Stamp(h.Until)}
}

func shapeProfile(p *maildir.Project, a *index.AgentRow) profileShape {
	edit, _ := p.Edits.Last(a.Name)
	return profileShape{
		Editing:    edit.Path,
		Edited:     tool.Stamp(edit.At),
		Subject:    a.LastSubject,
		Name:       a.Name,
		Program:    a.Program,
		Model:      a.Model,
		Task:       a.Task,
		Inception:  tool.Stamp(a.Inception),
		LastActive: tool.Stamp(a.LastActive),
		Status:     p.Sessions.Status(a),
		Asks:       p.Sessions.Asks(a.Name),
		Held:       shapeHold(p.Holds.Of(a)),
		Project:    p.Slug,
		HumanKey:   p.HumanKey(),
	}
}

type attachmentShape struct {
	format.Attachment
	File string `json:"file,omitempty"` // path of the file, if the caller can open it
}

// view converts a project's mail to the form that one caller gets.
type view struct {
	*Toolset
	p     *maildir.Project
	note  string // note about the key that the caller passed for the project; "" if there is none
	files string // folder to which the paths of attachments are relative; "" if the caller is on another machine
}

func (t *Toolset) viewOf(ctx context.Context, p *maildir.Project, note string) *view {
	v := &view{Toolset: t, p: p, note: note}
	if tool.CallerOf(ctx).Here {
		v.files = p.Dir()
	}
	return v
}

func (v *view) shapeAttachments(l []format.Attachment) []attachmentShape {
	out := make([]attachmentShape, len(l))
	for i, a := range l {
		out[i].Attachment = a
		if v.files != "" && format.AttachmentSum(a.Path) != "" { // a header that a user wrote may contain any path
			out[i].File = filepath.Join(v.files, a.Path)
		}
	}
	return out
}

// Message is a message in the form that every agent may see.
type Message struct {
	ID          string            `json:"id"`
	ThreadID    string            `json:"thread_id,omitempty"`
	From        string            `json:"from"`
	To          []string          `json:"to"`
	CC          []string          `json:"cc"`
	BCC         []string          `json:"bcc,omitempty"`
	Subject     string            `json:"subject"`
	Created     string            `json:"created"`
	Importance  string            `json:"importance"`
	AckRequired bool              `json:"ack_required"`
	InReplyTo   string            `json:"in_reply_to,omitempty"`
	References  []string          `json:"references,omitempty"`
	MessageID   string            `json:"message_id,omitempty"`
	Date        string            `json:"date,omitempty"`
	ReplyTo     []string          `json:"reply_to,omitempty"`
	MediaType   string            `json:"media_type,omitempty"`
	HTML        string            `json:"html,omitempty"`
	Verified    bool              `json:"verified"` // sealed by a trusted server
	Auth        string            `json:"auth"`     // how the sender was authenticated, or "self-asserted"
	Attachments []attachmentShape `json:"attachments"`
	Omitted     int               `json:"attachments_omitted,omitempty"`
	bodyShape
	Receipts    []index.Receipt `json:"receipts,omitempty"`
	MoreReceipt int             `json:"more_receipts,omitempty"`
}

// bodyShape is all or part of a message body. It is empty if the caller did not request the body.
type bodyShape struct {
	Body       *string `json:"body_md,omitempty"`        // the sender's text: data, not instructions
	Truncated  bool    `json:"body_truncated,omitempty"` // true if the body continues at next_offset
	BodyBytes  int64   `json:"body_bytes,omitempty"`
	NextOffset int64   `json:"next_offset,omitempty"`
}

// Limits for header fields that may be arbitrarily long if a user wrote the header. In sent messages, these fields are
// much shorter.
const (
	maxReference       = format.MaxReference // bytes in an id or another short string
	maxReferenceBytes  = 16 << 10            // bytes in References as JSON
	maxAttachmentBytes = 64 << 10            // bytes in the list of attachments as JSON
	maxReceipts        = 100
)

func (v *view) shapeMessage(m *index.MessageRow, bodies bool) Message {
	s := v.shapeHead(m)
	if bodies {
		s.addBody(m)
	}
	return s
}

// shapeHead converts a message, without its body, to the form used in responses.
func (v *view) shapeHead(m *index.MessageRow) Message {
	voucher, verified := v.store.VerifiedIn(m)
	s := Message{
		ID:          m.ID,
		ThreadID:    m.ThreadID,
		From:        m.From,
		To:          tool.Listed(m.To),
		CC:          tool.Listed(m.CC),
		BCC:         m.BCC,
		Subject:     m.Subject,
		Created:     tool.Stamp(m.Created),
		Importance:  m.Importance,
		AckRequired: m.AckRequired,
		InReplyTo:   ifShort(m.InReplyTo),
		References:  newest(m.References),
		MessageID:   m.MessageID,
		Date:        tool.Stamp(m.Date),
		ReplyTo:     m.ReplyTo,
		MediaType:   ifShort(m.MediaType),
		HTML:        ifShort(m.HTML),
		Verified:    verified,
		Auth:        voucher.String(),
		Attachments: v.shapeAttachments(m.Attachments),
	}
	if len(m.Attachments) > 0 && len(tool.Encode(s.Attachments)) > maxAttachmentBytes {
		s.Attachments, s.Omitted = []attachmentShape{}, len(m.Attachments)
	}
	s.Receipts = m.Receipts[:min(len(m.Receipts), maxReceipts)]
	s.MoreReceipt = len(m.Receipts) - len(s.Receipts)
	return s
}

func ifShort(text string) string {
	if len(text) > maxReference {
		return ""
	}
	return text
}

// newest returns the newest ids, as many as fit in maxReferenceBytes.
func newest(ids []string) []string {
	size := 0
	for i := len(ids); i > 0; i-- {
		if size += len(tool.Encode(ids[i-1])) + 1; size > maxReferenceBytes {
			return ids[i:]
		}
	}
	return ids
}

// addBody adds the body, or the part of it that m contains.
func (s *bodyShape) addBody(m *index.MessageRow) {
	s.Body = &m.Body
	if m.BodyFrom > 0 || m.BodyNext > 0 {
		s.Truncated, s.BodyBytes, s.NextOffset = m.BodyNext > 0, m.BodyBytes, m.BodyNext
	}
}

// Delivery is a message as it appears in an inbox.
type Delivery struct {
	Message
	Kind string `json:"kind"` // to, cc, bcc, sent (by the agent) or thread (none of the others)
	index.Marks
	Archived bool `json:"archived,omitempty"`
}

// Inbox is the result of check_my_messages and the content of resource://inbox.
type Inbox struct {
	Project  string     `json:"project"`
	Agent    string     `json:"agent"`
	Messages []Delivery `json:"messages"`
	Unread   int        `json:"unread"`
	Total    int        `json:"total"`
	Archived int        `json:"archived,omitempty"`
	Next     string     `json:"next_cursor,omitempty"`
	Note     string     `json:"note,omitempty"`
}

// inboxRoom returns the space available for messages in a response about an agent's inbox.
func (v *view) inboxRoom(ctx context.Context, form tool.Encoding, agent string) *index.Room {
	return v.room(ctx, form, Inbox{Project: v.p.Slug, Agent: agent, Note: v.note})
}

// room returns the space available for messages in a response that also contains rest.
func (v *view) room(ctx context.Context, form tool.Encoding, rest any) *index.Room {
	return v.budget.Room(ctx, form, rest, func(m *index.MessageRow) any { return v.shapeHead(m) })
}

func (v *view) shapeInbox(agent string, page *maildir.InboxPage, bodies bool) Inbox {
	s := Inbox{
		Project:  v.p.Slug,
		Agent:    agent,
		Messages: make([]Delivery, len(page.Messages)),
		Unread:   page.Unread,
		Total:    page.Total,
		Archived: page.Archived,
		Next:     cursor(page.Next),
		Note:     notes(v.note, say(page.Note)),
	}
	for i := range page.Messages {
		s.Messages[i] = v.shapeDelivery(&page.Messages[i], bodies)
	}
	return s
}

func (v *view) shapeDelivery(d *index.Delivery, bodies bool) Delivery {
	return Delivery{
		Message:  v.shapeMessage(&d.MessageRow, bodies),
		Kind:     d.Kind,
		Marks:    d.Marks,
		Archived: d.Archived,
	}
}

type recipientsShape struct {
	To  []string `json:"to"`
	CC  []string `json:"cc"`
	BCC []string `json:"bcc"`
}

// Sent is a sent message as its sender sees it. No one else may see it, because it contains the bcc recipients.
type Sent struct {
	ID          string            `json:"id"`
	Created     string            `json:"created"`
	ThreadID    string            `json:"thread_id,omitempty"`
	Subject     string            `json:"subject"`
	Recipients  recipientsShape   `json:"recipients"`
	Attachments []attachmentShape `json:"attachments"`
	AlreadySent bool              `json:"already_sent,omitempty"`
	Acked       bool              `json:"acknowledged,omitempty"` // whether the reply acknowledged the original message
	Queued      []string          `json:"queued,omitempty"`       // projects to which the message has yet to be delivered
	Notes       []string          `json:"notes,omitempty"`
	Reply       *Delivery         `json:"reply,omitempty"`
}

func (v *view) shapeSent(m *maildir.Sent) Sent {
	var said []string
	if v.note != "" {
		said = append(said, v.note)
	}
	for _, n := range m.Notes {
		said = append(said, words.Say(n))
	}
	return Sent{
		ID:          m.ID,
		Created:     tool.Stamp(m.Created),
		ThreadID:    m.ThreadID,
		Subject:     m.Subject,
		Recipients:  recipientsShape{tool.Listed(m.To), tool.Listed(m.CC), tool.Listed(m.BCC)},
		Attachments: v.shapeAttachments(m.Attachments),
		AlreadySent: m.Again,
		Acked:       m.Acked,
		Queued:      m.Queued,
		Notes:       said,
	}
}

// answerSent returns the result of sending a message. It includes the reply if one arrives in time. If the call cannot
// wait, a note says so. The call cannot be refused instead, because the message has already been sent.
func (v *view) answerSent(ctx context.Context, m *maildir.Sent, wait time.Duration) Sent {
	s := v.shapeSent(m)
	if wait <= 0 {
		return s
	}
	d, err := tool.Box(ctx, v.p, m.From).AwaitReply(ctx, m, tool.Waiting(ctx, wait, v.stopping), v.room(ctx, tool.InTool, s))
	switch {
	case err != nil:
		s.Notes = append(s.Notes, words.Explain(err))
	case d != nil:
		const bodies = true
		reply := v.shapeDelivery(d, bodies)
		s.Reply = &reply
	}
	return s
}

type claimShape struct {
	Path      string `json:"path"`
	Exclusive bool   `json:"exclusive"`
	Reason    string `json:"reason"`
	Created   string `json:"created_ts"`
	Expires   string `json:"expires_ts"`
	Matches   *int   `json:"matches,omitempty"` // number of tracked files that match the claim
}

func shapeClaims(l []claim.Row) []claimShape {
	out := make([]claimShape, len(l))
	for i, c := range l {
		out[i] = claimShape{
			Path:      c.Pattern,
			Exclusive: c.Exclusive,
			Reason:    c.Reason,
			Created:   tool.Stamp(c.Created),
			Expires:   tool.Stamp(c.Expires),
		}
	}
	return out
}
