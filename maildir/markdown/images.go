package markdown

import (
	"html"
	"slices"
	"sort"
	"strings"

	"github.com/yuin/goldmark/ast"
	gtext "github.com/yuin/goldmark/text"

	"mailtree/maildir/lazy"
)

// MayHaveImages reports whether a body may contain an image. It is fast, because it does not parse the body.
func MayHaveImages(body string) bool {
	if strings.Contains(body, "![") {
		return true
	}
	const tag = "<img"
	for at := strings.IndexByte(body, '<'); at >= 0 && len(body)-at >= len(tag); at = strings.IndexByte(body, '<') {
		if strings.EqualFold(body[at:at+len(tag)], tag) {
			return true
		}
		body = body[at+1:]
	}
	return false
}

// RewriteImages replaces the destinations of the inline images in a body. It handles <img src="destination"> and
// ![alt](destination), even if the destination contains spaces, which Markdown does not allow. It replaces each
// destination, in the order of the text, with the result of to(destination). To keep a destination, to returns it
// unchanged. RewriteImages does not escape the results of to, so they must not contain spaces, quotes or brackets.
//
// Images in code, images written as references ([alt][name]), and everything after the first Limit bytes are not
// changed. The bytes of data URIs do not count toward Limit. whole is false if the text after Limit may contain images,
// or if goldmark failed.
func RewriteImages(body string, to func(destination string) string) (out string, whole bool) {
	if !MayHaveImages(body) {
		return body, true
	}
	short, cuts := shorten(body)
	text, _ := clipBody(short, Limit)
	source := []byte(sameLength.Replace(text))
	doc := parseTree(source)
	if doc == nil {
		return body, false
	}
	var b strings.Builder
	done := 0
	for _, s := range imageSpans(doc, text) {
		start, end := cuts.origin(s.start), cuts.origin(s.end)
		if start < done { // the span is inside another destination
			continue
		}
		old := s.read(body[start:end])
		if with := to(old); with != old {
			b.WriteString(body[done:start] + with)
			done = end
		}
	}
	return b.String() + body[done:], !MayHaveImages(short[len(text):])
}

// sameLength converts line endings to "\n" without changing any offsets.
var sameLength = strings.NewReplacer("\r\n", " \n", "\r", "\n")

// span is a part of some text, given by byte offsets.
type span struct{ start, end int }

// spanAttribute is an attribute of an image node. It contains the span from the image's "](" to its ")".
const spanAttribute = "mailtree-span"

// imageSpan is the position of a destination, with the function that decodes the destination.
type imageSpan struct {
	span
	read func(written string) string
}

// imageSpans returns the spans of the destinations, including angle brackets, in the order of the text.
func imageSpans(doc ast.Node, text string) []imageSpan {
	var all []imageSpan
	blanks := blankImages(text)
	ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		if tail, ok := n.AttributeString(spanAttribute); ok {
			if s, ok := destination(text, tail.(span)); ok {
				all = append(all, imageSpan{s, unbracket})
			}
		}
		switch n := n.(type) {
		case *ast.CodeSpan:
			return ast.WalkSkipChildren, nil
		case *ast.Text:
			for at := n.Segment.Start; at < n.Segment.Stop; at++ {
				if s, ok := blanks[at]; ok {
					all = append(all, imageSpan{s, unescape})
				}
			}
		case *ast.RawHTML:
			all = append(all, imgSpans(text, n.Segments)...)
		case *ast.HTMLBlock:
			all = append(all, imgSpans(text, n.Lines())...)
		}
		return ast.WalkContinue, nil
	})
	slices.SortFunc(all, func(a, b imageSpan) int { return a.start - b.start })
	return all
}

// unbracket decodes a destination written in Markdown. It removes angle brackets and resolves escapes.
func unbracket(raw string) string {
	return unescape(strings.TrimSuffix(strings.TrimPrefix(raw, "<"), ">"))
}

