package record

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

var start = time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)

func hours(n int) time.Time { return start.Add(time.Duration(n) * time.Hour) }

// TestOnce checks the order of decisions, and that two kinds of duplicates are removed: decisions with the same words
// in the same thread, and copies of a message in other projects.
func TestOnce(t *testing.T) {
	t.Parallel()
	entry := func(project, thread, id, from, text string, hour int) Entry {
		return Entry{Project: project, Thread: thread, ID: id, From: from, Text: text, At: format.At(hours(hour))}
	}
	all := []Entry{
		entry("web", "T", "m1", "Ann@shop", "Use UTC", 1),
		entry("shop", "T", "m1", "Ann", "Use UTC", 1),
		entry("shop", "T", "m1", "Ann", "Keep the index", 1),
		entry("shop", "T", "m2", "Bob", "use  utc", 2),
		entry("shop", "T-2", "m3", "Cid", "Use UTC", 3),
	}
	var got []string
	for _, d := range once(all) {
		got = append(got, strings.Join([]string{d.Project, d.ID, d.From, d.Text}, " "))
	}
	want := []string{"shop m3 Cid Use UTC", "shop m1 Ann Keep the index", "shop m1 Ann Use UTC"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if none := once(nil); none == nil {
		t.Error("no decisions are nil")
	}
}

// TestSettle checks which threads are closed and which questions are open.
func TestSettle(t *testing.T) {
	t.Parallel()
	ask := func(project, thread, id, from string, hour, settled int) asked {
		a := asked{project, index.Asked{ID: id, Thread: thread, From: from, Subject: "Re: " + id, Created: hours(hour)}}
		if settled > 0 {
			a.Settled = hours(settled)
		}
		return a
	}
	all := []asked{
		ask("shop", "settled-before", "a", "Ann", 1, 2),
		ask("shop", "settled-since", "b", "Ann", 1, 6),
		ask("shop", "one-open", "c", "Ann", 1, 6),
		ask("shop", "one-open", "d", "Bob", 2, 0),
		ask("shop", "one-open", "e", "Bob", 3, 0),
		ask("shop", "old-and-new", "f", "Ann", 1, 2),
		ask("shop", "old-and-new", "g", "Ann", 4, 7),
		ask("web", "copy", "h", "Ann@shop", 4, 7), // settled in the other project
		ask("shop", "copy", "h", "Ann", 4, 0),
		ask("web", "x", "i", "Cid", 9, 0),
	}
	closed, open := settle(all, hours(5))
	var got []string
	for _, q := range open {
		got = append(got, strings.Join([]string{q.Project, q.Thread, q.ID, q.Text, q.From}, " "))
	}
	if diff := cmp.Diff([]string{"web x i i Cid", "shop one-open e e Bob"}, got); diff != "" || closed != 3 {
		t.Errorf("%d threads are closed\n%s", closed, diff)
	}
	if closed, open := settle(nil, start); closed != 0 || open == nil {
		t.Errorf("of no questions, %d are closed and %v open", closed, open)
	}
}

// TestVisitBefore checks that visitBefore returns the end of the previous visit.
func TestVisitBefore(t *testing.T) {
	t.Parallel()
	now := hours(10)
	before := func(minutes ...int) (acts []time.Time) {
		for _, m := range minutes {
			acts = append(acts, now.Add(-time.Duration(m)*time.Minute))
		}
		return acts
	}
	for _, c := range []struct {
		acts []time.Time
		want int // minutes before now
	}{
		{nil, 24 * 60},
		{before(90), 90},
		{before(60), 60},
		{before(59), 24 * 60},               // only the current visit
		{before(5, 40, 70), 24 * 60},        // still only the current visit
		{before(800, 5, 40, 130), 130},      // the actions may be in any order
		{before(-120, 5, 90), 90},           // a time in the future is ignored
		{before(5, 90, 100, 110, 4000), 90}, // the end of the visit, not its beginning
	} {
		if got := now.Sub(visitBefore(c.acts, now)); got != time.Duration(c.want)*time.Minute {
			t.Errorf("%v: %v before, want %d minutes", c.acts, got, c.want)
		}
	}
}
