package markdown

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// narrow returns a terminal with 30 columns that shows ECMA-48 codes as readable text.
func narrow() Terminal {
	return Terminal{
		Width:   30,
		Columns: utf8.RuneCountInString,
		Plain:   harmless,
		Paint:   func(codes, text string) string { return "{" + codes + " " + text + "}" },
	}
}

// harmless replaces control characters with question marks.
func harmless(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}, s)
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ body, want, bare string }{ // bare is the result without Paint; empty means the same as want
		{"# A *b* c\n\nText of **two words**\nand a line that is `wrapped here`.",
			"{1 A }{1;3 b}{1  c}\n\nText of {1 two words} and a line\nthat is {2 wrapped here}.\n",
			"# A *b* c\n\nText of **two words** and a\nline that is `wrapped here`.\n"},
		{"- one\n- two three four five six seven\n  1. in\n  2. it\n\n- [x] done\n- [ ] open",
			"- one\n\n- two three four five six\n  seven\n\n  1. in\n  2. it\n\n- [x] done\n\n- [ ] open\n", ""},
		{"- one\n  - two\n- three", "- one\n  - two\n- three\n", ""},
		{"> quoted text that is longer than a line\n>\n> > twice\n\nown",
			"{2 │ }quoted text that is longer\n{2 │ }than a line\n{2 │ }\n{2 │ }{2 │ }twice\n\nown\n",
			"│ quoted text that is longer\n│ than a line\n│\n│ │ twice\n\nown\n"},
		{"```go\nif a < b {\n\treturn \"a line that is longer than the terminal\"\n}\n```",
			"  {2 if a < b {}\n  {2 ?return \"a line that is longer than the terminal\"}\n  {2 }}\n",
			"  if a < b {\n  ?return \"a line that is longer than the terminal\"\n  }\n"},
		{"| name | price |\n|---|--:|\n| `a` | 1,87 |\n| b \\| c | 12 |\n| d | 1,234,567 |",
			"{1 name}       {1 price}\n{2 ─────  ─────────}\n{2 a}           1,87\nb | c         12\nd      1,234,567\n",
			"name       price\n─────  ─────────\n`a`         1,87\nb | c         12\nd      1,234,567\n"},
		{"| a | b |\n|:-:|---|\n| x | a cell that does not fit into the line |\n| y | averyverylongwordthatmustbebroken |",
			"{1 a}  {1 b}\n{2 ─  ───────────────────────────}\nx  a cell that does not fit\n   into the line\ny  averyverylongwordthatmustbe\n   broken\n",
			"a  b\n─  ───────────────────────────\nx  a cell that does not fit\n   into the line\ny  averyverylongwordthatmustbe\n   broken\n"},
		{"|a|b|c|d|\n|-|-|-|-|\n|1|2|3|4|", "{1 a} {2 |} {1 b} {2 |} {1 c} {2 |} {1 d}\n1 {2 |} 2 {2 |} 3 {2 |} 4\n", "a | b | c | d\n1 | 2 | 3 | 4\n"},
		{"[text](http://a.b) <http://c.d> ![x](y.png) ~~no~~",
			"{4 text} {2 (http://a.b)} {4 http://c.d}\n[image: x {2 (y.png)}] {9 no}\n", "text (http://a.b) http://c.d\n[image: x (y.png)] ~~no~~\n"},
		{"a&#27;[31m&#x9b;1m \\*b\\* &amp; <b onclick=x>c", "a [31m›1m *b* & <b onclick=x>c\n", ""},
		{"hard  \nbreak\n\n---\n\n<div>\n\x1b[2J\n</div>", "hard\nbreak\n\n{2 ──────────────────────────────}\n\n  {2 <div>}\n  {2 ?[2J}\n  {2 </div>}\n",
			"hard\nbreak\n\n──────────────────────────────\n\n  <div>\n  ?[2J\n  </div>\n"},
		{"[a]: http://b.c\n\nsee [a]", "see {4 a} {2 (http://b.c)}\n", "see a (http://b.c)\n"},
		{"", "", ""},
	} {
		term := narrow()
		got, ok := term.Render(c.body)
		if !ok || got != c.want {
			t.Errorf("%q: %v\n got %q\nwant %q", c.body, ok, got, c.want)
		}
		if c.bare == "" {
			c.bare = c.want
		}
		term.Paint = nil
		if got, ok = term.Render(c.body); !ok || got != c.bare {
			t.Errorf("%q, bare: %v\n got %q\nwant %q", c.body, ok, got, c.bare)
		}
	}
	if got, ok := narrow().Render(strings.Repeat("a", Limit+1)); ok || got != "" {
		t.Errorf("a body over the limit produces %d bytes, %v", len(got), ok)
	}
}
