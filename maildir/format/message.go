package format

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"mailtree/maildir/foreign"
	"mailtree/maildir/markdown"
	"mailtree/maildir/tree"
)

// Importance levels of a message, in ascending order. An empty importance is written as normal.
const (
	Low    = "low"
	Normal = "normal"
	High   = "high"
	Urgent = "urgent"
)

// Limits for a message. See docs/reference/tree.md, "A message".
const (
	MaxHeader     = 256 << 10 // bytes of JSON
	MaxSubject    = 998       // bytes
	MaxRecipients = 500
	maxDepth      = 32 // maximum nesting depth of the JSON header
)

// Attachment is a file in the tree that a message refers to.
type Attachment struct {
	Type      string `json:"type"` // "file", or Alternative
	MediaType string `json:"media_type"`
	Path      string `json:"path"` // below attachments/, slash-separated
	Bytes     int64  `json:"bytes"`
	SHA1      string `json:"sha1"`
	Name      string `json:"name,omitempty"`
}

// Alternative is the Type of an attachment that contains the body in another format (HTML).
const Alternative = "alternative"

// Message is the content of a message file: header and body. It shares no memory with a cache, so callers may change
// it.
type Message struct {
	ID          string
	ThreadID    string   // empty if the message does not belong to a thread
	Project     string   // the project's human key
	From        string   // in the same form as To
	To, CC, BCC []string // each is an Address in printed form: an agent's name, or local@domain
	Subject     string   // as the sender wrote it; never empty after ParseMessage
	Created     time.Time
	Importance  string // low, normal, high, urgent
	AckRequired bool
	InReplyTo   string
	References  []string  // the ids before InReplyTo, oldest first, if the sender listed any
	MessageID   string    // Message-ID of an external message, without < and >; empty if none
	Automatic   bool      // an external message from a program or a mailing list, to which no program may reply
	Date        time.Time // Date header of an external message; zero if it has none
	ReplyTo     []string  // reply addresses of an external message, in the form of To
	Problems    []string  // faults in an external message, as sentences without the final period
	Attachments []Attachment
	HTML        string // path of the HTML attachment that Body was converted from; empty if none
	Key         string // the sender's idempotency key; empty if none
	Origin
	Seal      string // the seal (see seal.go); empty in a file written by hand
	Digest    []byte // SHA-256 of the file without its seal; the seal signs this digest
	MediaType string // the body's type: empty for Markdown, otherwise PlainText
	Body      string

	// Extra contains the keys of a draft that mailtree does not use, in the form that FormatMessage writes. They are
	// kept in the files of the sent message. ParseMessage and the index leave Extra empty.
	Extra string
}

// Origin describes how a message, or the request to send it, reached the server. The seal covers the origin. The zero
// value is for files written by hand and for the server's own messages.
type Origin struct {
	Auth     string `json:"auth"`               // how the server authenticated the sender: none, token, uid:N, dmarc:DOMAIN
	Door     string `json:"door,omitempty"`     // the channel
	Terminal bool   `json:"terminal,omitempty"` // for DoorCLI: a user appears to have typed the command
}

// Person reports whether the origin shows that a user sent the message on the page, in a terminal, or by saving a
// file.
func (o Origin) Person() bool { return o.Terminal || o.Door == DoorPage || o.Door == DoorFile }

// PlainText is the MediaType of a body that is not Markdown.
const PlainText = "text/plain"

// field is a key in a message's header.
type field struct {
	key  string
	of   func(*Message) any // returns a pointer to the value: *string, *[]string, *bool, *time.Time or *[]Attachment
	uses uses
}

// uses is a set of flags that say how a key is used.
type uses int

const (
	always  uses = 1 << iota // written even if the value is empty
	given                    // a sender may set it, so a file in an outbox may contain it
	mutable                  // a user may change it in a sent message
	apart                    // written separately from the other keys
)

