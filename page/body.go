package page

import (
	"html/template"
	"regexp"
	"strings"
	"sync"

	"github.com/microcosm-cc/bluemonday"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/markdown"
)

// ownFile is a regular expression for the address of an attachment, or of an image embedded in a message's text.
const ownFile = `^/p/[^/?#]+/(?:file|message/[^/?#]+/image)/[0-9a-f]{40}$`

// clean removes everything from HTML that markdown.Render does not produce. It is safe for concurrent use and is built
// when it is first used.
var clean = sync.OnceValue(cleaner)

func cleaner() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("h1", "h2", "h3", "h4", "h5", "h6", "p", "br", "hr", "em", "strong", "del", "code", "ul", "li", "blockquote",
		"details", "summary", "table", "thead", "tbody", "tr")
	p.AllowAttrs("tabindex").Matching(regexp.MustCompile(`^0$`)).OnElements("pre", "table")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^task$`)).OnElements("li")
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.AllowAttrs("align").Matching(bluemonday.CellAlign).OnElements("th", "td")
	p.AllowElements("pre", "ol", "th", "td")
	p.AllowAttrs("href").Matching(regexp.MustCompile(`^(?i:https?:|mailto:)|` + ownFile)).OnElements("a")
	p.AllowAttrs("src").Matching(regexp.MustCompile(ownFile)).OnElements("img")
	p.AllowAttrs("alt").OnElements("img")
	p.AllowAttrs("loading").Matching(regexp.MustCompile(`^lazy$`)).OnElements("img")
	p.AllowURLSchemes("http", "https", "mailto")
	p.RequireParseableURLs(true)
	p.AllowRelativeURLs(true) // only file addresses are allowed
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	return p
}

// bodyHTML returns a body as HTML, or "" if it must be shown as plain text.
func bodyHTML(m *index.MessageRow) template.HTML {
	if m.MediaType == format.PlainText {
		return ""
	}
	inText := map[string]bool{} // addresses of the images in the body
	body, _ := markdown.RewriteImages(m.Body, func(destination string) string {
		if !strings.HasPrefix(destination, "data:") {
			return destination
		}
		data, _ := inlined(destination)
		if data == nil {
			return "data:" // drop the data of an image that cannot be shown
		}
		at := inlinedAt(m, data)
		inText[at] = true
		return at
	})
	text, ok := markdown.RenderWith(body, func(destination string) string {
		if inText[destination] {
			return destination
		}
		return pictureAt(m, destination)
	})
	if !ok {
		return ""
	}
	return template.HTML(shortCell.ReplaceAllString(directed.Replace(clean().Sanitize(text)), `<$1 class="short"$2>$3</$1>`)) //nolint:gosec // sanitized
}

// shortCell matches table cells with at most 24 letters. They are not broken into several lines, so that dates, names and
// paths stay whole; a wide table scrolls.
var shortCell = regexp.MustCompile(`<(t[dh])([^>]*)>([^<]{1,24})</t[dh]>`)

// directed gives each paragraph, heading, list item and table cell in sanitized HTML the writing direction of its first
// letter. In sanitized HTML, every < begins a tag.
var directed = strings.NewReplacer("<p>", `<p dir="auto">`, "<li>", `<li dir="auto">`, "<li ", `<li dir="auto" `,
	"<td>", `<td dir="auto">`, "<td ", `<td dir="auto" `, "<th>", `<th dir="auto">`, "<th ", `<th dir="auto" `,
	"<h1>", `<h1 dir="auto">`, "<h2>", `<h2 dir="auto">`, "<h3>", `<h3 dir="auto">`, "<h4>", `<h4 dir="auto">`,
	"<h5>", `<h5 dir="auto">`, "<h6>", `<h6 dir="auto">`)
