// Package message reads an email as it comes over the wire into a struct that knows nothing of
// MIME: one sender, addresses, ids, a text, attachments.
//
//	Parse      reads a message; what it cannot read it names in Problems, and goes on
//	header.go  the header as a list of fields, and what single fields say
//	part.go    the tree of parts: which are the text, which attachments
//	decode.go  transfer encodings and charsets
//	html.go    HTML as markdown
//	bounce.go  delivery status reports
//
// Everything in a message is somebody else's words. Nothing here trusts a field; package auth says
// who vouches for From. Parse reads no clock and no file, and works in bounds: a message over
// MaxBytes, with a header over MaxHeader or with more than MaxReceived hops is an error, parts
// beyond the bounds are named as problems. What is left out of the struct is still in the raw
// message, which the caller keeps.
package message

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"mailtree/maildir/format"
)

// Limits of a message. A header over MaxHeader bytes or more Received fields than MaxReceived are
// refused by whoever takes mail in, and so is a message over MaxBytes.
const (
	MaxBytes    = 25 << 20
	MaxHeader   = 256 << 10
	MaxReceived = 50

	maxDepth      = 16        // multiparts in multiparts
	maxParts      = 200       // of all multiparts together
	maxText       = 1 << 20   // bytes of a body
	maxReferences = 200       // ids in References; the newest are kept
	maxMessageID  = 998       // bytes: a line
	maxSubject    = 998       // bytes: a line
	maxAddresses  = 500       // in To and Cc each
	maxProblems   = 50        // named by one message
	maxName       = 200       // bytes of an attachment's name
	maxHTML       = 256 << 10 // bytes of HTML that are turned into markdown
)

// Errors of Parse.
var (
	ErrTooLarge       = fmt.Errorf("the message has more than %d MiB", MaxBytes>>20)
	ErrHeaderTooLarge = fmt.Errorf("the header has more than %d KiB", MaxHeader>>10)
	ErrLoop           = fmt.Errorf("the message has more than %d Received fields: it goes round in a loop", MaxReceived)
	ErrEmpty          = errors.New("the message has no header")
)

// Message is what a message says. Addresses are local@domain, the domain in lower case and ASCII;
// ids are without < and >. Display names are left out: whoever sends chooses them.
type Message struct {
	Header        []Field // all fields, from the top
	From          string  // the one address in the one From field; "" where there is not exactly one
	To, Cc        []string
	ReplyTo       []string
	Subject       string    // one line; "" where there is none
	Date          time.Time // zero where there is none that can be read
	MessageID     string
	InReplyTo     string
	References    []string // oldest first
	AutoSubmitted string   // in lower case, without parameters; "" where there is none
	ListID        string   // what stands in the < and > of List-Id
	Precedence    string   // in lower case
	Body          string   // valid UTF-8 with LF as line end
	Markdown      bool     // Body is markdown, as sent or made from HTML; otherwise it is plain text
	HTML          string   // the HTML of the text, where the message has it
	Attachments   []Attachment
	Bounce        *Bounce  // what a delivery status report says; nil in other messages
	Repeated      []string // fields that must stand once and stand more often; the first one counts here
	Problems      []string // what could not be read, as sentences without their end
	Hash          [32]byte // see hash

	parts int // that were read
}

// Attachment is a file that came with a message.
type Attachment struct {
	Name string // a file name without folders, never ""
	Type string // such as image/png
	Data []byte
}

// Automatic reports whether a program wrote the message, or a list sent it on: nobody answers it by
// a program. Spec: RFC 3834 2.
func (m *Message) Automatic() bool {
	auto := m.AutoSubmitted != "" && m.AutoSubmitted != "no"
	bulk := m.Precedence == "bulk" || m.Precedence == "list" || m.Precedence == "junk"
	return auto || bulk || m.ListID != "" || m.Bounce != nil
}

// Parse reads a message. Errors: ErrTooLarge, ErrHeaderTooLarge, ErrLoop, ErrEmpty; everything else
// is named in Problems. The message does not share memory with raw.
func Parse(raw []byte) (*Message, error) {
	if len(raw) > MaxBytes {
		return nil, ErrTooLarge
	}
	head, body := splitHeader(raw)
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
	m.setText(m.part(m.Header, body, 0, "text/plain"))
	m.Hash = hash(m.Header, body)
	return m, nil
}

// problem notes what could not be read.
func (m *Message) problem(format string, args ...any) {
	if len(m.Problems) < maxProblems {
		m.Problems = append(m.Problems, fmt.Sprintf(format, args...))
	}
}

// setText makes the body of the pieces of text that the parts hold. They stay plain where each has a
// plain version.
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
