// Package message parses an email into a struct without MIME details: one sender, addresses, ids, text and
// attachments.
//
//	Parse       parses a message, and records in Problems anything that it cannot read
//	header.go   the header as a list of fields, and the values of single fields
//	address.go  senders and recipients
//	words.go    encoded words
//	part.go     the tree of parts: text and attachments
//	decode.go   transfer encodings
//	charset.go  charsets and their names
//	html.go     HTML to markdown; table.go: tables in HTML
//	bounce.go   delivery status reports
//
// Everything in a message may come from a stranger, so this package does not trust any field. Package auth checks
// which domain vouches for From. Parse uses neither the clock nor files, and limits its work. If a message exceeds
// MaxBytes, MaxHeader or MaxReceived, Parse returns an error. Parts beyond the other limits are reported as problems.
// The caller keeps the raw message, which contains everything that the struct omits.
package message

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/format"
)

// Limits on a message. A server refuses incoming mail that is larger than MaxBytes, has a header larger than MaxHeader,
// or has more than MaxReceived Received fields.
const (
	MaxBytes    = 25 << 20
	MaxHeader   = 256 << 10
	MaxReceived = 50

	maxDepth      = 16        // depth of nested multiparts
	maxParts      = 200       // total number of parts in all multiparts
	maxText       = 1 << 20   // bytes of a body
	maxReferences = 200       // ids in References; the newest are kept
	maxMessageID  = 998       // bytes; the standard's limit for the length of a line
	maxSubject    = 998       // bytes; the standard's limit for the length of a line
	maxAddresses  = 500       // addresses in each of To and Cc
	maxProblems   = 50        // problems per message
	maxName       = 200       // bytes of an attachment's name
	maxHTML       = 256 << 10 // bytes of HTML in the whole message that are converted to markdown
)

// Errors returned by Parse.
var (
	ErrTooLarge       = fmt.Errorf("the message is larger than %d MiB", MaxBytes>>20)
	ErrHeaderTooLarge = fmt.Errorf("the header is larger than %d KiB", MaxHeader>>10)
	ErrLoop           = fmt.Errorf("the message has more than %d Received fields, so it is probably in a mail loop", MaxReceived)
	ErrEmpty          = errors.New("the message has no header")
)

// Message is a parsed email. Addresses have the form local@domain, with the domain in ASCII and lower case. Ids do not
// include < and >. Display names are omitted, because senders choose them freely.
type Message struct {
	Header        []Field // all fields, from top to bottom
	From          string  // the address in the From field; "" unless there is exactly one field with exactly one address
	To, Cc        []string
	ReplyTo       []string
	Subject       string    // one line; "" if there is none
	Date          time.Time // zero if missing or unreadable
	MessageID     string
	InReplyTo     string
	References    []string // oldest first
	AutoSubmitted string   // in lower case and without parameters; "" if missing
	ListID        string   // the text between < and > in List-Id
	Precedence    string   // in lower case
	Body          string   // valid UTF-8 with LF line endings
	Markdown      bool     // whether Body is markdown (sent as such or converted from HTML) rather than plain text
	HTML          string   // the text as HTML; "" if the message contains no HTML
	Attachments   []Attachment
	Bounce        *Bounce  // content of a delivery status report; nil for other messages
	Repeated      []string // fields that occur more often than allowed; except for To and Cc, only the first is used
	Problems      []string // sentences that describe what could not be read, without trailing periods
	Hash          [32]byte // identifies the message; computed by the function hash

	parts        int // parts read so far
	texts        int // number of parts with displayed text read so far
	alternatives int // number of multipart/alternative parts that enclose the current part
	converted    int // bytes of HTML converted so far
}

// Attachment is a file in a message.
type Attachment struct {
	Name string // file name without folders; never ""
	Type string // such as image/png
	Data []byte
}

// Automatic reports whether the message was written by a program or forwarded by a mailing list. Programs must not
// reply to such a message. Spec: RFC 3834 2.
func (m *Message) Automatic() bool {
	auto := m.AutoSubmitted != "" && m.AutoSubmitted != "no"
	bulk := m.Precedence == "bulk" || m.Precedence == "list" || m.Precedence == "junk"
	return auto || bulk || m.ListID != "" || m.Bounce != nil
}

// Parse parses a message. Its only errors are ErrTooLarge, ErrHeaderTooLarge, ErrLoop and ErrEmpty. It reports
// anything else that cannot be read in Problems. The result does not share memory with raw.
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

// ParseHeader parses only a message's header, without its text, attachments and hash. The parameter raw is the whole
// message or its first MaxHeader+1 bytes. ParseHeader returns the same errors as Parse.
func ParseHeader(raw []byte) (*Message, error) {
	head, _ := splitHeader(raw)
	return parseHeader(head)
}

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

// problem records that something could not be read. It records each problem only once.
func (m *Message) problem(format string, args ...any) {
	if len(m.Problems) >= maxProblems {
		return
	}
	if text := fmt.Sprintf(format, args...); !slices.Contains(m.Problems, text) {
		m.Problems = append(m.Problems, text)
	}
}

// setText builds the body from the pieces of text found in the parts. The body is plain text if every piece has a
// plain text version, and markdown otherwise.
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
		m.problem("the text is longer than %d KiB; the rest is in the raw message", maxText>>10)
	}
}
