package indexer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// TestBox checks that copies are listed by name in descending order, regardless of their creation times. Invalid files,
// and a second copy with the same id, must not be listed and must not take up room on a page.
func TestBox(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for i, id := range []string{"b", "d", "a", "c"} {
		d.send(format.Message{ID: id, From: "Ann", To: []string{"Bob"}, BCC: []string{"Cat"}, Subject: "s",
			Created: testStart.Add(time.Duration(i) * time.Hour)})
	}
	putFile(t, d.dir, "agents/Bob/inbox/x/c.md", string(format.FormatMessage(&format.Message{ID: "c", From: "Ann", To: []string{"Bob"},
		Subject: "twin", Created: testStart, Importance: "normal"})))
	putFile(t, d.dir, "agents/Bob/inbox/cc.md", "broken")
	putFile(t, d.dir, "agents/Ann/outbox/x/c.md", string(format.FormatMessage(&format.Message{ID: "c", From: "Ann",
		To: []string{"Bob"}, Subject: "twin", Created: testStart, Importance: "normal"})))
	putFile(t, d.dir, "agents/Bob/inbox/a.read", "")
	putFile(t, d.dir, "agents/Cat/inbox/d.archived", "")
	ingest(t, d.Index, "p", "agents")
	for _, tt := range []struct {
		q    index.BoxQuery
		want string
	}{
		{index.BoxQuery{Agent: "Bob", Limit: 9}, "d c b a+read"},
		{index.BoxQuery{Agent: "Bob", Limit: 2}, "d c"},
		{index.BoxQuery{Agent: "Bob", Limit: 2, Offset: 2}, "b a+read"},
		{index.BoxQuery{Agent: "Bob", Limit: 2, Offset: 4}, ""},
		{index.BoxQuery{Agent: "Bob", Limit: 2, Before: "c"}, "b a+read"},
		{index.BoxQuery{Agent: "Bob", Limit: 2, Before: "a"}, ""},
		{index.BoxQuery{Agent: "Bob"}, ""},
		{index.BoxQuery{Agent: "Bob", Limit: 9, ID: "c"}, "c"},
		{index.BoxQuery{Agent: "Bob", Limit: 9, ID: "cc"}, ""},
		{index.BoxQuery{Agent: "Cat", Limit: 9}, "d+read c b a"},
		{index.BoxQuery{Agent: "Cat", Limit: 9, HideArchived: true}, "c b a"},
		{index.BoxQuery{Agent: "Bob", Limit: 9, Sent: true}, ""},
		{index.BoxQuery{Agent: "Ann", Limit: 9, Sent: true}, "d+Cat2 c+Cat2 b+Cat2 a+Cat2"},
		{index.BoxQuery{Agent: "Nobody", Limit: 9}, ""},
	} {
		tt.q.Project = "p"
		rows, err := d.Box(t.Context(), tt.q)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range rows {
			s := r.ID
			if r.Read {
				s += "+read"
			}
			if tt.q.Sent {
				s += fmt.Sprintf("+%s%d", strings.Join(r.BCC, ","), r.Holders)
			}
			got = append(got, s)
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%+v: %q, want %q", tt.q, s, tt.want)
		}
	}
}

// TestBoxCost checks that SQLite reads a page from an index, in the index's order, without sorting and without
// reading any other copies. Invariant I11.
func TestBoxCost(t *testing.T) {
	t.Parallel()
	x := openIndex(t)
	for _, q := range []index.BoxQuery{{}, {HideArchived: true}, {ID: "m"}, {Sent: true}, {Sent: true, ID: "m"}, {Sent: true, Before: "m"}} {
		text, kind := boxQuery(q)
		steps := strings.Join(planOf(t, x, text, 1, "Bob", int(kind), q.ID+q.Before, 50, 0), "\n")
		if !strings.HasPrefix(steps, "SEARCH f USING COVERING INDEX files_copies (aid=? AND kind=?") ||
			strings.Contains(steps, "SCAN") || strings.Contains(steps, "B-TREE FOR ORDER") ||
			q.Sent && !strings.Contains(steps, "SEARCH g USING PRIMARY KEY (pid=? AND name=?)") {
			t.Errorf("%+v:\n%s", q, steps)
		}
	}
}

// TestFilesCost checks that SQLite finds the files of a message without reading the rows of other files. Invariant
// I11.
func TestFilesCost(t *testing.T) {
	t.Parallel()
	steps := strings.Join(planOf(t, openIndex(t), filesQuery, 1, `["m.md"]`), "\n")
	if !strings.Contains(steps, "SEARCH f USING PRIMARY KEY (pid=? AND name=?)") {
		t.Error(steps)
	}
}

// planOf returns the steps of SQLite's plan for a query.
func planOf(t *testing.T, x *Index, text string, args ...any) (plan []string) {
	t.Helper()
	err := x.each(t.Context(), "EXPLAIN QUERY PLAN "+text, args, func(scan scanner) error {
		var id, parent, none int
		var step string
		err := scan(&id, &parent, &none, &step)
		plan = append(plan, step)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}
