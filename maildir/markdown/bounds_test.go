package markdown

import (
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"mailtree/fixtures/waits"
)

// TestBounds checks that no body takes more CPU time than allowed, even if the body is designed to be slow.
// BenchmarkHostile shows the time for each body.
func TestBounds(t *testing.T) {
	for name, body := range hostile(worst) {
		t.Run(name, func(t *testing.T) {
			body := body[:min(len(body), worst)]
			before := cpu(t)
			page, ok := Render(body)
			waits.Limit(t, "Render (CPU time)", cpu(t)-before, allowed)
			if len(page) > 64*len(body) {
				t.Errorf("%d bytes of HTML for %d bytes of body", len(page), len(body))
			}
			if rendered := len(normalize(body)) <= Limit; ok != rendered {
				t.Errorf("rendered: %v", ok)
			}
			before = cpu(t)
			text, _ := narrow().Render(body)
			waits.Limit(t, "Terminal.Render (CPU time)", cpu(t)-before, allowed)
			if len(text) > 64*len(body) {
				t.Errorf("%d bytes of terminal output for %d bytes of body", len(text), len(body))
			}
			before = cpu(t)
			first, plain := FirstHeading(body), PlainText(body)
			waits.Limit(t, "FirstHeading and PlainText (CPU time)", cpu(t)-before, allowed/4)
			checkText(t, first, headingRunes)
			checkText(t, plain, textRunes)
			before = cpu(t)
			if same, _ := RewriteImages(body, func(d string) string { return d }); same != body {
				t.Error("changed")
			}
			waits.Limit(t, "RewriteImages (CPU time)", cpu(t)-before, allowed)
		})
	}
}

// TestDepth checks that markup that is nested too deeply is shown as text.
func TestDepth(t *testing.T) {
	t.Parallel()
	for _, mark := range []string{"> ", "1. ", "> 1. "} {
		page, ok := Render(strings.Repeat(mark, 1000) + "a\n")
		if n := strings.Count(page, "<blockquote>") + 2*strings.Count(page, "<ol>"); !ok || n < maxDepth-2 || n > maxDepth+1 {
			t.Errorf("%q: %v, %d blocks", mark, ok, n)
		}
	}
}

// TestCut checks that a body is cut at a rune boundary.
func TestCut(t *testing.T) {
	t.Parallel()
	long := "x" + strings.Repeat("é", Limit)
	if s, cut := clipBody(long, Limit); !cut || !utf8.ValidString(s) || len(s) < Limit-4 {
		t.Errorf("clipBody: %d bytes, cut %v", len(s), cut)
	}
}

// TestScanLimits checks that FirstHeading and PlainText stop at their limits.
func TestScanLimits(t *testing.T) {
	t.Parallel()
	compare(t, "FirstHeading", "x", FirstHeading(strings.Repeat("x\n", Limit)+"# late\n"))
	compare(t, "PlainText", "a …", PlainText("a"+strings.Repeat("\n", plainLimit)+"late\n"))
	compare(t, "PlainText", "", PlainText(strings.Repeat("\n", plainLimit)+"late\n"))
}

// TestBytes checks that bodies with NUL bytes, carriage returns and invalid UTF-8 are handled correctly.
func TestBytes(t *testing.T) {
	t.Parallel()
	compare(t, "PlainText", "0 a c\uFFFD", PlainText("\x000\x00 `a`\r\n\r\nc\xff"))
	compare(t, "FirstHeading", "a b", FirstHeading("# a\x00*b*\r\nc"))
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

// cpu returns the CPU time that the process has used.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// allowed is the maximum CPU time for one body. On an idle machine, the slowest body takes a tenth of this time. Under
// load, it may take eight times as long. With a parser that takes cubic time, it would take hundreds of times as long.
const allowed = 20 * time.Second * slow
