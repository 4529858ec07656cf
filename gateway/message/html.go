package message

import (
	"slices"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/strikethrough"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"

	"mailtree/maildir/format"
)

// Limits on HTML that is converted to markdown. Each line of markdown repeats a marker for every enclosing quote and
// list, and table rows are padded. Without these limits, the markdown could be quadratically larger than the HTML.
const (
	maxIndent = 20          // depth of nested quotes and lists
	maxCells  = 1_000_000   // total number of rows times total number of cells
	maxSearch = 100_000_000 // bytes that the converter reads while it searches for closing brackets
)

// markdown converts HTML to markdown. It converts up to maxHTML bytes in the whole message, and omits the rest. If
// the HTML exceeds another limit or the parser rejects it, markdown returns only the text. The parser rejects HTML
// with more than 512 nested elements.
func (m *Message) markdown(text string) string {
	room := maxHTML - m.converted
	m.converted += min(len(text), room)
	if len(text) > room {
		text = format.Cut(text, room)
		m.problem("the HTML is longer than %d KiB; the full HTML is attached", maxHTML>>10)
	}
	doc, err := html.Parse(strings.NewReader(text))
	if err != nil || !withinLimits(doc) {
		m.problem("the HTML is too complex to convert to Markdown, so only its text is shown")
		return bareText(text)
	}
	prepareTables(doc)
	convert := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), strikethrough.NewStrikethroughPlugin(),
		commonmark.NewCommonmarkPlugin(commonmark.WithListEndComment(false)), table.NewTablePlugin()))
	out, err := convert.ConvertNode(doc)
	if err != nil {
		m.problem("the HTML cannot be converted to Markdown, so only its text is shown")
		return bareText(text)
	}
	return strings.ToValidUTF8(string(out), "\ufffd")
}

// withinLimits reports whether the markdown will be about as large as the HTML, and whether the conversion will take
// roughly linear time. It also removes rowspan and colspan from table cells.
func withinLimits(doc *html.Node) bool {
	rows, cells := 0, 0
	open, search := 0, 0 // open brackets; bytes that the converter reads while it searches for closing brackets
	for n := range doc.Descendants() {
		for _, a := range n.Attr {
			search += open * len(a.Val)
		}
		if n.Type == html.TextNode {
			for _, c := range []byte(n.Data) {
				switch c {
				case '[':
					open++
				case ']':
					open = 0
				}
				search += open
			}
			continue
		}
		switch n.Data {
		case "tr":
			rows++
		case "td", "th":
			cells++
			n.Attr = slices.DeleteFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "rowspan" || a.Key == "colspan" })
		case "blockquote", "ul", "ol", "dl":
			if indent(n) > maxIndent {
				return false
			}
		}
	}
	return rows*cells <= maxCells && search <= maxSearch
}

func indent(n *html.Node) (depth int) {
	for a := range n.Ancestors() {
		if slices.Contains([]string{"blockquote", "ul", "ol", "dl"}, a.Data) {
			depth++
		}
	}
	return depth
}

// bareText returns the text of an HTML document without the markup.
func bareText(text string) string {
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(text))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return strings.TrimSpace(b.String())
		case html.StartTagToken:
			if name, _ := z.TagName(); string(name) == "script" || string(name) == "style" {
				z.Next() // skip the element's text
			}
		case html.TextToken:
			if line := strings.TrimSpace(string(z.Text())); line != "" {
				b.WriteString(strings.ToValidUTF8(line, "\ufffd") + "\n")
			}
		}
	}
}
