package maildir_test

import (
	"errors"
	"strings"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/refusal"
)

// TestIDOf: ids and Message-IDs of every domain name a message, with brackets or without; nothing else does. "" is refused.
func TestIDOf(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Config{})
	long := strings.Repeat("x", 998-len("@a"))
	for in, want := range map[string]string{
		"msg_1": "msg_1", " <msg_1@mailtree.local> ": "msg_1", "msg_1@MAILTREE.LOCAL": "msg_1", "<msg_1>": "msg_1",
		"<1.a+b@example.org>": "1.a+b@example.org", "a@b@mailtree.local": "a@b@mailtree.local", long + "@a": long + "@a",
		"": "", "<>": "", "<<msg_1>>": "", "<msg_1": "", "msg_1>": "", "garbage <>": "", "two words": "", "a@b c": "", "<a@b> <c@d>": "", "a@b,c@d": "",
		"@": "", "a@": "", "@a": "", "@mailtree.local": "", "../msg_1": "", "a/b@mailtree.local": "", "é": "", "a\u202e@b": "", long + "x@a": "", long: "",
	} {
		got, err := s.IDOf(refusal.InReplyTo, in)
		if got != want || errors.Is(err, maildir.ErrInvalid) != (want == "") {
			t.Errorf("%q: %q %v, want %q", in, got, err, want)
		}
	}
}

// TestElsewhere: mail from elsewhere lies in an inbox like any other; no verb takes such an address for an agent's name.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Bob")
	put(t, p, "agents/Bob/inbox/x1.md", `---json
{"id": "x1", "from": "ann@Example.org", "to": ["Bob", "cat@example.org"], "created": "2025-10-23T15:22:14Z"}
---

text
`)
	until(t, "the mail is there", func() bool { return len(inbox(t, p, "Bob").Messages) == 1 })
	if d := inbox(t, p, "Bob").Messages[0]; d.From != "ann@example.org" || strings.Join(d.To, " ") != "Bob cat@example.org" {
		t.Errorf("from %q to %q", d.From, d.To)
	}
	if s := maildir.StoreOf(p); s.Addresses([]string{"Bob", "ann@example.org"}) != "Bob@mailtree.local, ann@example.org" {
		t.Error(s.Addresses([]string{"Bob", "ann@example.org"}))
	}

	const elsewhere = `"ann@example.org" in project /abs/path/shop: a name with a domain is somebody elsewhere`
	for verb, do := range map[string]func() error{
		"send to": func() error {
			_, err := p.Send(t.Context(), maildir.Draft{From: "Bob", To: []string{"Bob", "ann@example.org"}, Body: "b"})
			return err
		},
		"send from": func() error {
			_, err := p.Send(t.Context(), maildir.Draft{From: "ann@example.org", To: []string{"Bob"}, Body: "b"})
			return err
		},
		"inbox": func() error {
			_, err := p.Inbox(t.Context(), maildir.InboxQuery{Agent: "ann@example.org"}, false, 0)
			return err
		},
		"whois": func() error { _, err := p.Whois(t.Context(), "ann@example.org"); return err },
	} {
		if err := do(); !errors.Is(err, maildir.ErrNotFound) || !strings.Contains(err.Error(), elsewhere) {
			t.Errorf("%s: %v", verb, err)
		}
	}
	if _, err := p.Reply(t.Context(), maildir.ReplyDraft{From: "Bob", ReplyTo: "x1", Body: "b"}); !errors.Is(err, maildir.ErrNotFound) ||
		!strings.Contains(err.Error(), `was written by "ann@example.org", who is not an agent of project`) {
		t.Errorf("reply: %v", err)
	}
}
