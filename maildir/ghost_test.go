package maildir_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
)

// TestAgentGoneWhileLookedUp: an agent that is removed between the look into the index and the note of what was found there is
// not taken for one that exists.
func TestAgentGoneWhileLookedUp(t *testing.T) {
	t.Parallel()
	var h halts
	p := project(t, storetest.Config{NoWatcher: true, Index: func(x maildir.Index) maildir.Index { return &watched{Index: x, looked: h.pass} }}, "Ann", "Bob")
	found := h.at(func(name string) bool { return name == "Bob" })
	looked := make(chan error, 1)
	go func() {
		_, err := p.Inbox(t.Context(), maildir.InboxQuery{Agent: "Bob"}, false, 0)
		looked <- err
	}()
	<-found.reached
	if err := os.RemoveAll(filepath.Join(p.Tree().Dir(), "agents/Bob")); err != nil {
		t.Fatal(err)
	}
	if err := p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(found.goOn)
	<-looked
	_, err := p.Send(t.Context(), maildir.Draft{From: "Ann", To: []string{"Bob"}, Subject: "to nobody", Body: "b"})
	if !errors.Is(err, maildir.ErrNotFound) {
		t.Errorf("sent to an agent that is gone: %v", err)
	}
}
