package maildir_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/writer"
)

// TestObserve checks that each operation is reported once, with its summary and its result.
func TestObserve(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var told []string
	observe := func(op writer.Op, took time.Duration, err error) {
		mu.Lock()
		defer mu.Unlock()
		if took <= 0 {
			t.Errorf("%s took %s", op.Verb, took)
		}
		ended := "ok"
		if err != nil {
			ended = refusal.Code(err)
		}
		told = append(told, fmt.Sprintf("%s %s: %s, %s", op.Verb, op.Agent, op.Summary, ended))
	}
	p := project(t, storetest.Config{Observe: observe}, "Ann", "Bob")
	mu.Lock()
	told = nil
	mu.Unlock()
	send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "one"})
	if _, err := p.Box("Ann", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"Cid"}, Subject: "two"}); err == nil {
		t.Error("sent to nobody")
	}
	if err := p.Agents.SetPresence(t.Context(), "Ann", "ready"); err != nil {
		t.Error(err)
	}
	want := []string{"send Ann: Ann -> Bob: one, ok", "send Ann: , not_found", "presence Ann: Ann is ready, ok"}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}