// fields lists all keys of a message, in the order in which they appear in a file. See docs/reference/tree.md, "A
// message".
var fields = []field{
	{"id", func(m *Message) any { return &m.ID }, always | given},
	{"thread_id", func(m *Message) any { return &m.ThreadID }, given},
	{"project", func(m *Message) any { return &m.Project }, 0},
	{"from", func(m *Message) any { return &m.From }, always | given},
	{"to", func(m *Message) any { return &m.To }, always | given},
	{"cc", func(m *Message) any { return &m.CC }, always | given},
	{"bcc", func(m *Message) any { return &m.BCC }, given},
	{"subject", func(m *Message) any { return &m.Subject }, always | given | mutable},
	{"created", func(m *Message) any { return &m.Created }, always},
	{"importance", func(m *Message) any { return &m.Importance }, always | given | mutable},
	{"ack_required", func(m *Message) any { return &m.AckRequired }, always | given | mutable},
	{"in_reply_to", func(m *Message) any { return &m.InReplyTo }, given},
	{"references", func(m *Message) any { return &m.References }, given},
	{"message_id", func(m *Message) any { return &m.MessageID }, 0},
	{"automatic", func(m *Message) any { return &m.Automatic }, 0},
	{"date", func(m *Message) any { return &m.Date }, 0},
	{"reply_to", func(m *Message) any { return &m.ReplyTo }, 0},
	{"problems", func(m *Message) any { return &m.Problems }, 0},
	{"media_type", func(m *Message) any { return &m.MediaType }, given},
	{"attachments", func(m *Message) any { return &m.Attachments }, always},
	{"html", func(m *Message) any { return &m.HTML }, 0},
	{"key", func(m *Message) any { return &m.Key }, given},
	{"auth", func(m *Message) any { return &m.Auth }, 0},
	{"door", func(m *Message) any { return &m.Door }, 0},
	{"terminal", func(m *Message) any { return &m.Terminal }, 0},
	{"seal", func(m *Message) any { return &m.Seal }, apart}, // written by Seal
}

// Keys returns the message keys that mailtree uses.
func Keys() []string {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	return keys
}

// fieldOf returns the field with the given key, or nil if there is none.
func fieldOf(key string) *field {
	i := slices.IndexFunc(fields, func(f field) bool { return f.key == key })
	if i < 0 {
		return nil
	}
	return &fields[i]
}

func (f *field) is(use uses) bool { return f.uses&use == use }

// Recipients returns to, cc and bcc, in that order.
func (m *Message) Recipients() []string {
	return slices.Concat(m.To, m.CC, m.BCC)
}

// KindFor returns "to", "cc" or "bcc", depending on how the message was addressed to the agent. It returns "to" if
// the header does not list the agent. See docs/reference/tree.md, "A message".
func (m *Message) KindFor(agent string) string {
	switch {
	case slices.Contains(m.To, agent):
		return "to"
	case slices.Contains(m.CC, agent):
		return "cc"
	case slices.Contains(m.BCC, agent):
		return "bcc"
	}
	return "to"
}

const (
	fenceOpen  = "---json"
	fenceClose = "---"
)

// ParseMessage parses the message file with the given id as its name. The error is a *tree.FormatError. A file that
// causes such an error is reported as a problem. ParseMessage never guesses what an invalid file means. It checks every
// limit except the file's size. See docs/reference/tree.md, "A message" and "Mail from other systems".
func ParseMessage(id string, data []byte) (*Message, error) {
	if IsForeign(data) {
		return parseForeignMail(id, data)
	}
	o, body, err := parseHeader(data)
	if err != nil {
		return nil, err
	}
	m := &Message{Body: body}
	if m.readHeader(o, 0); o.err != nil {
		return nil, o.err
	}
	m.Digest = digest(data, m.Seal)
	return m, m.check(id, o)
}

