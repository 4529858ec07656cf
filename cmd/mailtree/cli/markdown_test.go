package cli

import (
	"strings"
	"testing"
)

// TestMarkdown checks that a body is rendered only on a terminal, and that no control sequence in the body reaches the
// terminal.
func TestMarkdown(t *testing.T) {
	const body = "# Plan\n\nOne `two` &#27;[2J \x1b[31m three\u202e four five\n\n\n"
	for _, tt := range []struct {
		name   string
		width  int
		colour bool
		want   string
	}{
		{"no terminal", 0, false, "# Plan\n\nOne `two` &#27;[2J \uFFFD[31m three\uFFFD four five\n"},
		{"no colour", 24, false, "  # Plan\n\n  One `two` [2J \uFFFD[31m\n  three\uFFFD four five\n"},
		{"colour", 24, true, "  \x1b[1mPlan\x1b[0m\n\n  One \x1b[2mtwo\x1b[0m [2J \uFFFD[31m\n  three\uFFFD four five\n"},
	} {
		s, _ := testScreen(tt.width)
		s.colour = tt.colour
		if got := s.Markdown(body, 2); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	s, _ := testScreen(80)
	if got := s.Markdown(strings.Repeat("a\x1b", 40<<10), 0); strings.Contains(got, "\x1b") || len(got) < 80<<10 {
		t.Errorf("a body too large to be rendered: %d bytes", len(got))
	}
	if got := s.Markdown("\n", 2); got != "" {
		t.Errorf("an empty body: %q", got)
	}
}

// TestSnippet checks that a snippet is one line of plain text, and empty if it only repeats the subject.
func TestSnippet(t *testing.T) {
	for _, c := range []struct{ snippet, subject, want string }{
		{"…Page(page)) } ``` - `GET /**api**` and | 1 | --- | ## More", "Plan", "…Page(page)) } GET /\x1b[1mapi\x1b[0m and 1 More"},
		{"Plan for the **api**", "Plan for the api", ""},
		{"…for the **api**", "Plan for the api", ""},
		{"a **b** and ** c", "x", "a b and c"},
		{"\x1b[2J**a**", "x", "\"\\x1b[2J\x1b[1ma\x1b[0m\""},
		{"", "x", ""},
	} {
		s, _ := testScreen(80)
		s.colour = true
		if got := s.Snippet(c.snippet, c.subject); got != c.want {
			t.Errorf("%q: %q, want %q", c.snippet, got, c.want)
		}
	}
}
