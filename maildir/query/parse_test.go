package query

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/maildir/refusal"
)

var update = flag.Bool("update", false, "rewrite testdata/queries.txt")

// TestParse checks the queries in testdata/queries.txt, each of which is followed by its expected meaning.
func TestParse(t *testing.T) {
	t.Parallel()
	const file = "testdata/queries.txt"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for line := range strings.Lines(string(data)) {
		text, _, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " =>")
		got.WriteString(text)
		if ok {
			got.WriteString(" => " + read(text))
		}
		got.WriteString("\n")
	}
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(data), got.String()); diff != "" && !*update {
		t.Error(diff)
	}
}

// now is the time at which the tests parse queries.
var now = time.Date(2025, 10, 23, 12, 0, 0, 0, time.UTC)

func read(text string) string {
	q, err := Parse(text, now)
	if err != nil {
		return "refused: " + err.Error()
	}
	said := write(q.Expr)
	if q.Mistaken != "" {
		said += " mistaking " + q.Mistaken + " for " + q.Meant
	}
	if q.Foreign != "" {
		said += " foreign " + q.Foreign
	}
	if q.Lower != "" {
		said += " lower " + q.Lower
	}
	if q.Unspaced != "" {
		said += " unspaced " + q.Unspaced
	}
	if q.Thread != "" {
		said += " in thread " + q.Thread
	}
	if !q.After.IsZero() {
		said += " from " + q.After.Format(time.RFC3339)
	}
	if !q.Before.IsZero() {
		said += " until " + q.Before.Format(time.RFC3339)
	}
	if q.Unread {
		said += " unread"
	}
	if q.Plain {
		said += " (plain)"
	}
	return said
}

// write formats an expression as it appears in the test data.
func write(e Expr) string {
	each := func(all []Expr) (said []string) {
		for _, x := range all {
			said = append(said, write(x))
		}
		return said
	}
	switch e := e.(type) {
	case And:
		return "all(" + strings.Join(each(e), ", ") + ")"
	case Or:
		return "any(" + strings.Join(each(e), ", ") + ")"
	case Not:
		return "not(" + write(e.Of) + ")"
	case Filter:
		return string(e.Key) + "=" + e.Value
	case Term:
		said := fmt.Sprintf("%q", e.Text)
		if e.Prefix {
			said += "*"
		}
		return []string{"", "subject ", "body "}[e.In] + said
	}
	return "everything"
}

// FuzzParse checks that Parse either accepts or rejects any text, that the result is bounded, and that each term
// contains a letter or digit.
func FuzzParse(f *testing.F) {
	for _, text := range []string{`a (b OR "c d"*) -e`, "from:A OR to:B", "((((", `"`, "NOT NOT", "subject:x*", "f(x) )"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := Parse(text, now)
		if err != nil && !errors.Is(err, refusal.ErrInvalid) {
			t.Fatal(err)
		}
		check(t, q.Expr, 0)
	})
}

func check(t *testing.T, e Expr, depth int) {
	if depth > 3*maxDepth {
		t.Fatal("too deep")
	}
	var inner []Expr
	switch e := e.(type) {
	case And:
		inner = e
	case Or:
		inner = e
	case Not:
		inner = []Expr{e.Of}
	case Filter:
		if !slices.Contains([]Key{From, To, CC, Importance, Has}, e.Key) || e.Value == "" {
			t.Fatalf("%+v", e)
		}
	case Term:
		if !strings.ContainsFunc(e.Text, searched) || strings.Contains(e.Text, "\x00") {
			t.Fatalf("%+v", e)
		}
	}
	for _, x := range inner {
		if x == nil {
			t.Fatal("the expression contains nil")
		}
		check(t, x, depth+1)
	}
}