// blankImage matches ![alt](destination "title") with a space in the destination. The alt text and the destination may
// each contain one level of nested brackets.
var blankImage = lazy.Regexp(`!\[(?:[^\[\]\n]|\[[^\[\]\n]*\])*\](\([ \t]*)` +
	`((?:[^()\s]|\([^()\n]*\))+(?:[ \t]+(?:[^()\s"']|\([^()\n]*\))(?:[^()\s]|\([^()\n]*\))*)+)` +
	`(?:[ \t]+(?:"[^"\n]*"|'[^'\n]*'))?[ \t]*\)`)

// blankImages finds everything in text that looks like an image with a space in its destination. The result maps the
// offset of the "(" to the destination. The match is an image only if that offset is in plain text, outside code and
// links.
func blankImages(text string) map[int]span {
	found := map[int]span{}
	for _, m := range blankImage().FindAllStringSubmatchIndex(text, -1) {
		if m[0] == 0 || text[m[0]-1] != '\\' {
			found[m[2]] = span{m[4], m[5]}
		}
	}
	return found
}

// imgTag matches an HTML image up to the value of its src, including the value's quotes.
var imgTag = lazy.Regexp(`(?i)<img\s(?:(?:[^<>"']|"[^"<]*"|'[^'<]*')*?\s)?src\s*=\s*("[^"<>]+"|'[^'<>]+'|[^\s"'<>]+)`)

// imgSpans returns the spans of the src values in a piece of HTML.
func imgSpans(text string, lines *gtext.Segments) (all []imageSpan) {
	if lines.Len() == 0 {
		return nil
	}
	start, end := lines.At(0).Start, lines.At(lines.Len()-1).Stop
	if strings.HasPrefix(strings.TrimLeft(text[start:end], " "), "<!--") {
		return nil
	}
	for _, m := range imgTag().FindAllStringSubmatchIndex(text[start:end], -1) {
		s := span{start + m[2], start + m[3]}
		if q := text[s.start]; q == '"' || q == '\'' {
			s = span{s.start + 1, s.end - 1}
		}
		all = append(all, imageSpan{s, html.UnescapeString})
	}
	return all
}

// destination returns the span of the destination in `](destination "title")`. It returns false for a reference.
func destination(text string, tail span) (span, bool) {
	s := text[tail.start:tail.end]
	if !strings.HasPrefix(s, "](") {
		return span{}, false
	}
	rest := strings.TrimLeft(s[2:], " \t\r\n")
	start := tail.end - len(rest)
	end := strings.IndexAny(rest, " \t\r\n")
	if strings.HasPrefix(rest, "<") {
		end = closingAngle(rest)
	}
	if end < 0 {
		end = len(rest) - len(")")
	}
	return span{start, start + end}, end > 0
}

// closingAngle returns the length of the "<…>" at the beginning of s, or -1 if it is not closed.
func closingAngle(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '>':
			return i + 1
		}
	}
	return -1
}

// cuts records where parts of the text were left out. It maps offsets in the remaining text to the total number of
// bytes left out before them.
type cuts []struct{ at, gone int }

// origin converts an offset in the shortened text to an offset in the whole text.
func (c cuts) origin(at int) int {
	i := sort.Search(len(c), func(i int) bool { return c[i].at > at })
	if i == 0 {
		return at
	}
	return at + c[i-1].gone
}

// shorten leaves out most of the data in each data URI, because the data may be megabytes long and the parser does not
// need it.
func shorten(body string) (short string, left cuts) {
	const mark, kept = ";base64,", 16
	var out strings.Builder
	gone := 0
	for {
		at := strings.Index(body, mark)
		if at < 0 {
			return out.String() + body, left
		}
		at += len(mark)
		run := len(body[at:]) - len(strings.TrimLeft(body[at:], base64Letters))
		keep := at + min(run, kept)
		out.WriteString(body[:keep])
		if run > kept {
			gone += run - kept
			left = append(left, struct{ at, gone int }{out.Len(), gone})
		}
		body = body[at+run:]
	}
}

const base64Letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_"
