package page

import (
	"html/template"
	"regexp"
	"sync"

	"github.com/microcosm-cc/bluemonday"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/markdown"
)

// clean lets pass what markdown.Render makes, and nothing else. Safe for concurrent use; made at the
// first use.
var clean = sync.OnceValue(cleaner)

func cleaner() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("h1", "h2", "h3", "h4", "h5", "h6", "p", "br", "hr", "em", "strong", "del", "code", "ul", "li", "blockquote",
		"details", "summary", "table", "thead", "tbody", "tr")
	p.AllowAttrs("tabindex").Matching(regexp.MustCompile(`^0$`)).OnElements("pre")
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.AllowAttrs("align").Matching(bluemonday.CellAlign).OnElements("th", "td")
	p.AllowElements("pre", "ol", "th", "td")
	p.AllowAttrs("href").OnElements("a")
	p.AllowURLSchemes("http", "https", "mailto")
	p.RequireParseableURLs(true)
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	return p
}

// bodyHTML is a body as HTML; "" where it is to be shown as it is written.
func bodyHTML(m *index.MessageRow) template.HTML {
	if m.MediaType == format.PlainText {
		return ""
	}
	text, ok := markdown.Render(m.Body)
	if !ok {
		return ""
	}
	return template.HTML(clean().Sanitize(text)) //nolint:gosec // sanitized
}
