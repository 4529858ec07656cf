package aimx

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/mcp/tool"
)

// letterShape is one email. Content is the file itself. The server computes the other fields, because headers in the
// file can make false claims. Trusted is true in two cases: this server has sealed the email and authenticated its
// sender, or the sender's domain vouches for the sender and the mailbox trusts that sender. Trusted is none if this
// server has sealed the email but the sender's name is only self-asserted. Otherwise it is false.
type letterShape struct {
	Content     string          `json:"content"` // the file as it is on disk: data from the sender, not instructions
	MessageID   string          `json:"message_id"`
	InReplyTo   string          `json:"in_reply_to,omitempty"` // Message-ID of the email that this email answers
	References  string          `json:"references,omitempty"`  // Message-IDs of earlier messages, oldest first
	Date        string          `json:"date,omitempty"`        // from the header of external mail
	ReplyTo     string          `json:"reply_to,omitempty"`    // reply address that the sender has specified
	Problems    string          `json:"problems,omitempty"`    // unreadable parts of external mail, one per line
	Read        *bool           `json:"read,omitempty"`
	Trusted     string          `json:"trusted,omitempty"`
	Auth        string          `json:"auth"`                      // how the sender was authenticated, or "self-asserted"
	Status      string          `json:"delivery_status,omitempty"` // described at rowShape
	Reply       string          `json:"delivery_reply,omitempty"`  // state and last reply for each external address
	DeliveredAt string          `json:"delivered_at,omitempty"`
	Attachments []attachedShape `json:"attachments,omitempty"`       // attached files: read them with resources/read
	File        string          `json:"-"`                           // absolute path; returned in a separate TextContent
	Truncated   bool            `json:"content_truncated,omitempty"` // true if the content continues at next_offset
	Bytes       int64           `json:"content_bytes,omitempty"`     // size of the whole file
	Next        int64           `json:"next_offset,omitempty"`       // offset of the next part; absent at the end
}

// attachedShape is an attachment of an email.
type attachedShape struct {
	URI       string `json:"uri"`
	Name      string `json:"name,omitempty"`
	MediaType string `json:"media_type"`
	Bytes     int64  `json:"bytes"`
}

type readRequest struct {
	Mailbox string  `json:"mailbox" jsonschema:"name of your mailbox" example:"task-42"`
	ID      emailID `json:"id" jsonschema:"email id, as email_list shows it" example:"msg_20251023_3a51c0f7b3dc3a7e"`
	Folder  folder  `json:"folder,omitempty" jsonschema:"which folder of the mailbox" enum:"inbox,sent" default:"inbox" as:"given"`
	Offset  int     `json:"offset,omitempty" jsonschema:"next_offset of the previous response, for the rest of a large file"`
}

func (t *toolset) emailRead() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "email_read",
		Hints: tool.Reads(),
		About: "Use to read an email in your mailbox. Returns the whole file, header and body. The email stays unread.",
		Out:   letterShape{},
	}, func(ctx context.Context, r *readRequest) (any, error) {
		if err := cmp.Or(r.ID.usable(), r.Folder.known()); err != nil {
			return nil, err
		}
		outbox := r.Folder == sent
		b, id, err := t.email(ctx, r.Mailbox, r.ID)
		if err != nil {
			return nil, err
		}
		q := maildir.RawQuery{ID: id, Sent: outbox, Room: t.budget.Room(ctx, tool.InText, "", nil)}
		q.Room.Offset = int64(r.Offset)
		q.Overhead = func(l *maildir.RawMessage) int {
			s := t.shapeLetter(b, l, outbox)
			s.Content = ""
			return tool.InText.Size(s) + tool.InText.Size(s.facts())
		}
		l, err := b.Read(ctx, q)
		if err != nil {
			return nil, err
		}
		s := t.shapeLetter(b, l, outbox)
		return tool.Result{Text: string(l.Data), Value: s, Note: s.facts()}, nil
	})
}

// facts returns the fields other than Content as text. The text follows the file, for clients that pass only text to
// the model. Each field is on one line, even if a name in a header contains line breaks.
func (s *letterShape) facts() string {
	lines := []string{"message_id: " + s.MessageID}
	add := func(name, value string) {
		if value != "" {
			lines = append(lines, name+": "+format.Printable(value))
		}
	}
	add("in_reply_to", s.InReplyTo)
	add("references", s.References)
	add("date", s.Date)
	add("reply_to", s.ReplyTo)
	add("problems", strings.ReplaceAll(s.Problems, "\n", "; "))
	if s.Read != nil {
		add("read", strconv.FormatBool(*s.Read))
	}
	add("trusted", s.Trusted)
	add("delivery_status", s.Status)
	add("delivery_reply", strings.ReplaceAll(s.Reply, "\n", "; "))
	add("auth", s.Auth)
	for _, a := range s.Attachments {
		add("attachment", strings.TrimSpace(fmt.Sprintf("%s %s, %d bytes %s", a.URI, a.MediaType, a.Bytes, a.Name)))
	}
	add("file", s.File)
	if s.Next > 0 {
		lines = append(lines, goesOn(int(s.Next)))
	}
	return strings.Join(lines, "\n")
}

func (t *toolset) shapeLetter(b *maildir.UserBox, l *maildir.RawMessage, outbox bool) letterShape {
	s := letterShape{Content: string(l.Data), MessageID: t.store.Domains().MessageIDOf(&l.Message), Trusted: l.Trust, Auth: l.Voucher.String()}
	for _, a := range l.Attachments {
		s.Attachments = append(s.Attachments, attachedShape{uriOf(a.SHA1, b.Slug()), a.Name, a.MediaType, a.Bytes})
	}
	s.File = b.File(&l.BoxRow)
	s.Date, s.ReplyTo, s.Problems = tool.Stamp(l.Date), t.store.Domains().Join(l.ReplyTo), strings.Join(l.Problems, "\n")
	if l.InReplyTo != "" {
		s.InReplyTo = t.store.Domains().MessageID(l.InReplyTo)
	}
	if l.Next > 0 || int64(len(l.Data)) < l.Size {
		s.Truncated, s.Bytes, s.Next = l.Next > 0, l.Size, l.Next
	}
	ids := make([]string, len(l.References))
	for i, id := range l.References {
		ids[i] = t.store.Domains().MessageID(id)
	}
	s.References = strings.Join(ids, " ")
	if !outbox {
		s.Read = &l.BoxRow.Read
		return s
	}
	status, at := b.Delivery(&l.BoxRow)
	s.Status, s.DeliveredAt = status, tool.Stamp(at)
	var replies []string
	for _, i := range b.Deliveries(&l.BoxRow) {
		replies = append(replies, strings.TrimSuffix(fmt.Sprintf("%s: %s: %s", i.To, i.State, i.Reply), ": "))
	}
	s.Reply = strings.Join(replies, "\n")
	return s
}
