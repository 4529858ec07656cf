package tool

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// PoppedText returns a popped message as a single string, for tools whose responses do not have a separate field for
// each part. The text consists of the subject if there is one, a blank line, the body, and the attachments. The message
// is already marked as read, so the text must mention everything that it omits.
func PoppedText(p *maildir.Project, d *index.Delivery) string {
	body := d.Body
	if d.BodyNext > 0 {
		body += cutLine(p, d)
	}
	return poppedText(p, &d.MessageRow, body)
}

// OneText returns the space available for one PoppedText in a response. The function shape returns the response with
// the given text.
func (b Budget) OneText(ctx context.Context, p *maildir.Project, shape func(m *index.MessageRow, text string) any) *index.Room {
	line := strings.Repeat("x", maxCutLine)
	return b.Room(ctx, InTool, "", func(m *index.MessageRow) any { return shape(m, poppedText(p, m, line)) })
}

func poppedText(p *maildir.Project, m *index.MessageRow, body string) string {
	var parts []string
	if m.Subject != format.SubjectOf(body) {
		parts = append(parts, m.Subject)
	}
	if body != "" {
		parts = append(parts, body)
	}
	if len(m.Attachments) > 0 {
		parts = append(parts, attachmentList(p, m))
	}
	return strings.Join(parts, "\n\n")
}

// maxAttachmentList is the maximum size in bytes of a list of attachments. It is enough for the maximum of 50
// attachments in a sent message. A header that a user wrote may list thirty times as many.
const maxAttachmentList = 16 << 10

// attachmentList returns the names of the attachments, one per line, below a heading. It includes an attachment's path
// only if the file is in the store, because a header that a user wrote may contain any path.
func attachmentList(p *maildir.Project, m *index.MessageRow) string {
	list := "Attachments:"
	for i, a := range m.Attachments {
		name := cmp.Or(a.Name, path.Base(a.Path))
		line := "\n- " + format.Printable(name)
		if format.AttachmentSum(a.Path) != "" {
			line += ": " + format.Printable(filepath.Join(p.Dir(), a.Path))
		}
		if len(list)+len(line) > maxAttachmentList {
			return list + fmt.Sprintf("\n- %d more, listed in %s", len(m.Attachments)-i, filepath.Join(p.Dir(), m.Path))
		}
		list += line
	}
	return list
}

// cutLine returns the line that ends a truncated body. The line says which file contains the rest of the text.
func cutLine(p *maildir.Project, d *index.Delivery) string {
	return fmt.Sprintf("\n[truncated: the full body of %s, %d bytes, is in %s]", d.ID, d.BodyBytes, filepath.Join(p.Dir(), d.CopyPath))
}

// maxCutLine is larger than the length of any cutLine, because no path is longer than 4,096 bytes.
const maxCutLine = 4096 + 256
