// Package out sends mail to other domains.
//
//	Mail.Compose  creates an email from a message
//	Signer        signs an email (DKIM)
//	Queue         retries until an email is sent, and records the result
//	smarthost.go  delivery through one server that relays everything
//	mx.go         delivery directly to the recipient's server
//	transfer.go   one message over one connection
//
// A message that the remote server has accepted is never sent again. If the remote server does not reply after the end
// of a message, it may have accepted the message. Such a message is sent again only at the user's request.
package out

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"mime"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	gomessage "github.com/emersion/go-message"
	"github.com/emersion/go-message/mail"

	"mailtree/maildir/markdown"
)

// Mail is a message to send. Addresses have the form local@domain. Ids do not include < and >.
type Mail struct {
	From        mail.Address // including the display name
	To, Cc      []string
	Subject     string
	Date        time.Time
	MessageID   string
	InReplyTo   string
	References  []string // oldest first; may include InReplyTo
	Body        string   // markdown
	TextOnly    bool     // whether Body is plain text and the email has no HTML
	HTML        string   // sent unchanged; if "", the HTML is created from Body
	Attachments []Attachment
	Automatic   string // value of the Auto-Submitted field, auto-generated or auto-replied; if empty, the field is omitted
}

// Attachment is a file that is sent with a message.
type Attachment struct {
	Name string
	Type string // media type; "" means application/octet-stream
	Data []byte
}

