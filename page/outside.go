package page

import (
	"io"
	"net/mail"
	"strings"
	"unicode"

	"mailtree/maildir/attachment"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// Mail from another domain is shown with the sender's name, which is untrusted, and with the word "outside".

// Outside reports whether party is an address at another domain, rather than an agent of another project.
func (v *view) Outside(party string) bool {
	return strings.Contains(party, "@") && !v.page.cfg.Store.InAnotherProject(party)
}

// rawEmail returns the message's last attachment, which contains the original email. If the message was not received as
// an email, rawEmail returns nil.
func rawEmail(m *index.MessageRow) *format.Attachment {
	last := len(m.Attachments) - 1
	if m.Door != format.DoorGateway || last < 0 || m.Attachments[last].MediaType != "message/rfc822" {
		return nil
	}
	return &m.Attachments[last]
}

// Files returns the attachments that are shown below the message.
func (m messageShown) Files() []format.Attachment { return m.split(false) }

// RawParts returns the attachments from which the server derived the message's text: the original email and its HTML.
func (m messageShown) RawParts() []format.Attachment { return m.split(true) }

func (m messageShown) split(raw bool) (all []format.Attachment) {
	email := rawEmail(&m.MessageRow)
	for i := range m.Attachments {
		a := &m.Attachments[i]
		if isRaw := email != nil && (a == email || a.Type == format.Alternative); isRaw == raw {
			all = append(all, *a)
		}
	}
	return all
}

// Limits for reading a sender's name: the number of bytes to read from an email's header, and the number of
// characters in the name.
const (
	mostHeader     = 64 << 10
	mostSenderName = 80
)

// senderName returns the display name that the sender of an email has chosen, or "" if there is none. It omits a name
// that looks like an address, because it might be mistaken for the sender's real address.
func (v *view) senderName(m *index.MessageRow) string {
	raw := rawEmail(m)
	if raw == nil {
		return ""
	}
	f, err := v.p.OpenAttachment(raw.SHA1, attachment.MaxFile)
	if err != nil {
		return ""
	}
	defer f.Close()
	email, err := mail.ReadMessage(io.LimitReader(f, mostHeader))
	if err != nil {
		return ""
	}
	from, err := email.Header.AddressList("From")
	if err != nil || strings.ContainsAny(from[0].Name, "@＠") {
		return ""
	}
	name := []rune(strings.TrimSpace(strings.Map(printable, from[0].Name)))
	return string(name[:min(len(name), mostSenderName)])
}

// printable drops control characters and characters that change the writing direction.
func printable(r rune) rune {
	if unicode.In(r, unicode.Cc, unicode.Cf) {
		return -1
	}
	return r
}

// foldQuote splits plain text into the part before its trailing quote and the quote. The page folds the quote like a
// quote in Markdown. If the text does not end in a quote or consists only of a quote, quote is "".
func foldQuote(body string) (text, quote string) {
	lines := strings.SplitAfter(body, "\n")
	at := len(lines)
	for at > 0 && (lines[at-1][:min(1, len(lines[at-1]))] == ">" || strings.TrimSpace(lines[at-1]) == "") {
		at--
	}
	for at < len(lines) && strings.TrimSpace(lines[at]) == "" {
		at++
	}
	text = strings.Join(lines[:at], "")
	if at == len(lines) || strings.TrimSpace(text) == "" {
		return body, ""
	}
	return text, strings.Join(lines[at:], "")
}

// Text returns the part of a message's plain text before the quote at its end.
func (m messageShown) Text() string {
	text, _ := foldQuote(m.Body)
	return text
}

// Quote returns the quote at the end of a message's plain text, or "" if there is none.
func (m messageShown) Quote() string {
	_, quote := foldQuote(m.Body)
	return quote
}
