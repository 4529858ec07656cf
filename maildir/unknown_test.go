package maildir_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// TestUnknownOfMany checks that a refusal lists only the most similar name if there are too many agents to list all
// of them. The refusal of a word such as "everyone" must list the agents that the sender can write to.
func TestUnknownOfMany(t *testing.T) {
	t.Parallel()
	names := []string{"GreenCastle"}
	for i := range 20 {
		names = append(names, fmt.Sprintf("worker%02d", i))
	}
	p := project(t, storetest.Config{}, names...)
	refused := func(to string) (e *maildir.Error) {
		t.Helper()
		_, err := p.Box("GreenCastle", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{to}, Body: "b"})
		if !errors.As(err, &e) {
			t.Fatalf("%s: %v", to, err)
		}
		return e
	}
	if e := refused("GreenCastel"); e.All != nil || !slices.Equal(e.Near, []string{"GreenCastle"}) {
		t.Errorf("near %q, all %q", e.Near, e.All)
	}
	if diff := cmp.Diff(names[1:], refused("All").Near); diff != "" {
		t.Error(diff)
	}
}

// TestAllIsAName checks that mail to "all" is sent only to the agent with that name, if there is one.
func TestAllIsAName(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann", "Bob")
	profile := format.FormatProfile(format.Profile{Name: "all", Program: "x", Model: "y", Inception: time.Now()})
	put(t, p, format.ProfilePath("all"), string(profile)) // reserved, but a user may create it by hand
	if err := p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m := send(t, p, "Ann", maildir.Draft{To: []string{"all"}, Body: "b"}); !slices.Equal(m.To, []string{"all"}) {
		t.Errorf("sent to %q", m.To)
	}
}

// TestThreadOfReply checks that a thread can be read, page by page, by the id of a reply in it. If a thread with the
// same id as the reply also exists, that thread must be found instead.
func TestThreadOfReply(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	first := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Body: "b"})
	reply, err := p.Box("Bob", format.Origin{}).Reply(t.Context(), first.ID, maildir.Draft{Body: "r"})
	if err != nil {
		t.Fatal(err)
	}
	q := index.ThreadQuery{Thread: "<" + reply.ID + "@mailtree.local>", Limit: 1}
	for _, want := range []string{first.ID, reply.ID} {
		page, err := p.ThreadPage(t.Context(), q)
		if err != nil || page.Thread != first.ID || page.Note == nil || len(page.Messages) != 1 || page.Messages[0].ID != want {
			t.Fatalf("%+v, %v, want %s", page, err, want)
		}
		q.After = page.Next
	}
	send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Body: "b", ThreadID: reply.ID})
	page, err := p.ThreadPage(t.Context(), index.ThreadQuery{Thread: reply.ID})
	if err != nil || page.Thread != reply.ID || page.Note != nil || len(page.Messages) != 2 {
		t.Errorf("%+v, %v, want its own thread", page, err)
	}
}
