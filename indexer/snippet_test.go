package indexer

import (
	"fmt"
	"strings"
	"testing"

	"mailtree/maildir/format"
)

// TestSnippets checks that a snippet is one line, and marks the query's matches in the body or, if there are none, in
// the subject. If a snippet marks nothing, it is the first line of the body.
func TestSnippets(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	fillers := func(n int) string { return strings.TrimSpace(strings.Repeat("filler ", n)) }
	long := "the parser\n" + strings.Repeat("a line of a long body\n", 400)
	for n, c := range []struct{ subject, body, query, want string }{
		{"s", "The Parser, a\nparser", "parser", "The **Parser**, a **parser**"},
		{"s", "parsing Parsers", "pars*", "**parsing** **Parsers**"},
		{"s", "the last token", `"last token"`, "the **last token**"},
		{"s", "the last token", `"last tok"*`, "the **last token**"},
		{"s", "token of a parser", "parser AND (token OR tree) NOT bush", "**token** of a **parser**"},
		{"s", "see bug-17.", `"bug-17"`, "see **bug-17**."},
		{"s", "the résumé is here", "resume", "the **résumé** is here"},
		{"s", fillers(40) + " the parser drops the last token " + fillers(40), "parser token",
			"…" + fillers(8) + " the **parser** drops the last **token** " + fillers(10) + "…"},
		{"Parser subject", "nothing here\nnor here", "parser", "**Parser** subject"},
		{"Parser subject", "a parser", "parser", "a **parser**"},
		{"s", "\n the first line\nthe second", "", "the first line"},
		{"s", strings.Repeat("é", 200), "", strings.Repeat("é", 160) + "…"},
		{"s", long, "parser", "the parser"},
		{"parsers", long, "parse*", "the parser"},
	} {
		from := fmt.Sprint("Ann", n)
		d.send(format.Message{ID: fmt.Sprint("m", n), From: from, To: []string{"Bob"}, Subject: c.subject, Body: c.body})
		for _, rank := range []bool{false, true} {
			q := asked(t, c.query+" from:"+from)
			q.Rank = rank
			found, err := d.Search(t.Context(), q)
			if err != nil || len(found.Hits) != 1 {
				t.Fatalf("%s: %d hits, %v", c.query, len(found.Hits), err)
			}
			if got := found.Hits[0].Snippet; got != c.want {
				t.Errorf("%s in %.40q (rank %v): got %q, want %q", c.query, c.body, rank, got, c.want)
			}
		}
	}
}

// TestPrefixes checks that a prefix of any length finds the words that begin with it, regardless of case and accents.
func TestPrefixes(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.send(format.Message{ID: "m1", From: "Ann", To: []string{"Bob"}, Subject: "s", Body: "auf der ZÜRICHSEESCHIFFFAHRT"})
	d.send(format.Message{ID: "m2", From: "Ann", To: []string{"Bob"}, Subject: "Zürichseeschifffahrt", Body: "b"})
	d.send(format.Message{ID: "m3", From: "Ann", To: []string{"Bob"}, Subject: "s", Body: "zürich see, Obersee-zürichseeschiff"})
	for n := 1; n <= len("zurichseeschifffahrt"); n++ {
		want := 2
		if n <= len("zurichseeschiff") {
			want = 3
		}
		for _, word := range []string{"zurichseeschifffahrt", "ZURICHSEESCHIFFFAHRT"} {
			if got := strings.Fields(d.find(word[:n] + "*")); len(got) != want {
				t.Errorf("%s*: found %v, want %d", word[:n], got, want)
			}
		}
	}
}
