package markdown

import (
	"strings"

	"github.com/yuin/goldmark/ast"

	"mailtree/maildir/lazy"
)

// FirstHeading returns the text of the first heading in the first 16 KiB of a body, ignoring headings in quotes and
// lists. If there is no heading, it returns the first line that contains text. If no line contains text, it returns
// the first nonblank line unchanged. The result is a single line of up to 200 runes without markup, or "" for a blank
// body.
//
// See docs/reference/tree.md, "A message".
func FirstHeading(body string) string {
	body, _ = beginning(body, headingLimit)
	first, heading := "", ""
	eachBlock(body, func(n ast.Node, text string) bool {
		if _, ok := n.(*ast.Heading); ok && n.Parent().Kind() == ast.KindDocument {
			heading = strings.ReplaceAll(text, "\n", " ")
		}
		if first == "" {
			first, _, _ = strings.Cut(text, "\n")
		}
		return heading == ""
	})
	if heading != "" {
		return clip(heading, headingRunes)
	}
	if first == "" {
		first, _, _ = strings.Cut(strings.TrimSpace(normalize(body)), "\n")
	}
	return oneLine(first, headingRunes)
}

// PlainText returns an excerpt: the text of the first 8 KiB of a body without markup, as a single line of up to 300
// runes. An image is replaced with its description. Code is kept as text. PlainText must not be used for searching.
func PlainText(body string) string {
	body, cut := beginning(body, plainLimit)
	var b strings.Builder
	eachBlock(body, func(_ ast.Node, text string) bool {
		b.WriteString(text + "\n")
		return b.Len() <= 8*textRunes // enough for 300 runes of any size
	})
	s := oneLine(b.String(), textRunes)
	if cut && s != "" && !strings.HasSuffix(s, "…") {
		s = clip(s+" …", textRunes)
	}
	return s
}

// cutImage matches an image at the end of text that ends inside the image's data URI.
var cutImage = lazy.Regexp(`\]\(data:[^\s()]*\s*$`)

// beginning is like clipBody, but does not count image data, and closes an image whose data is cut off.
func beginning(body string, limit int) (string, bool) {
	body, _ = shorten(body)
	body, cut := clipBody(body, limit)
	return cutImage().ReplaceAllString(body, "](data:)"), cut
}

// eachBlock calls do for each block of a body that contains text, in order, until do returns false. The text keeps the
// block's line breaks.
func eachBlock(body string, do func(n ast.Node, text string) bool) {
	source := []byte(normalize(body))
	doc := parseTree(source)
	if doc == nil {
		return
	}
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if inner := n.FirstChild(); !entering || inner != nil && inner.Type() == ast.TypeBlock {
			return ast.WalkContinue, nil
		}
		var text string
		switch n.Kind() {
		case ast.KindCodeBlock, ast.KindFencedCodeBlock, ast.KindHTMLBlock:
			text = readLines(source, n)
		default:
			text = readProse(source, n)
		}
		if text != "" && !do(n, text) {
			return ast.WalkStop, nil
		}
		return ast.WalkSkipChildren, nil
	})
}

var htmlTag = lazy.Regexp(`<[^<>]*>`)

// readLines returns the lines of a code block unchanged, and the lines of an HTML block with the tags removed.
func readLines(source []byte, block ast.Node) string {
	var b proseBuilder
	for i := range block.Lines().Len() {
		line := block.Lines().At(i)
		text := string(line.Value(source))
		if block.Kind() == ast.KindHTMLBlock {
			text = unescape(htmlTag().ReplaceAllString(text, ""))
		}
		b.write(text)
		b.wrap = true
	}
	return b.text.String()
}
