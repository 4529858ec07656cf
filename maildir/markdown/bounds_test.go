package markdown

import (
	"bytes"
	"context"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark/ast"
)

// TestBounds takes bodies of 1 MiB that are slow to parse, and measures the CPU
// of each, one after the other. It has no deadline: what holds here holds by
// counting.
func TestBounds(t *testing.T) {
	for name, body := range hostile(1 << 20) {
		t.Run(name, func(t *testing.T) {
			before := cpu(t)
			got := NewParser().outline(t.Context(), body, time.Minute)
			if took := cpu(t) - before; took > allowed {
				t.Errorf("Parse took %v of CPU, allowed %v", took, allowed)
			}
			if !got.Truncated {
				t.Error("a body over Limit is not Truncated")
			}
			before = cpu(t)
			first, plain := FirstHeading(body), PlainText(body)
			if took := cpu(t) - before; took > allowed/4 {
				t.Errorf("FirstHeading and PlainText took %v of CPU", took)
			}
			checkOutline(t, got)
			checkText(t, first, headingRunes)
			checkText(t, plain, textRunes)
		})
	}
}

// TestShort: the worst of the short bodies cost little, and are given the time that a busy machine
// takes.
func TestShort(t *testing.T) {
	for name, body := range hostile(Short) {
		body = body[:min(len(body), Short)]
		before := cpu(t)
		if NewParser().Parse(t.Context(), body).Truncated {
			t.Errorf("%s: truncated", name)
		}
		if took := cpu(t) - before; took > allowed/8 {
			t.Errorf("%s: took %v of CPU", name, took)
		}
	}
	compare(t, "deadlines", []time.Duration{shortDeadline, Deadline},
		[]time.Duration{deadline(strings.Repeat("a", Short)), deadline(strings.Repeat("a", Short+1))})
}

// TestNoGoroutines: nothing goes on after Parse has returned.
func TestNoGoroutines(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if !NewParser().Parse(ctx, hostile(1 << 20)["delimiters"]).Truncated {
		t.Error("not cut")
	}
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	// The goroutine of the timer may still be ending, so only ours count.
	for _, ours := range []string{"goldmark", "created by mailtree/maildir/markdown."} {
		if bytes.Contains(stacks, []byte(ours)) {
			t.Errorf("%s in what goes on:\n%s", ours, stacks)
		}
	}
}

// TestContext: a context that has ended leaves nothing but Truncated.
func TestContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	compare(t, "Parse", Outline{Truncated: true}, NewParser().Parse(ctx, "# a\n\n- b\n"))
}

// TestDeadlineInBlock: the context that ends within a long block is heeded there.
func TestDeadlineInBlock(t *testing.T) {
	before := cpu(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	NewParser().Parse(ctx, hostile(Limit)["links"])
	if took := cpu(t) - before; took > allowed/2 {
		t.Errorf("took %v of CPU after a deadline of 1ms", took)
	}
}

// TestTreeContext: goldmark heeds the context between lines and at markup.
func TestTreeContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	doc, whole := parseTree(ctx, []byte("*a* `b` [c](d) ~e~\n\nf\n\ng\n"), time.Minute)
	if whole || doc.ChildCount() != 1 {
		t.Errorf("%d blocks, whole: %v", doc.ChildCount(), whole)
	}
	for n := doc.FirstChild().FirstChild(); n != nil; n = n.NextSibling() {
		if n.Kind() != ast.KindText {
			t.Errorf("%v", n.Kind())
		}
	}
}

// TestDeadline: Parse has one.
func TestDeadline(t *testing.T) {
	t.Parallel()
	got := NewParser().outline(t.Context(), hostile(100 << 10)["paragraphs"], time.Nanosecond)
	compare(t, "outline", Outline{Truncated: true}, got)
}

// TestStarvation: a hostile block does not change what the next one says.
func TestStarvation(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"*a_ ", "[a](b) *c*", "[", "`a ", "[a](<"} {
		body := strings.Repeat(unit, 4000) + "\n\n- **done** `@x` ![b](c)\n- [ ] @Ann\n"
		got := NewParser().outline(t.Context(), body, time.Minute)
		compare(t, unit, []Action{{Text: "@Ann", Owner: "Ann"}}, got.Actions)
		compare(t, unit, "done @x b", got.Points[len(got.Points)-1])
	}
}

