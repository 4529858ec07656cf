package indexer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/fixtures/bulk"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// told formats a thread as a single line of text.
func told(t *index.ThreadRow) string {
	return fmt.Sprintf("%s %q %d/%d+%d %s %s %s", t.Thread, t.Title, t.Unread, t.Messages, t.Files, strings.Join(t.People, "+"), t.ID, t.Body)
}

// pages searches for threads and returns one line of text per page of results.
func (d *desk) pages(text string, limit int) (all []string) {
	d.t.Helper()
	q := index.ThreadsQuery{Project: "p", Agent: "Bob", Limit: limit}
	if text != "" {
		q.Query = asked(d.t, text).Query
	}
	for {
		found, err := d.Threads(d.t.Context(), q)
		if err != nil {
			d.t.Fatal(err)
		}
		var page []string
		for i := range found.Threads {
			page = append(page, found.Threads[i].Thread)
		}
		all = append(all, strings.Join(page, " "))
		if q.Cursor = found.Next; q.Cursor == "" {
			return all
		}
	}
}

// TestThreads checks that a thread is listed once, at its newest match, with counts that include all of its messages.
func TestThreads(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	at := testStart
	send := func(id, thread, from, to, subject, body string) {
		at = at.Add(time.Minute)
		var files []format.Attachment
		if id == "m2" {
			files = []format.Attachment{{Type: "file", Path: "attachments/aa/a.txt"}, {Type: "file", Path: "attachments/aa/b.txt"}}
		}
		d.send(format.Message{ID: id, Attachments: files, ThreadID: thread, From: from, To: []string{to}, Subject: subject, Body: body, Created: at})
	}
	send("m1", "", "Ann", "Bob", "Plan", "the first word")
	send("m2", "T", "Bob", "Ann", "Tests", "b")
	send("m3", "t", "Ann", "Bob", "Other case", "b")
	send("m4", "T", "Ann", "Bob", "Re: Tests", "b")
	send("m5", "m1", "Cat", "Bob", "Re: Plan", "the answer")
	send("m6", "", "Ann", "Cat", "Alone", "b")
	putFile(t, d.dir, "agents/Bob/inbox/m1.read", "2025-10-24T00:00:00Z\n")
	ingest(t, d.Index, "p", "agents/Bob/inbox/m1.read")

	found, err := d.Threads(t.Context(), index.ThreadsQuery{Project: "p", Agent: "Bob"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range found.Threads {
		got = append(got, told(&found.Threads[i]))
	}
	want := []string{
		`m6 "Alone" 0/1+0 Ann m6 b`,
		`m1 "Plan" 1/2+0 Cat+Ann m5 the answer`,
		`T "Tests" 1/2+2 Ann+Bob m4 b`,
		`t "Other case" 1/1+0 Ann m3 b`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct {
		text  string
		limit int
		want  []string
	}{
		{"", 1, []string{"m6", "m1", "T", "t"}},
		{"", 2, []string{"m6 m1", "T t"}},
		{"word", 2, []string{"m1"}},
		{"from:Ann", 3, []string{"m6 T t", "m1"}},
		{"from:Ann", 1, []string{"m6", "T", "t", "m1"}},
		{"from:Ann OR answer", 1, []string{"m6", "m1", "T", "t"}}, // m1 also has an older match
		{"nothing", 1, []string{""}},
		{"after:" + testStart.Add(4*time.Minute).Format(time.RFC3339), 1, []string{"m6", "m1", "T"}},
	} {
		if diff := cmp.Diff(c.want, d.pages(c.text, c.limit)); diff != "" {
			t.Errorf("%q by %d: %s", c.text, c.limit, diff)
		}
	}
	if _, err := d.Threads(t.Context(), index.ThreadsQuery{Project: "p", Cursor: "x"}); err == nil {
		t.Error("an unknown cursor was accepted")
	}
}

// TestThreadsMeanwhile checks that a thread that gets mail between two pages is not listed twice.
func TestThreadsMeanwhile(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	send := func(n int, thread string) {
		d.send(format.Message{ID: fmt.Sprintf("m%d", n), ThreadID: thread, From: "Ann", To: []string{"Bob"}, Subject: "s", Body: "b",
			Created: testStart.Add(time.Duration(n) * time.Minute)})
	}
	for n, thread := range []string{"A", "B", "C", "D"} {
		send(n, thread)
	}
	q := index.ThreadsQuery{Project: "p", Limit: 2}
	found, err := d.Threads(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	send(4, "C")
	send(5, "A")
	q.Cursor = found.Next
	if found, err = d.Threads(t.Context(), q); err != nil || len(found.Threads) != 1 || found.Threads[0].Thread != "B" {
		t.Errorf("the second page has %+v, %v", found.Threads, err)
	}
}

// TestThreadsPlan checks that no query for a page of threads reads a whole table.
func TestThreadsPlan(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, text := range []string{walkText, matchedText, threadsText, countText} {
		rows, err := d.reads.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, slices.Repeat([]any{7}, 4)...)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var a, b, c int
			var detail string
			if err := rows.Scan(&a, &b, &c, &detail); err != nil {
				t.Fatal(err)
			}
			t.Log(detail)
			for _, table := range []string{"m", "o", "d", "messages", "deliveries"} {
				if strings.HasPrefix(detail+" ", "SCAN "+table+" ") {
					t.Errorf("%s in %s", detail, text)
				}
			}
		}
	}
}

// BenchmarkThreads measures reading a page of 50 threads. It reads the first page, the second page, and the page for a
// word that is in every message. "floor" is a search for 50 messages. The first page may take five times as long as the
// floor.
func BenchmarkThreads(b *testing.B) {
	for _, m := range benchSizes(b) {
		b.Run(fmt.Sprint(m.Messages), func(b *testing.B) {
			x := benchIndex(b, m)
			first := index.ThreadsQuery{Project: bulk.Slug(), Agent: "Agent01", Limit: 50}
			found, err := x.Threads(b.Context(), first)
			if err != nil {
				b.Fatal(err)
			}
			second, every := first, first
			second.Cursor, every.Query = found.Next, asked(b, "parser").Query
			for _, c := range []struct {
				name string
				q    index.ThreadsQuery
			}{{"first", first}, {"second", second}, {"word", every}} {
				b.Run(c.name, func(b *testing.B) {
					timed(b, func() (int, error) {
						found, err := x.Threads(b.Context(), c.q)
						return len(found.Threads) - 30, err
					})
				})
			}
			b.Run("floor", func(b *testing.B) {
				ask := asked(b, "parser")
				ask.Project, ask.Limit = bulk.Slug(), 50
				timed(b, func() (int, error) {
					found, err := x.Search(b.Context(), ask)
					return len(found.Hits) - 30, err
				})
			})
		})
	}
}
