package maildir_test

import (
	"errors"
	"strings"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// TestElsewhere checks that mail from another domain appears in an inbox like any other mail, and that no method
// treats an address at another domain as an agent's name.
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
	if got := maildir.StoreOf(p).Domains.Join([]string{"Bob", "ann@example.org"}); got != "Bob@mailtree.local, ann@example.org" {
		t.Error(got)
	}

	const elsewhere = `"ann@example.org" in project /abs/path/shop: an email address at another domain is not an agent`
	for verb, do := range map[string]func() error{
		"send from": func() error {
			_, err := p.Box("ann@example.org", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"Bob"}, Body: "b"})
			return err
		},
		"inbox": func() error {
			_, err := p.Box("ann@example.org", format.Origin{}).Inbox(t.Context(), index.InboxQuery{}, false, maildir.Waiting{})
			return err
		},
		"whois": func() error { _, err := p.Agents.Whois(t.Context(), "ann@example.org"); return err },
	} {
		if err := do(); !errors.Is(err, maildir.ErrNotFound) || !strings.Contains(err.Error(), elsewhere) {
			t.Errorf("%s: %v", verb, err)
		}
	}
	for verb, do := range map[string]func() error{
		"send": func() error {
			_, err := p.Box("Bob", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"Bob", "ann@example.org"}, Body: "b"})
			return err
		},
		"reply": func() error {
			_, err := p.Box("Bob", format.Origin{}).Reply(t.Context(), "x1", maildir.Draft{Body: "b"})
			return err
		},
	} {
		if err := do(); !errors.Is(err, maildir.ErrInvalid) || !strings.Contains(err.Error(), `does not send mail to "ann@example.org"`) {
			t.Errorf("%s: %v", verb, err)
		}
	}
}

// TestOwnAddresses checks that an agent's address at any of the store's domains refers to that agent, regardless of
// case, and that the agent gets only one copy. If an address at one of these domains does not belong to an agent, it
// must be refused as unknown.
func TestOwnAddresses(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{Domains: []string{"mail.example.net", "old.example.net"}}, "Ann", "Bob")
	ann := p.Box("Ann", format.Origin{})
	sent, err := ann.Send(t.Context(), maildir.Draft{To: []string{"Bob@OLD.example.net", "Bob"}, CC: []string{" Bob@mail.example.net"}, Body: "b"})
	if err != nil || strings.Join(sent.Recipients(), " ") != "Bob" {
		t.Errorf("%v %q", err, sent.Recipients())
	}
	if sent, err := ann.Send(t.Context(), maildir.Draft{To: []string{"bob@mail.example.net"}, Body: "b"}); err != nil || sent.To[0] != "Bob" {
		t.Errorf("in another case: %+v, %v", sent, err)
	}
	if _, err := ann.Send(t.Context(), maildir.Draft{To: []string{"Cat@mail.example.net"}, Body: "b"}); !errors.Is(err, maildir.ErrNotFound) {
		t.Error(err)
	}
}
