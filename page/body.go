package page

import (
	"html/template"
	"regexp"
	"strings"
	"sync"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/lazy"
	"mailtree/maildir/markdown"
)

// ownFile is a regular expression for the URL of an attachment, or of an image embedded in a message's text.
const ownFile = `^/p/[^/?#]+/(?:file|message/[^/?#]+/image)/[0-9a-f]{40}$`

// clean returns the policy that allows only the HTML that markdown.RenderWith produces. It removes everything else. The
// policy is built when it is first used.
var clean = sync.OnceValue(func() markdown.Policy {
	matches := func(pattern string) func(string) bool { return regexp.MustCompile(pattern).MatchString }
	p := markdown.Bare("h1", "h2", "h3", "h4", "h5", "h6", "p", "br", "hr", "em", "strong", "del", "code", "ul", "blockquote",
		"details", "summary", "thead", "tbody", "tr")
	focusable := markdown.Attributes{"tabindex": matches(`^0$`)}
	aligned := markdown.Attributes{"align": matches(`^(left|right|center)$`)}
	p["pre"], p["table"], p["th"], p["td"] = focusable, focusable, aligned, aligned
	p["li"] = markdown.Attributes{"class": matches(`^task$`)}
	p["ol"] = markdown.Attributes{"start": matches(`^[0-9]+$`)}
	own := matches(ownFile)
	p["a"] = markdown.Attributes{"href": func(to string) bool { return markdown.WebAddress(to) || own(to) }}
	p["img"] = markdown.Attributes{"src": own, "alt": matches(""), "loading": matches(`^lazy$`)}
	return p
})

// bodyHTML returns a body as HTML, or "" if it must be shown as plain text.
func bodyHTML(m *index.MessageRow) template.HTML {
	if m.MediaType == format.PlainText {
		return ""
	}
	inText := map[string]bool{} // URLs of the images in the body
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
	return template.HTML(shortCell().ReplaceAllString(directed.Replace(markdown.Clean(text, clean())), `<$1 class="short"$2>$3</$1>`)) //nolint:gosec // sanitized
}

// shortCell matches table cells with at most 24 characters. Such cells are not wrapped, so that dates, names and
// paths stay on one line. A wide table scrolls instead.
var shortCell = lazy.Regexp(`<(t[dh])([^>]*)>([^<]{1,24})</t[dh]>`)

// directed gives each paragraph, heading, list item and table cell the writing direction of its first letter. The
// HTML must be sanitized, so that every < begins a tag.
var directed = strings.NewReplacer("<p>", `<p dir="auto">`, "<li>", `<li dir="auto">`, "<li ", `<li dir="auto" `,
	"<td>", `<td dir="auto">`, "<td ", `<td dir="auto" `, "<th>", `<th dir="auto">`, "<th ", `<th dir="auto" `,
	"<h1>", `<h1 dir="auto">`, "<h2>", `<h2 dir="auto">`, "<h3>", `<h3 dir="auto">`, "<h4>", `<h4 dir="auto">`,
	"<h5>", `<h5 dir="auto">`, "<h6>", `<h6 dir="auto">`)