// Compose returns the email to send. The same Mail always produces the same bytes. The result is ASCII unless the local
// part of an address contains non-ASCII characters. If a field cannot be written, the error names the field.
func (m *Mail) Compose() ([]byte, error) {
	if err := m.refused(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	header := m.header()
	if len(m.Attachments) == 0 {
		if err := m.writeText(header, func(h gomessage.Header) (*gomessage.Writer, error) { return gomessage.CreateWriter(&b, h) }); err != nil {
			return nil, err
		}
		return b.Bytes(), nil
	}
	header.Set("Content-Type", m.multipart("mixed"))
	w, err := gomessage.CreateWriter(&b, header)
	if err != nil {
		return nil, err
	}
	if err := m.writeText(gomessage.Header{}, w.CreatePart); err != nil {
		return nil, err
	}
	for _, a := range m.Attachments {
		if err := writePart(w, a.header(), a.Data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// refused returns an error if a field's content would break the header.
func (m *Mail) refused() error {
	for name, values := range map[string][]string{
		"from": {m.From.Address}, "to": m.To, "cc": m.Cc, "message_id": {m.MessageID},
	} {
		for _, v := range values {
			if strings.ContainsFunc(v, unwritable) {
				return fmt.Errorf("%s: %q cannot be written in an email header", name, v)
			}
		}
	}
	return nil
}

// unwritable reports whether a character would break a list of addresses or ids.
func unwritable(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`<>",;`, r) }

// strangeID reports whether an id from another program cannot be written in an email. Only ASCII is certain to arrive
// intact. If a message has such an id, replies to it omit the id.
func strangeID(id string) bool { return !ascii(id) || strings.ContainsFunc(id, unwritable) }

func (m *Mail) header() gomessage.Header {
	var h mail.Header
	// The library writes the fields in reverse order of the calls to Set.
	h.Set("MIME-Version", "1.0")
	if m.Automatic != "" {
		h.Set("Auto-Submitted", m.Automatic)
	}
	references := slices.DeleteFunc(slices.Clone(m.References), strangeID)
	if m.InReplyTo != "" && !strangeID(m.InReplyTo) {
		if len(references) == 0 || references[len(references)-1] != m.InReplyTo {
			references = append(references, m.InReplyTo)
		}
		h.SetMsgIDList("In-Reply-To", []string{m.InReplyTo})
	}
	h.SetMsgIDList("References", references)
	h.SetMessageID(m.MessageID)
	h.SetDate(m.Date)
	h.SetSubject(strings.Join(strings.Fields(m.Subject), " "))
	h.SetAddressList("Cc", addresses(m.Cc))
	h.SetAddressList("To", addresses(m.To))
	h.SetAddressList("From", []*mail.Address{{Name: strings.Join(strings.Fields(m.From.Name), " "), Address: m.From.Address}})
	return h.Header
}

func addresses(list []string) (all []*mail.Address) {
	for _, a := range list {
		all = append(all, &mail.Address{Address: a})
	}
	return all
}

// writeText writes the body as plain text, or as both plain text and HTML.
func (m *Mail) writeText(header gomessage.Header, create func(gomessage.Header) (*gomessage.Writer, error)) error {
	html := m.html()
	if html == "" {
		text := textHeader("plain")
		for f := text.Fields(); f.Next(); {
			header.Set(f.Key(), f.Value())
		}
		w, err := create(header)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, lineEnds(m.Body)); err != nil {
			return err
		}
		return w.Close()
	}
	header.Set("Content-Type", m.multipart("alternative"))
	w, err := create(header)
	if err != nil {
		return err
	}
	if err := writePart(w, textHeader("plain"), []byte(lineEnds(m.Body))); err != nil {
		return err
	}
	if err := writePart(w, textHeader("html"), []byte(lineEnds(html))); err != nil {
		return err
	}
	return w.Close()
}

func writePart(w *gomessage.Writer, h gomessage.Header, data []byte) error {
	part, err := w.CreatePart(h)
	if err != nil {
		return err
	}
	if _, err := part.Write(data); err != nil {
		return err
	}
	return part.Close()
}

func textHeader(kind string) (h gomessage.Header) {
	h.Set("Content-Transfer-Encoding", "quoted-printable")
	h.Set("Content-Type", "text/"+kind+"; charset=utf-8")
	return h
}

// lineEnds converts line endings to CRLF. The result ends with exactly one line ending.
func lineEnds(s string) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	return strings.ReplaceAll(strings.TrimRight(s, "\n")+"\n", "\n", "\r\n")
}

// multipart returns a media type with a boundary derived from the message.
func (m *Mail) multipart(kind string) string {
	sum := sha256.Sum256([]byte(kind + m.MessageID + m.Body))
	return mime.FormatMediaType("multipart/"+kind, map[string]string{"boundary": "mt_" + hex.EncodeToString(sum[:12])})
}

// header returns the header of an attachment. Non-ASCII names are encoded according to RFC 2231.
func (a Attachment) header() (h gomessage.Header) {
	kind := a.Type
	if _, _, err := mime.ParseMediaType(kind); err != nil || strings.HasPrefix(kind, "multipart/") || strings.HasPrefix(kind, "message/") {
		kind = "application/octet-stream" // base64 is not allowed for multiparts and messages
	}
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": strings.ToValidUTF8(a.Name, "_")}))
	h.Set("Content-Transfer-Encoding", "base64")
	h.Set("Content-Type", kind)
	return h
}

// html returns the body's HTML, or "" if the message has none.
func (m *Mail) html() string {
	if m.TextOnly || m.HTML != "" {
		return m.HTML
	}
	text, ok := markdown.Render(m.Body)
	if !ok {
		return ""
	}
	return markdown.Clean(text, clean())
}

// clean returns the policy for HTML in emails. The policy allows the elements that markdown.Render creates, except
// those that only a web page needs. It is built on first use.
var clean = sync.OnceValue(func() markdown.Policy {
	matches := func(pattern string) func(string) bool { return regexp.MustCompile(pattern).MatchString }
	p := markdown.Bare("h1", "h2", "h3", "h4", "h5", "h6", "p", "br", "hr", "em", "strong", "del", "code", "pre", "ul", "li",
		"blockquote", "table", "thead", "tbody", "tr")
	aligned := markdown.Attributes{"align": matches(`^(left|right|center)$`)}
	p["th"], p["td"] = aligned, aligned
	p["ol"] = markdown.Attributes{"start": matches(`^[0-9]+$`)}
	p["a"] = markdown.Attributes{"href": markdown.WebAddress}
	return p
})