// TestCut: a body is cut after a line, or else before a rune.
func TestCut(t *testing.T) {
	t.Parallel()
	got := NewParser().outline(t.Context(), strings.Repeat("é", Limit*3/8)+"\n\n- last\n"+strings.Repeat("x", Limit), time.Minute)
	compare(t, "points", []string{strings.Repeat("é", textRunes-1) + "…", "last"}, got.Points)
	long := "x" + strings.Repeat("é", Limit)
	if s, cut := clipBody(long, Limit); !cut || !utf8.ValidString(s) || len(s) < Limit-4 {
		t.Errorf("clipBody: %d bytes, cut %v", len(s), cut)
	}
}

// TestOpenRuns: where too many runs of backticks are not closed, the rest of the
// block's backticks are text, and the next block's are not.
func TestOpenRuns(t *testing.T) {
	t.Parallel()
	var open strings.Builder
	for n := maxOpenRuns + 2; n > 1; n-- {
		open.WriteString(strings.Repeat("`", n) + " a ")
	}
	got := NewParser().Parse(t.Context(), "TODO: "+open.String()+"` @Ann `\n\nTODO: ` @Bob `\n")
	compare(t, "owners", []string{"Ann", ""}, []string{got.Actions[0].Owner, got.Actions[1].Owner})
}

// TestScanLimits: FirstHeading and PlainText end at their limits.
func TestScanLimits(t *testing.T) {
	t.Parallel()
	compare(t, "FirstHeading", "x", FirstHeading(strings.Repeat("x\n", Limit)+"# late\n"))
	compare(t, "PlainText", "a …", PlainText("a"+strings.Repeat("\n", plainLimit)+"late\n"))
	compare(t, "PlainText", "", PlainText(strings.Repeat("\n", plainLimit)+"late\n"))
}

// TestBytes has the bodies that a text file cannot hold.
func TestBytes(t *testing.T) {
	t.Parallel()
	want := Outline{Points: []string{"a b", "c\uFFFD", "d"}, Says: true}
	compare(t, "Parse", want, NewParser().Parse(t.Context(), "- a\x00\x1bb\r- c\xff\r\n- d"))
	compare(t, "PlainText", "0 a c\uFFFD", PlainText("\x000\x00 `a`\r\n\r\nc\xff"))
	compare(t, "FirstHeading", "a b", FirstHeading("# a\x00*b*\r\nc"))
}

func checkOutline(t *testing.T, o Outline) {
	t.Helper()
	var all []string
	for _, a := range o.Actions {
		all = append(all, a.Text)
	}
	all = append(append(append(all, o.Points...), o.Decisions...), o.Questions...)
	for _, s := range all {
		if s == "" {
			t.Error("empty text")
		}
		checkText(t, s, textRunes)
	}
}

func checkText(t *testing.T, s string, limit int) {
	t.Helper()
	switch {
	case !utf8.ValidString(s):
		t.Errorf("not UTF-8: %q", s)
	case utf8.RuneCountInString(s) > limit:
		t.Errorf("%d runes: %q", utf8.RuneCountInString(s), s)
	case strings.TrimSpace(s) != s || strings.Contains(s, "  "):
		t.Errorf("not trimmed: %q", s)
	case strings.IndexFunc(s, unicode.IsControl) >= 0:
		t.Errorf("control character: %q", s)
	}
}

// cpu is the CPU time that the process has used.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// allowed is what one body may cost: 200 ms, and as much for the collector of
// garbage, which runs beside.
const allowed = 400 * time.Millisecond * slow

// TestParserKept: what a parser read before changes nothing: neither a body that costs it all its
// steps, nor one whose code spans and brackets stay open.
func TestParserKept(t *testing.T) {
	t.Parallel()
	const body = "We decided to use `a` and [b](c.go). *Who* deletes `d`?"
	want := NewParser().Parse(t.Context(), body)
	p := NewParser()
	for name, before := range hostile(100 << 10) {
		p.Parse(t.Context(), before)
		if diff := cmp.Diff(want, p.Parse(t.Context(), body)); diff != "" {
			t.Errorf("behind %s: %s", name, diff)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	p.Parse(ended, body)
	if diff := cmp.Diff(want, p.Parse(t.Context(), body)); diff != "" {
		t.Error(diff)
	}
}