// check enforces the rules that involve several keys, and fills in missing values.
func (m *Message) check(id string, o *object) error {
	if m.Importance == "" {
		m.Importance = Normal
	}
	if m.Subject == "" {
		m.Subject = SubjectOf(m.Body)
	}
	switch {
	case m.ID == "":
		return o.bad("id", `"id" is missing: write the file's name without .md`)
	case m.ID != id:
		if strings.HasPrefix(id, m.ID+editBeside) {
			return o.bad("id", editedApart)
		}
		return o.bad("id", fmt.Sprintf("the id %s differs from the file's name %s: change the id, or rename the file", Quote(m.ID), Quote(id)))
	case m.From == "":
		return o.bad("from", `"from" is missing: write an agent's name, or an address`)
	case m.Created.IsZero():
		return o.bad("created", `"created" is missing: write a time such as 2025-10-23T15:22:14Z`)
	case !ValidImportance(m.Importance):
		return o.bad("importance", Quote(m.Importance)+" is not a valid importance: write low, normal, high or urgent")
	case len(m.Subject) > MaxSubject:
		return o.bad("subject", fmt.Sprintf("the subject is %d bytes long, over the limit of %d: put the rest into the body",
			len(m.Subject), MaxSubject))
	case len(m.ThreadID) > MaxThread:
		return o.bad("thread_id", fmt.Sprintf("the thread id is longer than %d bytes: shorten it", MaxThread))
	case len(m.To)+len(m.CC)+len(m.BCC) > MaxRecipients:
		return o.bad("to", fmt.Sprintf("the message has more than %d recipients: remove some", MaxRecipients))
	}
	if err := m.checkGateway(o); err != nil {
		return err
	}
	return m.checkAddresses(o)
}

// editedApart is the reason in the problem for a file that a merge wrote next to a message.
const editedApart = "two machines have edited this message, and this file is one of the two versions: copy what " +
	"you need into the message, then delete this file"

// MaxReference is the maximum length of a Message-ID in bytes. A Message-ID of that length fills one line of an
// email's header.
const MaxReference = 998

// MaxReferences is the maximum number of earlier messages that a message may refer to.
const MaxReferences = 100

// checkGateway checks the values of the keys that the gateway and the sealing server write.
func (m *Message) checkGateway(o *object) error {
	switch {
	case o.has("message_id") && !validMessageID(m.MessageID):
		return o.bad("message_id", fmt.Sprintf("%s is not a Message-ID: write it without < and >, on one line "+
			"without spaces, in at most %d bytes", Quote(m.MessageID), MaxReference))
	case m.HTML != "" && !slices.ContainsFunc(m.Attachments, func(a Attachment) bool { return a.Path == m.HTML }):
		return o.bad("html", Quote(m.HTML)+" is not the path of one of this message's attachments: write "+
			"such a path, or remove the key")
	case m.Auth != "" && !validAuth(m.Auth):
		return o.bad("auth", Quote(m.Auth)+" is not one of none, token, uid:N, dmarc:DOMAIN: remove the key, because only "+
			"the server sets it")
	case m.Door != "" && !slices.Contains(doors, m.Door):
		return o.bad("door", Quote(m.Door)+" is not one of "+strings.Join(doors, ", ")+": remove the key, because only the "+
			"server sets it")
	}
	return nil
}

func validMessageID(id string) bool {
	return id != "" && len(id) <= MaxReference && !strings.ContainsFunc(id, func(r rune) bool {
		return !unicode.IsPrint(r) || strings.ContainsRune(" <>", r)
	})
}

func validAuth(auth string) bool {
	kind, value, _ := strings.Cut(auth, ":")
	switch kind {
	case "uid":
		_, err := strconv.ParseUint(value, 10, 32)
		return err == nil
	case "dmarc":
		return checkDomain(value) == ""
	}
	return auth == "none" || auth == "token"
}

// checkAddresses checks the addresses of the sender and the recipients, and replaces each of them with its printed
// form.
func (m *Message) checkAddresses(o *object) error {
	from := []string{m.From}
	for _, l := range []struct {
		key   string
		names []string
	}{{"from", from}, {"to", m.To}, {"cc", m.CC}, {"bcc", m.BCC}, {"reply_to", m.ReplyTo}} {
		for i, n := range l.names {
			a, err := ParseAddress(n)
			if err != nil {
				return o.bad(l.key, err.Error())
			}
			l.names[i] = a.String()
		}
	}
	m.From = from[0]
	return nil
}

// SubjectOf returns the subject for a message that has none. See docs/reference/tree.md, "A message".
func SubjectOf(body string) string { return cmp.Or(markdown.FirstHeading(body), "(no subject)") }

// MaxThread is the maximum length of a thread id in bytes.
const MaxThread = 256

// ValidImportance reports whether s is low, normal, high or urgent.
func ValidImportance(s string) bool { return s == Low || s == Normal || s == High || s == Urgent }

