package sending

import (
	"context"
	"strings"

	"mailtree/maildir/attachment"
	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
)

// MakeForward turns an order into a forward of the message with the given id. The order's text is followed by the
// message's author, time and quoted text. The forward includes the message's attachments, except the HTML version of
// its text. It begins a new thread, so it neither answers nor acknowledges the message. MakeForward returns
// ErrNotFound if the message or the file of one of its attachments does not exist.
func (s *Sender) MakeForward(ctx context.Context, id string, d *Order) error {
	row, err := s.mail.HeadNamed(ctx, refusal.Message, id)
	if err != nil {
		return err
	}
	m, _, err := s.mail.ReadMessage(row.Path, row.ID)
	if err != nil {
		return refusal.Disk(err)
	}
	d.Subject = forwardSubject(m.Subject)
	if d.Body = strings.TrimSpace(d.Body); d.Body != "" {
		d.Body += "\n\n"
	}
	d.Body += format.Printable(m.From) + " wrote on " + m.Created.UTC().Format("2006-01-02 15:04 MST") + ":\n\n" + quoted(m.Body)
	for _, a := range m.Attachments {
		if a.Type == format.Alternative {
			continue
		}
		f, err := attachment.Copied(a, s.mail.Tree)
		if err != nil {
			return refusal.Disk(err)
		}
		if f == nil {
			return &refusal.Error{
				What: refusal.NotFound("The attachment {name} of message {id} is not in the mail tree, so the message cannot be " +
					"forwarded."),
				Name: a.Name,
				ID:   row.ID,
			}
		}
		d.Files = append(d.Files, *f)
	}
	return nil
}

// forwardSubject prepends "Fwd: " to a subject, unless the subject already begins with it.
func forwardSubject(s string) string {
	s = plainSubject(s)
	if len(s) >= 4 && strings.EqualFold(s[:4], "fwd:") {
		return s
	}
	return "Fwd: " + format.Cut(s, format.MaxSubject-5)
}

// quoted returns text as a Markdown quotation.
func quoted(text string) string {
	text = strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	return strings.ReplaceAll("> "+strings.ReplaceAll(text, "\n", "\n> "), "> \n", ">\n") + "\n"
}
