package maildir_test

import (
	"context"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
)

// TestSlowPlanHoldsNobody checks that the server writes other operations while one operation is waiting for a user's
// edit to be committed.
func TestSlowPlanHoldsNobody(t *testing.T) {
	t.Parallel()
	var git halts
	history := func(x history.Log) history.Log { return slowHistory{x, func() { git.pass("preserve") }} }
	p := project(t, storetest.Config{NoWatcher: true, History: history}, "Ann", "Bob")
	claim := claim.Request{Agent: "Ann", Patterns: []string{"a.go"}}
	if _, err := p.Box(claim.Agent, format.Origin{}).Claim(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	if err := p.FlushHistory(t.Context()); err != nil {
		t.Fatal(err)
	}
	preserve := git.at(isStep("preserve"))
	renewed := make(chan error, 1)
	go func() {
		_, err := p.Box(claim.Agent, format.Origin{}).Claim(t.Context(), claim)
		renewed <- err
	}()
	<-preserve.reached
	defer func() {
		close(preserve.goOn)
		if err := <-renewed; err != nil {
			t.Error(err)
		}
	}()
	send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "b"})
}

// slowHistory is a history that calls its before function whenever it is about to preserve files.
type slowHistory struct {
	history.Log
	before func()
}

func (x slowHistory) Preserve(ctx context.Context, paths []string) error {
	x.before()
	return x.Log.Preserve(ctx, paths)
}
