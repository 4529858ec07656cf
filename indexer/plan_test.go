package indexer

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// TestIndexesUsed checks that each index in the schema is used by at least one query. An unused index would slow down
// every write without any benefit.
func TestIndexesUsed(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	d.send(format.Message{ID: "m1", From: "Ann", To: []string{"Bob"}, Subject: "s", Body: "b", ThreadID: "T", Key: "k", AckRequired: true})
	putFile(t, d.dir, "agents/Bob/inbox/m1.ack", "2025-10-24T00:00:00Z\n")
	ingest(t, d.Index, "p", "agents/Bob/inbox/m1.ack")
	var errs []error
	ask := func(err error) { errs = append(errs, err) }
	for n := range 8 {
		_, _, err := d.Inbox(ctx, index.InboxQuery{Project: "p", Agent: "Bob", UnreadOnly: n&1 != 0, UrgentOnly: n&2 != 0, Archived: n&4 != 0})
		ask(err)
		_, err = d.Box(ctx, index.BoxQuery{Project: "p", Agent: "Bob", Sent: n&1 != 0, HideArchived: n&2 != 0, Limit: 1})
		ask(err)
	}
	for _, kind := range []format.Kind{format.KindProfile, format.KindCanonical, format.KindOther} {
		_, err := d.Names(ctx, "p", kind, "x", 1)
		ask(err)
		_, err = d.ProjectsWith(ctx, kind, "x")
		ask(err)
	}
	for _, rank := range []bool{false, true} {
		q := asked(t, "b thread:T")
		q.Rank = rank
		_, err := d.Search(ctx, q)
		ask(err)
	}
	_, err := d.Threads(ctx, index.ThreadsQuery{Project: "p", Agent: "Bob"})
	ask(err)
	_, err = d.CountMatches(ctx, asked(t, "b"), 1)
	ask(err)
	_, err = d.Message(ctx, "p", "m1", index.WithBody, nil)
	ask(err)
	_, err = d.Delivery(ctx, "p", "Bob", "m1", index.WithBody, nil)
	ask(err)
	_, err = d.Deliveries(ctx, "p", "Bob", []string{"m1"})
	ask(err)
	_, err = d.Awaiting(ctx, index.InboxQuery{Project: "p", Agent: "Ann"})
	ask(err)
	_, err = d.Due(ctx, index.DueQuery{Project: "p", Agent: "Bob", Most: 1})
	ask(err)
	_, err = d.Replied(ctx, "p", "Bob", []int64{1})
	ask(err)
	_, err = d.Hidden(ctx, "p", "Bob", time.Now())
	ask(err)
	_, err = d.Outlines(ctx, "p", []int64{1})
	ask(err)
	_, err = d.Asked(ctx, "p", testStart, 1)
	ask(err)
	_, err = d.Acts(ctx, "p", "Bob", 1)
	ask(err)
	_, err = d.Attached(ctx, "p", "00")
	ask(err)
	_, err = d.Receipts(ctx, "p", "m1")
	ask(err)
	_, err = d.OldestUnread(ctx, "p", "Bob", 1)
	ask(err)
	_, err = d.Thread(ctx, index.ThreadQuery{Project: "p", Thread: "T"})
	ask(err)
	_, err = d.ShortBodies(ctx, "p", "T", 0)
	ask(err)
	_, err = d.FromElsewhere(ctx, "p", "a@b.example")
	ask(err)
	_, err = d.Keyed(ctx, "p", "Ann", "k")
	ask(err)
	_, err = d.IDKeyed(ctx, "p", "Bob", "k")
	ask(err)
	_, err = d.Newest(ctx, 1)
	ask(err)
	_, err = d.Agents(ctx, "p")
	ask(err)
	_, err = d.AgentsAfter(ctx, "p", "", 1)
	ask(err)
	_, err = d.LastRead(ctx, "p")
	ask(err)
	_, err = d.Claims(ctx, "p")
	ask(err)
	_, err = d.ClaimsAt(ctx, "p", []string{"claims/x.json"})
	ask(err)
	_, err = d.Files(ctx, "p", "m1")
	ask(err)
	_, err = d.Problems(ctx, "p", 1)
	ask(err)
	_, err = d.Changes(ctx, 0, 1)
	ask(err)
	_, err = d.NewestChanges(ctx, "p", 0, 1)
	ask(err)
	_, err = d.Reconcile(ctx, "p", nil)
	ask(err)
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	d.write.Lock()
	defer d.write.Unlock()
	var plans strings.Builder
	texts := append(slices.Collect(maps.Keys(d.stmts)), slices.Collect(maps.Keys(d.w.stmts))...)
	for _, text := range texts {
		switch first, _, _ := strings.Cut(text, " "); first {
		case "SELECT", "WITH", "UPDATE", "DELETE":
		default:
			continue
		}
		rows, err := d.w.conn.QueryContext(ctx, "EXPLAIN QUERY PLAN "+text, slices.Repeat([]any{7}, 16)...)
		if err != nil {
			t.Fatal(text, err)
		}
		for rows.Next() {
			var a, b, c int
			var detail string
			if err := rows.Scan(&a, &b, &c, &detail); err != nil {
				t.Fatal(err)
			}
			plans.WriteString(detail + " \n")
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^CREATE (?:UNIQUE )?INDEX (\w+)`).FindAllStringSubmatch(schema, -1) {
		if !strings.Contains(plans.String(), " INDEX "+m[1]+" ") {
			t.Errorf("no query uses %s", m[1])
		}
	}
}
