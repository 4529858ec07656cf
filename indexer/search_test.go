package indexer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/query"
	"mailtree/maildir/tree"
)

// asked returns the search query for text that a user has typed. An empty text finds every message.
func asked(t testing.TB, text string) index.SearchQuery {
	t.Helper()
	q := index.SearchQuery{Project: "p"}
	if text != "" {
		var err error
		if q.Query, err = query.Parse(text, testStart); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	return q
}

func (d *desk) find(text string) string {
	d.t.Helper()
	return d.found(asked(d.t, text))
}

func (d *desk) found(q index.SearchQuery) string {
	d.t.Helper()
	found, err := d.Search(d.t.Context(), q)
	if err != nil {
		d.t.Fatalf("%+v: %v", q, err)
	}
	var ids []string
	for _, h := range found.Hits {
		ids = append(ids, h.ID)
	}
	return strings.Join(ids, " ")
}

// TestSearch checks that searches by words, filters and times find the right messages in the right order, and that a
// bcc recipient's name does not find the message.
func TestSearch(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.send(format.Message{ID: "m1", From: "Ann", To: []string{"Bob"}, BCC: []string{"Cid"}, Subject: "Plan",
		Body: "the parser breaks on bug-17", Created: testStart})
	d.send(format.Message{ID: "m2", From: "Bob", To: []string{"Ann"}, CC: []string{"Dan"}, Subject: "Re: Plan parser",
		Body: "fixed\n\nparser parser", ThreadID: "m1", Created: testStart.Add(time.Second)})
	d.send(format.Message{ID: "m3", From: "Ann", To: []string{"bob"}, Subject: "Lunch", Body: "ƿp1x facets Ann", ThreadID: "M1",
		Importance: format.High, Created: testStart.Add(2 * time.Second)})
	for _, c := range []struct{ query, want string }{
		{"parser", "m2 m1"},
		{"pars*", "m2 m1"},
		{"parser NOT fixed", "m1"},
		{"NOT parser", "m3"},
		{"-fixed parser", "m1"},
		{"-parser -lunch", ""},
		{"subject:parser", "m2"},
		{"body:plan", ""},
		{"subject:plan -subject:parser", "m1"},
		{`"bug-17"`, "m1"},
		{"bug-17", "m1"},
		{`bug-17 -- "`, "m1"},
		{"parser from:Bob", "m2"},
		{"from:Bob OR from:ann@example.org", "m2"},
		{"from:Ann OR fixed", "m3 m2 m1"},
		{"lunch OR (from:Bob fixed)", "m3 m2"},
		{"from:Ann lunch OR fixed", "m3"},
		{"NOT from:Ann", "m2"},
		{"to:Bob", "m1"},
		{"to:bob", "m3"},
		{"to:Dan", "m2"},
		{"cc:Dan", "m2"},
		{"cc:Ann", ""},
		{"to:Cid", ""},
		{"importance:high", "m3"},
		{"importance:normal", "m2 m1"},
		{"importance:normal OR importance:high", "m3 m2 m1"},
		{"importance:low", ""},
		{"thread:m1", "m2 m1"},
		{"thread:m1 breaks", "m1"},
		{"thread:m1 -breaks", "m2"},
		{"", "m3 m2 m1"},
		{"*", "m3 m2 m1"},
		{"after:2025-10-23T15:00:01Z", "m3 m2"},
		{"before:2025-10-23T15:00:01Z", "m1"},
		{"facets:ƿp1x", ""},
		{"Cid", ""},
	} {
		if got := d.find(c.query); got != c.want {
			t.Errorf("%s: got %q, want %q", c.query, got, c.want)
		}
	}
	for _, c := range []struct{ query, want string }{
		{"parser", "m2 m1"},
		{"thread:m1 parser", "m2 m1"},
		{"breaks OR (from:Bob plan) OR importance:high", "m1 m2 m3"},
		{"parser NOT fixed", "m1"},
		{"NOT parser", "m3"},
	} {
		q := asked(t, c.query)
		q.Rank = true
		if got := d.found(q); got != c.want {
			t.Errorf("%s by rank: got %q, want %q", c.query, got, c.want)
		}
	}
	one := asked(t, "")
	one.Limit = 1
	if got := d.found(one); got != "m3" {
		t.Errorf("a page with one result: %q", got)
	}
	found, err := d.Search(t.Context(), asked(t, "breaks OR fixed"))
	if err != nil {
		t.Fatal(err)
	}
	if hits := found.Hits; hits[0].Snippet != "**fixed** parser parser" || hits[1].Snippet != "the parser **breaks** on bug-17" ||
		hits[0].Body != "" {
		t.Errorf("snippets: %+v", hits)
	}
}

// TestPagesWhileMailComes checks that each message that existed when the first page was read appears exactly once on
// the pages of a search. In newest-first order, this must be true even if mail arrives between two pages. In rank
// order, this must be true only if no mail arrives.
func TestPagesWhileMailComes(t *testing.T) {
	t.Parallel()
	for _, rank := range []bool{false, true} {
		d := newDesk(t)
		var want []string
		for n := range 12 {
			want = append(want, fmt.Sprintf("m%02d", n))
			d.send(format.Message{ID: want[n], From: "Ann", To: []string{"Bob"}, Subject: "s",
				Body: strings.Repeat("parser ", 1+n%4) + strings.Repeat("lexer ", 1+n%3), Created: testStart.Add(time.Duration(n) * time.Second)})
		}
		q := asked(t, "parser OR lexer")
		q.Rank, q.Limit = rank, 5
		var got []string
		for n := range 4 {
			found, err := d.Search(t.Context(), q)
			if err != nil || rank && found.Ranked != 12 {
				t.Fatal(found.Ranked, err)
			}
			for _, h := range found.Hits {
				got = append(got, h.ID)
				q.Cursor = h.Next
			}
			if rank {
				continue
			}
			d.send(format.Message{ID: fmt.Sprint("new", n), From: "Ann", To: []string{"Bob"}, Subject: "lexer lexer",
				Body: strings.Repeat("lexer ", 40), Created: testStart.Add(time.Hour)})
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("rank %v: %s", rank, diff)
		}
	}
}

// TestSearchCursors checks that a cursor is refused if it does not come from a page of the same kind of search.
func TestSearchCursors(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.send(format.Message{ID: "m1", From: "Ann", To: []string{"Bob"}, Subject: "s", Body: "parser lexer"})
	for cursor, rank := range map[string][]bool{"x": {false, true}, "-1": {false, true}, "1.1": {false, true}, "0": {true}, "1001": {true}} {
		for _, rank := range rank {
			q := asked(t, "parser")
			q.Rank, q.Cursor = rank, cursor
			if _, err := d.Search(t.Context(), q); !errors.Is(err, maildir.ErrInvalid) {
				t.Errorf("%s, rank %v: %v", cursor, rank, err)
			}
		}
	}
}

// TestSearchCut checks that a search by prefix is canceled and finds nothing if it takes too long, and that other
// searches have no time limit.
func TestSearchCut(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.send(format.Message{ID: "m1", From: "Ann", To: []string{"Bob"}, Subject: "s", Body: "parser lexer"})
	d.patience = time.Nanosecond
	for text, cut := range map[string]bool{"parse*": true, "lexer OR pa*": true, "lexer -pars*": true, "parser": false, "par*": false} {
		for _, rank := range []bool{false, true} {
			q := asked(t, text)
			q.Rank = rank
			if found, err := d.Search(t.Context(), q); err != nil || found.Cut != cut || len(found.Hits) == 0 != cut {
				t.Errorf("%s, rank %v: %+v %v", text, rank, found, err)
			}
		}
	}
}

// TestRankedWhileEdited checks that a page of results is full if there are more results, even if a message on the page
// is edited at the same time so that it no longer matches.
func TestRankedWhileEdited(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for n := range 30 {
		d.send(format.Message{ID: fmt.Sprintf("m%02d", n), From: "Ann", To: []string{"Bob"}, Subject: "parser",
			Body: strings.Repeat("parser ", n)})
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for n := range 200 {
			word := []string{"lexer", strings.Repeat("parser ", 60)}[n%2]
			m := format.Message{ID: "m29", From: "Ann", To: []string{"Bob"}, Subject: "about", Body: word, Importance: format.Normal,
				Created: testStart}
			putFile(t, d.dir, "messages/m29.md", string(format.FormatMessage(&m)))
			if _, err := d.Ingest(t.Context(), "p", []string{"messages/m29.md"}, nil); err != nil {
				t.Error(err)
			}
		}
	}()
	for going := true; going; {
		select {
		case <-ended:
			going = false
		default:
		}
		q := asked(t, "parser")
		q.Rank, q.Limit = true, 21
		found, err := d.Search(t.Context(), q)
		if err != nil || len(found.Hits) != 21 {
			t.Errorf("%d found (%v)", len(found.Hits), err)
			break
		}
	}
	<-ended
}

// TestSearchAnything checks that no text that a user types causes an SQL error.
func TestSearchAnything(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.send(format.Message{ID: "m1", From: "Ann", To: []string{"Bob"}, Subject: "x", Body: "a"})
	deep := ""
	for range 300 {
		deep += "(a OR (a b "
	}
	for _, m := range []string{`a) OR (facets:x`, `a" `, `"a`, `(a`, `)(a`, `a AND`, `bug-17`, `nosuch : a`, "a\x00) OR b", `a OR`, "a NOT", "AND",
		`a""b"`, `"a""b`, `{facets} : a`, "NEAR(a b, 5)", "^a", "a + b", "-a -(b OR c)", "((a))", "a* b*c *", "a NOT NOT a", deep, "a OR (",
		strings.Repeat("(", 2000) + "a" + strings.Repeat(")", 2000), strings.Repeat("a OR ", 800) + "a", strings.Repeat("a -b ", 800),
		strings.Repeat("NOT ", 500) + "a"} {
		for _, rank := range []bool{false, true} {
			q := asked(t, m)
			q.Rank = rank
			if _, err := d.Search(t.Context(), q); err != nil {
				t.Errorf("%.40q: %v", m, err)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Search(ctx, asked(t, "a")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestEditedText checks that after an edit, a search for the old words finds nothing and a search for the new words
// finds the message. The full-text index must agree with the messages.
func TestEditedText(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for n := range 20 {
		d.send(format.Message{ID: "m1", From: "Ann", To: []string{"Bob"}, Subject: "s", Body: fmt.Sprintf("word%d", n),
			Created: testStart.Add(time.Duration(n%3) * time.Hour)})
		if n > 0 && d.find(fmt.Sprintf("word%d", n-1)) != "" {
			t.Errorf("edit %d: the old word is still found", n)
		}
		if d.find(fmt.Sprintf("word%d", n)) != "m1" {
			t.Errorf("edit %d: the new word is not found", n)
		}
	}
	verify(t, d.Index, map[string]*tree.Tree{"p": d.tree})
}

// TestBlind checks that a bcc recipient appears in no row except the recipient's own delivery and the sender's copy.
// Invariant I7.
func TestBlind(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.send(format.Message{ID: "m1", From: "Ann", To: []string{"Bob"}, BCC: []string{"Secret"}, Subject: "s", Body: "b", Key: "k"})
	for l := range strings.Lines(dump(t, d.Index)) {
		own := strings.Contains(l, "agents/Secret/") || strings.HasPrefix(l, `["agent","p","Secret"`) ||
			strings.Contains(l, "agents/Ann/outbox")
		if strings.Contains(l, "Secret") && !own {
			t.Errorf("the bcc recipient appears in %s", l)
		}
	}
	m, err := d.Message(t.Context(), "p", "m1", index.WithBody, nil)
	if err != nil || len(m.BCC) > 0 {
		t.Errorf("message: %v %v", m, err)
	}
	rows, err := d.Keyed(t.Context(), "p", "Ann", "k")
	if err != nil || len(rows) != 1 || strings.Join(rows[0].BCC, " ") != "Secret" {
		t.Errorf("keyed: %+v %v", rows, err)
	}
	own, err := d.Delivery(t.Context(), "p", "Secret", "m1", index.WithBody, nil)
	if err != nil || own.Kind != "bcc" || strings.Join(own.BCC, " ") != "Secret" {
		t.Errorf("own: %+v %v", own, err)
	}
	// The content now comes from the sender's copy, which contains the bcc recipient.
	putFile(t, d.dir, "messages", "(gone)\n")
	ingest(t, d.Index, "p", "messages")
	if got := d.find("to:Secret"); got != "" {
		t.Errorf("found by its bcc recipient: %s", got)
	}
	other, err := d.Delivery(t.Context(), "p", "Bob", "m1", index.WithBody, nil)
	if err != nil || other.Kind != "to" || len(other.BCC) > 0 {
		t.Errorf("other: %+v %v", other, err)
	}
}