// parseHeader parses the header of a message file and returns it with the body. The error is a
// *tree.FormatError.
func parseHeader(data []byte) (header *object, body string, err error) {
	raw, body, err := SplitMessage(data)
	if err != nil {
		return nil, "", err
	}
	header, err = parseObject(raw, 1)
	return header, body, err
}

// SplitMessage checks the fences and returns the header and body. The error is a *tree.FormatError.
func SplitMessage(data []byte) (header []byte, body string, err error) {
	unfit := func(line int, why string) ([]byte, string, error) {
		return nil, "", &tree.FormatError{Line: line, Reason: why}
	}
	first, rest, _ := bytes.Cut(data, []byte("\n"))
	switch word := string(bytes.TrimRight(first, " \t")); {
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		return unfit(1, "the file starts with a byte order mark: save it as UTF-8 without a BOM")
	case bytes.HasSuffix(first, []byte("\r")):
		return unfit(1, "the header has CRLF line endings: save the file with LF line endings")
	case word == foreign.TOML:
		return unfit(1, "the header is TOML between +++ lines, which is allowed only in mail from other mail systems: "+
			"write it as JSON between a line "+
			fenceOpen+" and a line ---")
	case word == fenceOpen && string(first) != fenceOpen:
		return unfit(1, "the line "+fenceOpen+" ends with spaces: remove them")
	case word != fenceOpen:
		return unfit(1, "the file must start with the line "+fenceOpen+": write the header below it, as JSON")
	}
	for at, line := 0, 2; at < len(rest); line++ {
		text, _, _ := bytes.Cut(rest[at:], []byte("\n"))
		end := min(at+len(text)+1, len(rest))
		switch word := string(bytes.Trim(text, " \t")); {
		case string(text) == fenceClose:
			return splitAt(rest[:at], rest[end:])
		case word == fenceClose && text[0] != '-':
			return unfit(line, "the header contains an indented "+fenceClose+": remove the spaces before it")
		case word == fenceClose:
			return unfit(line, "the line "+fenceClose+" below the header ends with spaces: remove them")
		}
		at = end
	}
	return unfit(1, "the header has no closing line "+fenceClose+": add it before the body")
}

// splitAt returns the header and the body for SplitMessage. The argument rest is the text after the closing fence.
func splitAt(header, rest []byte) ([]byte, string, error) {
	switch {
	case len(header) > MaxHeader:
		return nil, "", &tree.FormatError{Line: 1, Reason: fmt.Sprintf("the header is over %d bytes: shorten it", MaxHeader)}
	case bytes.IndexByte(header, '\r') >= 0:
		return nil, "", &tree.FormatError{Line: 1, Reason: "the header has CRLF line endings: save the file with LF line endings"}
	}
	return header, string(bytes.TrimSuffix(bytes.TrimPrefix(rest, []byte("\n")), []byte("\n"))), nil
}

// FormatMessage returns m as a file without a seal: the header's keys in a fixed order, one per line, then a blank
// line, and the body followed by one line ending. ParseMessage converts the result back into the same message.
func FormatMessage(m *Message) []byte {
	header := m.header(func(f *field, empty bool) bool { return !f.is(apart) && (f.is(always) || !empty) })
	if m.Extra != "" {
		header = slices.Concat(bytes.TrimSuffix(header, []byte("\n}")), []byte(m.Extra), []byte("\n}"))
	}
	return message(header, m.Body)
}

// message returns a message file with the given header and body.
func message(header []byte, body string) []byte {
	return slices.Concat([]byte(fenceOpen+"\n"), header, []byte("\n"+fenceClose+"\n\n"+body+"\n"))
}

// timeLayout is RFC 3339 in UTC with microseconds. See docs/reference/tree.md, "A message".
const timeLayout = "2006-01-02T15:04:05.000000Z"

// FormatTime returns t in the format that every file and response uses.
func FormatTime(t time.Time) string { return t.UTC().Format(timeLayout) }

// ParseTime parses an RFC 3339 time with any offset and precision. It returns the time in UTC, truncated to
// microseconds. The error's text is a clause that says what is wrong.
func ParseTime(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s is not a time such as 2025-10-23T15:22:14Z", Quote(s))
	}
	if t = t.UTC(); t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}, fmt.Errorf("%s is out of range", Quote(s))
	}
	return t.Truncate(time.Microsecond), nil
}
