package maildir_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// TestAgentGoneWhileLookedUp checks that an agent is treated as missing if it is removed after the index query, but
// before the query's result is cached.
func TestAgentGoneWhileLookedUp(t *testing.T) {
	t.Parallel()
	var h halts
	p := project(t, storetest.Config{NoWatcher: true, Index: func(x index.Index) index.Index { return &watched{Index: x, looked: h.pass} }}, "Ann")
	profile := format.FormatProfile(format.Profile{Name: "Bob", Program: "x", Model: "y", Inception: time.Now()})
	put(t, p, format.ProfilePath("Bob"), string(profile)) // created by hand, so that Bob has not been looked up yet
	if err := p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	found := h.at(func(name string) bool { return name == "Bob" })
	looked := make(chan error, 1)
	go func() {
		_, err := p.Box("Bob", format.Origin{}).Inbox(t.Context(), index.InboxQuery{}, false, maildir.Waiting{})
		looked <- err
	}()
	<-found.reached
	if err := os.RemoveAll(filepath.Join(p.Dir(), "agents/Bob")); err != nil {
		t.Fatal(err)
	}
	if err := p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(found.goOn)
	<-looked
	_, err := p.Box("Ann", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"Bob"}, Subject: "to nobody", Body: "b"})
	if !errors.Is(err, maildir.ErrNotFound) {
		t.Errorf("sent to an agent that no longer exists: %v", err)
	}
}

// TestDeleteMailboxUnderWay checks a send and a removal of the recipient's folder that are in progress at the same
// time. A removal must take the mail in progress into account, and the server must write no mail to an agent whose
// folder has been removed. Otherwise, the folder would be recreated without a profile or an owner.
func TestDeleteMailboxUnderWay(t *testing.T) {
	t.Parallel()
	sent := func(p *maildir.Project) error {
		_, err := p.Box("Ann", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "b"})
		return err
	}
	deleted := func(p *maildir.Project) error {
		_, err := p.As(maildir.Caller{Root: true}, format.Origin{}).DeleteMailbox(t.Context(), "Bob", true)
		return err
	}
	for name, c := range map[string]struct {
		first, second func(p *maildir.Project) error
		want          error // the expected error of the second call
	}{
		"removed after a delivery":    {sent, deleted, nil},
		"delivered after the removal": {deleted, sent, maildir.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var h halts
			p := project(t, storetest.Config{NoWatcher: true, Step: h.pass}, "Ann", "Bob")
			journal := h.at(func(name string) bool { return name == "journal" })
			first, second := make(chan error, 1), make(chan error, 1)
			go func() { first <- c.first(p) }()
			<-journal.reached
			staged := h.at(func(name string) bool { return strings.HasPrefix(name, "stage ") })
			go func() { second <- c.second(p) }()
			await(t, func() bool { return maildir.Queued(p) == 1 })
			close(staged.goOn)
			close(journal.goOn)
			if err := <-first; err != nil {
				t.Error(err)
			}
			if err := <-second; !errors.Is(err, c.want) {
				t.Errorf("the second call: %v, want %v", err, c.want)
			}
			if who, err := p.Agents.Whois(t.Context(), "Bob"); !errors.Is(err, maildir.ErrNotFound) {
				t.Errorf("Bob exists: %+v %v", who, err)
			}
		})
	}
}
