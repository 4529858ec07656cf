package maildir_test

import (
	"context"
	"strings"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir/claim"
	"mailtree/maildir/history"
)

// TestSlowPlanHoldsNobody: while an operation is being planned that waits for the history to take what a person wrote, one whose
// files are in place already is made durable and answered.
func TestSlowPlanHoldsNobody(t *testing.T) {
	t.Parallel()
	var h, git halts
	history := func(x history.Log) history.Log { return slowHistory{x, func() { git.pass("preserve") }} }
	p := project(t, storetest.Config{NoWatcher: true, Step: h.pass, History: history}, "Ann", "Bob")
	claim := claim.Request{Agent: "Ann", Patterns: []string{"a.go"}}
	if _, err := p.Claim(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	renames := h.at(func(name string) bool { return strings.HasPrefix(name, "rename messages/") })
	sent := sendLater(t, p, "s")
	<-renames.reached
	preserve := git.at(isStep("preserve"))
	renewed := make(chan error, 1)
	go func() {
		_, err := p.Claim(t.Context(), claim)
		renewed <- err
	}()
	<-preserve.reached
	close(renames.goOn)
	defer func() {
		close(preserve.goOn)
		if err := <-renewed; err != nil {
			t.Error(err)
		}
	}()
	await(t, func() bool { return len(sent) > 0 })
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

// slowHistory is a history that a test may stop before it preserves something.
type slowHistory struct {
	history.Log
	before func()
}

func (x slowHistory) Preserve(ctx context.Context, paths []string) error {
	x.before()
	return x.Log.Preserve(ctx, paths)
}
