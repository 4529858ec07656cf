package indexer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/maildir"
	"mailtree/maildir/format"
)

// TestSift: a query with long prefixes finds what FTS5 finds for it, in the same order, page by page.
func TestSift(t *testing.T) {
	t.Parallel()
	d, r := newDesk(t), rand.New(rand.NewPCG(1, 2))
	words := []string{"parse", "parser", "PARSERS", "parsing", "pärser", "Zürich", "zurichsee", "zirconium", "zirkon", "state-machine", "machinery", "a1b2c3d4", "a1b2c3"}
	for n := range 500 {
		var body []string
		for range 1 + r.IntN(6) {
			body = append(body, words[r.IntN(len(words))])
		}
		if n%97 == 0 {
			body = append(body, "parsimony")
		}
		d.send(format.Message{ID: fmt.Sprint("m", n), From: []string{"Ann", "Bob"}[n%2], To: []string{"Cid"}, Subject: words[r.IntN(len(words))], Body: strings.Join(body, " "), Created: testStart.Add(time.Duration(n) * time.Second)})
	}
	sifted := 0
	for _, match := range []string{"pars*", "parser*", "PARSER*", "parsers*", "zurich*", "zircon*", "zirk*", "machi* pars*", "parser zirconi*", "a1b2*", "a1b2c3*", "parsim*", "nothere*", `"state machine" parsin*`, "pars* AND zirc*"} {
		for _, q := range []maildir.SearchQuery{{}, {From: "Ann"}, {After: testStart.Add(100 * time.Second), Before: testStart.Add(400*time.Second + time.Nanosecond)}, {Limit: 3}} {
			q.Project, q.Match = "p", match
			e, err := expression(d.pid(q.Project), q)
			if err != nil || e.cut == "" {
				t.Fatal(match, e, err)
			}
			if _, ok, err := d.sift(t.Context(), q, e); err != nil {
				t.Fatal(err)
			} else if ok {
				sifted++
			}
			native := e
			native.cut = ""
			want, err := d.newest(t.Context(), q, native)
			if err != nil {
				t.Fatal(err)
			}
			got, err := d.newest(t.Context(), q, e)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(ids(want), ids(got)); diff != "" {
				t.Errorf("%+v:\n%s", q, diff)
			}
		}
	}
	if sifted < 20 {
		t.Errorf("only %d queries were sifted", sifted)
	}
}

func ids(hits []maildir.Hit) (all []string) {
	for _, h := range hits {
		all = append(all, h.ID+" "+fmt.Sprint(h.Cursor))
	}
	return all
}

// TestMarked: snippets that are cut here.
func TestMarked(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("filler ", 40) + "the parser drops the last token, " + strings.Repeat("filler ", 40)
	for _, c := range []struct{ query, text, want string }{
		{"parser", "The Parser, a parser", "The **Parser**, a **parser**"},
		{"pars*", "parsing Parsers", "**parsing** **Parsers**"},
		{`"last token"`, "the last token", "the **last token**"},
		{`"last tok"*`, "the last token", "the **last token**"},
		{"parser AND (token OR tree) NOT bush", "token of a parser", "**token** of a **parser**"},
		{"parser token", long, "…" + strings.Repeat("filler ", 8) + "the **parser** drops the last **token**, " + strings.TrimSpace(strings.Repeat("filler ", 10)) + "…"},
		{"parser", "nothing", ""},
		{"parse", "parser", ""},
		{"strasse", "straße", ""},
		{`"bug-17"`, "see bug-17.", "see **bug-17**."},
	} {
		terms := readTerms(c.query)
		got := strings.NewReplacer(markOpen, "**", markClose, "**").Replace(terms.marked(c.text))
		if !terms.plain || got != c.want {
			t.Errorf("%s in %q: plain %v, got %q, want %q", c.query, c.text, terms.plain, got, c.want)
		}
	}
	for _, query := range []string{"NEAR(a b)", "subject : a", "a + b", "^a", `"a ""b"`, "-a", "käse", "a_b"} {
		if terms := readTerms(query); terms.plain && slices.ContainsFunc(terms.list, func(m term) bool { return len(m.words) > 0 }) {
			t.Errorf("%s is taken for plain: %+v", query, terms)
		}
	}
}

// TestAccents: FTS5 finds words without their accents, and then marks them too.
func TestAccents(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.send(format.Message{ID: "m1", From: "Ann", To: []string{"Bob"}, Subject: "s", Body: "the résumé is here"})
	hits, err := d.Search(t.Context(), maildir.SearchQuery{Project: "p", Match: "resume"})
	if err != nil || len(hits) != 1 || hits[0].Snippet != "the **résumé** is here" {
		t.Errorf("%+v %v", hits, err)
	}
}
