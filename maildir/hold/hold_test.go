package hold

import (
	"testing"
	"time"

	"mailtree/maildir/format"
)

// TestStops checks when a hold stops its agent.
func TestStops(t *testing.T) {
	now := time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC)
	at := func(since, until time.Duration) *format.Hold {
		return &format.Hold{By: "robin", Since: now.Add(since), Until: now.Add(until)}
	}
	for _, c := range []struct {
		name string
		hold *format.Hold
		want bool
	}{
		{"no hold", nil, false},
		{"in the middle", at(-time.Hour, time.Hour), true},
		{"just before the end", at(-time.Hour, 1), true},
		{"at the end", at(-time.Hour, 0), false},
		{"after the end", at(-2*time.Hour, -time.Hour), false},
		{"written by a clock that is ahead", at(time.Minute, time.Hour), true},
	} {
		if got := Stops(c.hold, now); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// TestSentence checks the sentence with and without a reason.
func TestSentence(t *testing.T) {
	h := &format.Hold{By: "robin"}
	if got := Sentence(h, "AmberFox"); got != "robin holds AmberFox" {
		t.Error(got)
	}
	h.Reason = "wait for me"
	if got := Sentence(h, "AmberFox"); got != "robin holds AmberFox: wait for me" {
		t.Error(got)
	}
}
