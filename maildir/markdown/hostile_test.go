package markdown

import (
	"fmt"
	"strings"
)

// hostile returns bodies of about n bytes that consist of many repetitions of one construct, or that turned out to be
// slow in goldmark or in our code.
func hostile(n int) map[string]string {
	fill := func(unit string) string { return strings.Repeat(unit, n/len(unit)+1)[:n] }
	halves := func(a, b string) string {
		return strings.Repeat(a, n/2/len(a)) + strings.Repeat(b, n/2/len(b))
	}
	return map[string]string{
		"delimiters":            fill("*a_ "),
		"delimiters in lines":   fill("*a_ **b__ ~c\n"),
		"delimiters in blocks":  fill(strings.Repeat("*a_ ", 700) + "\n\n"),
		"delimiter pairs":       halves("*a ", " a*"),
		"strikes":               fill("~a ~~b "),
		"addresses":             fill("http://a "),
		"addresses, opened":     fill("(http://a"),
		"address, closed":       "(http://a" + fill(")"),
		"brackets":              fill("["),
		"bracket pairs":         fill("[a]"),
		"bracket pairs, lines":  fill("[a]\n"),
		"brackets nested":       halves("[", "]"),
		"links":                 fill("[a](b) *c* "),
		"link openers":          fill("[a]("),
		"link angle openers":    fill("[a](<"),
		"link titles":           fill(`[a](b "c `),
		"link labels":           fill("[a][b"),
		"images nested":         halves("![", "](a)"),
		"image with long alt":   strings.Repeat("![", 400) + fill("x ")[:n/8] + strings.Repeat("](a)", 400) + "\n\n" + fill("x "),
		"definitions":           fill("[a]: b\n"),
		"definitions, blocks":   fill(strings.Repeat("[a]: b\n", 180) + "\n"),
		"definition titles":     fill("[a]: b 'c\n"),
		"backticks":             fill("`a "),
		"backticks, growing":    growing(n),
		"backtick blocks":       fill("``` a ` b `` c\n\n"),
		"fence unclosed":        "```\n" + fill("code? @x TODO: y\n"),
		"quotes nested":         fill(">"),
		"quotes nested, spaces": fill("> "),
		"quotes per line":       fill(strings.Repeat("> ", 60) + "a\n"),
		"lists nested":          fill("- "),
		"lists numbered":        fill("1. "),
		"lists indented":        indented(n),
		"list items":            fill("- a\n"),
		"list items, empty":     fill("-\n"),
		"list items, blank":     fill("- a\n\n"),
		"task items":            fill("- [ ] a\n"),
		"marked lines":          fill("TODO: @a b?\n"),
		"almost marked lines":   fill("- we had: x\n"),
		"paragraphs":            fill("a\n\n"),
		"headings":              fill("# a\n"),
		"empty headings":        fill("# <a>\n"),
		"setext headings":       fill("a\n-\n"),
		"table":                 "a|b|c\n-|-|-\n" + fill("a|b|c\n"),
		"table, wide":           halves("a|", "b|") + "\n" + halves("-|", "-|"),
		"table of gaps":         strings.Repeat("|a", n/6) + "\n" + strings.Repeat("|-", n/6) + "\n" + strings.Repeat("b\n", n/6),
		"table of pipes":        "a|b\n-|-\n" + fill("`\\|`|`\\|`\n"),
		"tags":                  fill("<a "),
		"tags, comments":        fill("<!-- "),
		"tags, closed":          fill("<a b>"),
		"html lines":            fill("<a b=c d\n"),
		"html block":            "<div>\n" + fill("@x TODO: y?\n"),
		"auto links":            fill("<http://a"),
		"mail links":            fill("<a@b.c"),
		"entities":              fill("&amp;&#64;"),
		"backslashes":           fill("\\"),
		"mentions":              fill("@a "),
		"long mention":          "@" + fill("a"),
		"questions":             fill("a? "),
		"question marks":        fill("?"),
		"spaces":                fill(" "),
		"tabs":                  fill("\t"),
		"newlines":              fill("\n"),
		"carriage returns":      fill("a\r"),
		"one line":              fill("word "),
		"zeros":                 fill("\x00"),
		"not utf-8":             fill("\xff\xfe# a\n"),
		"runes of four bytes":   fill("😀"),
	}
}

// growing returns runs of backticks, each longer than the previous one.
func growing(n int) string {
	var b strings.Builder
	for i := 1; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%s a ", strings.Repeat("`", i))
	}
	return b.String()
}

// indented returns deeply nested lists.
func indented(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%s- a\n", strings.Repeat("  ", i%400))
	}
	return b.String()
}
