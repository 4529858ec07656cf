package format

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// foreignMail is a message in the form in which another mail system stores it.
const foreignMail = `+++
id = "2025-01-15-103000-meeting"
message_id = "<abc@example.org>"
from = "Ann Lee <ann@Example.org>"
to = "agent@example.com, \"Doe, J\" <j@example.com>"
cc = ["Bob <bob@example.org>"]
reply_to = "list@example.org"
subject = "Meeting"
date = "Wed, 15 Jan 2025 11:30:00 +0100"
in_reply_to = "<0@example.org>"
references = "<1@example.org> <0@example.org>"
thread_id = "t1"
trusted = "true"
auth = "dmarc:example.org"
door = "gateway"
seal = "0123456789abcdef:AAAA"
read = true
delivery_status = "delivered"
key = "k"
[[attachments]]
filename = "plan.pdf"
+++

See the **plan**.
`

// TestForeignMail checks that the sender, recipients, time and content of mail from another system are read. Keys
// that say that the mail is trusted, proven, sealed, read or delivered must be ignored.
func TestForeignMail(t *testing.T) {
	t.Parallel()
	const id = "2025-01-15-103000-meeting"
	want := &Message{
		ID: id, MessageID: "abc@example.org", From: "ann@example.org", To: []string{"agent@example.com", "j@example.com"}, CC: []string{"bob@example.org"},
		ReplyTo: []string{"list@example.org"}, Subject: "Meeting", Created: time.Date(2025, 1, 15, 10, 30, 0, 0, time.UTC), InReplyTo: "0@example.org",
		References: []string{"1@example.org", "0@example.org"}, ThreadID: "t1", Importance: Normal, Body: "See the **plan**.",
	}
	sum := sha256.Sum256([]byte(foreignMail))
	want.Digest = sum[:]
	got, err := ParseMessage(id, []byte(foreignMail))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if file, err := Canonical(id, []byte(foreignMail)); err != nil || !bytes.Equal(file, []byte(foreignMail)) {
		t.Errorf("the message's canonical form is %s, %v", file, err)
	}
	if _, err := Rewrite([]byte(foreignMail), got); err == nil {
		t.Error("the message was rewritten")
	}
	if u, err := ParseUnsent([]byte(foreignMail)); err == nil && u.ID == "" {
		t.Errorf("in an outbox, the message is treated as new: %+v, %v", u, err)
	}
}

// TestForeignForms checks that missing values and unusual forms of values are accepted if they are unambiguous.
func TestForeignForms(t *testing.T) {
	t.Parallel()
	const head = "+++\nmessage_id = '1@example.org'\nfrom = 'Ann'\n"
	for name, tt := range map[string]struct {
		lines string
		is    func(m *Message) bool
	}{
		"date of TOML":      {"date = 2025-01-15T10:30:00Z\n", func(m *Message) bool { return m.Created.Hour() == 10 }},
		"date with no zone": {"date = 2025-01-15T10:30:00\n", func(m *Message) bool { return m.Created.Hour() == 10 }},
		"created":           {"date = 2025-01-15T10:30:00Z\ncreated = '2025-01-15T12:00:00+01:00'\n", func(m *Message) bool { return m.Created.Hour() == 11 }},
		"zone GMT":          {"date = 'Wed, 15 Jan 2025 10:30:00 GMT'\n", func(m *Message) bool { return m.Created.Hour() == 10 }},
		"no subject":        {"date = 2025-01-15T10:30:00Z\n", func(m *Message) bool { return m.Subject == "Text." }},
		"loose names":       {"date = 2025-01-15T10:30:00Z\nto = ['[Bot] CI <ci@example.org>', 'BlueLake']\n", func(m *Message) bool { return m.To[0] == "ci@example.org" && m.To[1] == "BlueLake" }},
		"undisclosed":       {"date = 2025-01-15T10:30:00Z\nto = 'undisclosed-recipients:;'\n", func(m *Message) bool { return len(m.To) == 0 }},
		"importance":        {"date = 2025-01-15T10:30:00Z\nimportance = 'High'\n", func(m *Message) bool { return m.Importance == High }},
		"no word for it":    {"date = 2025-01-15T10:30:00Z\nimportance = 'huge'\n", func(m *Message) bool { return m.Importance == Normal }},
	} {
		m, err := ParseMessage("m1", []byte(head+tt.lines+"+++\nText.\n"))
		if err != nil || m.ID != "m1" || !tt.is(m) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
	for name, tt := range map[string]struct{ file, want string }{
		"a draft":     {"+++\nto = 'Bob'\n+++\nText.\n", `"id" is missing`},
		"no date":     {head + "+++\nText.\n", `"created" is missing`},
		"named zone":  {head + "date = 'Wed, 15 Jan 2025 10:30:00 MST'\n+++\nText.\n", `line 4: "date": `},
		"no time":     {head + "x = 1\ndate = 'soon'\n+++\nText.\n", `line 5: "date": "soon" is not a time`},
		"no address":  {head + "date = 2025-01-15T10:30:00Z\nto = 'a b@x y'\n+++\nText.\n", "line 5: "},
		"many keys":   {head + manyKeys(1100) + "+++\n", "more than 1000 keys"},
		"not TOML":    {head + "date\n+++\n", "line 4: the header is not valid TOML"},
		"edited twin": {strings.Replace(foreignMail, "2025-01-15-103000-meeting", "m1", 1), "two machines have edited this message"},
	} {
		id := "m1"
		if name == "edited twin" {
			id = "m1" + editBeside + "0123456789ab"
		}
		if m, err := ParseMessage(id, []byte(tt.file)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

// manyKeys returns lines with n keys.
func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d = 1\n", i)
	}
	return b.String()
}
