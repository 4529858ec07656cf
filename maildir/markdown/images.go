package markdown

import (
	"context"
	"slices"
	"sort"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// RewriteImages puts other destinations into the inline images of a body, ![alt](destination). It
// calls to with each destination, in the order of the text, and writes what it returns in its
// place; to returns the same to leave it. What to returns needs no escapes: it has no blank and no
// bracket.
//
// Images in code and of references ([alt][name]) are left, and so is what lies behind Limit or
// costs too much to parse: then whole is false, if there may be images in that. The bytes of a data
// URI do not count: they are as good as one word.
func RewriteImages(ctx context.Context, body string, to func(destination string) string) (out string, whole bool) {
	if !strings.Contains(body, "![") {
		return body, true
	}
	short, cuts := shorten(body)
	text, _ := clipBody(short, Limit)
	source := []byte(sameLength.Replace(text))
	doc, parsed := parseTree(ctx, source, deadline(text))
	if doc == nil {
		return body, false
	}
	var b strings.Builder
	done := 0
	for _, s := range imageSpans(doc, text) {
		start, end := cuts.origin(s.start), cuts.origin(s.end)
		raw := body[start:end]
		old := unescape(strings.TrimSuffix(strings.TrimPrefix(raw, "<"), ">"))
		if with := to(old); with != old {
			b.WriteString(body[done:start] + with)
			done = end
		}
	}
	return b.String() + body[done:], parsed && !strings.Contains(short[len(text):], "![")
}

// sameLength makes lines end in "\n" without moving anything.
var sameLength = strings.NewReplacer("\r\n", " \n", "\r", "\n")

// span is a part of a text, in bytes.
type span struct{ start, end int }

// spanAttribute is the attribute of an image's node that holds the span from its "](" to its ")".
const spanAttribute = "mailtree-span"

// imageSpans are the spans of the destinations, angle brackets included, in the order of the text.
func imageSpans(doc ast.Node, text string) []span {
	var all []span
	ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if tail, ok := n.AttributeString(spanAttribute); ok && entering {
			if s, ok := destination(text, tail.(span)); ok {
				all = append(all, s)
			}
		}
		return ast.WalkContinue, nil
	})
	slices.SortFunc(all, func(a, b span) int { return a.start - b.start })
	return all
}

// destination is the span of the destination in `](destination "title")`; false for a reference.
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

// closingAngle is how many bytes reach to the end of "<…>".
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

// cuts tell where text was left out: how many bytes before each place of the rest.
type cuts []struct{ at, gone int }

// origin is the place in the whole text of a place in the rest.
func (c cuts) origin(at int) int {
	i := sort.Search(len(c), func(i int) bool { return c[i].at > at })
	if i == 0 {
		return at
	}
	return at + c[i-1].gone
}

// shorten leaves out most of the data of each data URI: it may have megabytes, and means nothing to
// a parser.
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
