// Package message parses an email into a struct without MIME: one sender, addresses, ids, text, attachments.
//
//	Parse       parses a message; if it cannot read something, it adds that to Problems and continues
//	header.go   the header as a list of fields, and the values of single fields
//	address.go  senders and recipients
//	words.go    encoded words
//	part.go     the tree of parts: text and attachments
//	decode.go   transfer encodings
//	charset.go  charsets and their names
//	html.go     HTML as markdown; table.go: its tables
//	bounce.go   delivery status reports
//
// A stranger may have written everything in a message, so this package trusts no field. Package auth checks who
// vouches for From. Parse reads neither the clock nor files. Its work is bounded. A message over MaxBytes, with a
// header over MaxHeader or with more than MaxReceived hops is an error. Parts beyond the other limits are reported as
// problems. Whatever the struct omits is still in the raw message, which the caller keeps.
package message

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/format"
)

// Limits on a message. A server refuses incoming mail that is over MaxBytes, has a header over MaxHeader bytes, or
// has more Received fields than MaxReceived.
const (
	MaxBytes    = 25 << 20
	MaxHeader   = 256 << 10
	MaxReceived = 50

	maxDepth      = 16        // nested multiparts
	maxParts      = 200       // parts in all multiparts together
	maxText       = 1 << 20   // bytes of a body
	maxReferences = 200       // ids in References; the newest ids are kept
	maxMessageID  = 998       // bytes of a line
	maxSubject    = 998       // bytes of a line
	maxAddresses  = 500       // in To and in Cc each
	maxProblems   = 50        // problems per message
	maxName       = 200       // bytes of an attachment's name
	maxHTML       = 256 << 10 // bytes of HTML to convert to markdown, in the whole message
)

// Errors that Parse returns.
var (
	ErrTooLarge       = fmt.Errorf("the message is larger than %d MiB", MaxBytes>>20)
	ErrHeaderTooLarge = fmt.Errorf("the header is larger than %d KiB", MaxHeader>>10)
	ErrLoop           = fmt.Errorf("the message has more than %d Received fields: it is in a mail loop", MaxReceived)
	ErrEmpty          = errors.New("the message has no header")
)

// Message is a parsed email. Addresses have the form local@domain, with the domain in lower case and ASCII; ids do
// not include < and >. Display names are omitted, because the sender chooses them freely.
type Message struct {
	Header        []Field // all fields, from the top
	From          string  // the only address in the only From field; "" if there is not exactly one
	To, Cc        []string
	ReplyTo       []string
	Subject       string    // one line; "" if there is none
	Date          time.Time // zero if it is missing or cannot be read
	MessageID     string
	InReplyTo     string
	References    []string // oldest first
	AutoSubmitted string   // in lower case, without parameters; "" if missing
	ListID        string   // the text between < and > in List-Id
	Precedence    string   // in lower case
	Body          string   // valid UTF-8 with LF as the line end
	Markdown      bool     // Body is markdown, as sent or converted from HTML; otherwise it is plain text
	HTML          string   // the HTML of the text, if the message has HTML
	Attachments   []Attachment
	Bounce        *Bounce  // the content of a delivery status report; nil in other messages
	Repeated      []string // repeated fields that may occur only once; only the first is used, except To and Cc
	Problems      []string // what could not be read, as sentences without the final period
	Hash          [32]byte // see hash

	parts        int // parts read so far
	texts        int // number of these parts that are text to show
	alternatives int // number of multipart/alternative parts around the current part
	converted    int // bytes of HTML converted so far
}

// Attachment is a file in a message.
type Attachment struct {
	Name string // a file name without folders, never ""
	Type string // such as image/png
	Data []byte
}

// Automatic reports whether a program wrote the message or a mailing list forwarded it. No program should
// answer such a message. Spec: RFC 3834 2.
func (m *Message) Automatic() bool {
	auto := m.AutoSubmitted != "" && m.AutoSubmitted != "no"
	bulk := m.Precedence == "bulk" || m.Precedence == "list" || m.Precedence == "junk"
	return auto || bulk || m.ListID != "" || m.Bounce != nil
}

// Parse parses a message. It returns ErrTooLarge, ErrHeaderTooLarge, ErrLoop or ErrEmpty. Anything else that it cannot
// read is reported in Problems. The message does not share memory with raw.
func Parse(raw []byte) (*Message, error) {
	if len(raw) > MaxBytes {
		return nil, ErrTooLarge
	}
	head, body := splitHeader(raw)
	m, err := parseHeader(head)
	if err != nil {
		return nil, err
	}
	m.setText(m.part(m.Header, body, 0, "text/plain"))
	m.Hash = hash(m.Header, body)
	return m, nil
}

// ParseHeader parses only the header of a message, without the text, the attachments and the hash. raw is the
// message, or its first MaxHeader+1 bytes. ParseHeader returns the same errors as Parse.
func ParseHeader(raw []byte) (*Message, error) {
	head, _ := splitHeader(raw)
	return parseHeader(head)
}

// parseHeader parses a header.
func parseHeader(head []byte) (*Message, error) {
	if len(head) > MaxHeader {
		return nil, ErrHeaderTooLarge
	}
	m := &Message{}
	m.Header = m.fields(head)
	if len(m.Header) == 0 {
		return nil, ErrEmpty
	}
	if len(m.all("Received")) > MaxReceived {
		return nil, ErrLoop
	}
	m.readHeader()
	return m, nil
}

// problem records something that could not be read. It records each problem once.
func (m *Message) problem(format string, args ...any) {
	if len(m.Problems) >= maxProblems {
		return
	}
	if text := fmt.Sprintf(format, args...); !slices.Contains(m.Problems, text) {
		m.Problems = append(m.Problems, text)
	}
}

// setText builds the body from the text pieces in the parts. The body is plain text if every piece has a plain text
// version, and otherwise markdown.
func (m *Message) setText(pieces []piece) {
	var plain, html []string
	for _, p := range pieces {
		if p.html != "" {
			html = append(html, p.html)
			m.Markdown = m.Markdown || p.plain == ""
		}
		text := p.plain
		if text == "" {
			text = m.markdown(p.html)
		}
		if text = strings.Trim(text, "\n"); text != "" {
			plain = append(plain, text)
		}
	}
	m.HTML = strings.Join(html, "\n")
	m.Body = strings.Join(plain, "\n\n")
	if cut := format.Cut(m.Body, maxText); len(cut) < len(m.Body) {
		m.Body = cut
		m.problem("the text is longer than %d KiB: the rest is in the raw message", maxText>>10)
	}
}
