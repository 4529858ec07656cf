package markdown

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Render converts a body to HTML. If the body is larger than [Limit] or goldmark fails, it returns "" and false, and
// the caller should show the body as plain text.
//
// The HTML contains none of the sender's markup: HTML in the body is shown as text. An image becomes a link, so that
// reading the body loads nothing. A bare web address also becomes a link. A quote at the end of the body is collapsed,
// because it is usually the text of the message that the sender replied to. The caller must still clean the HTML with
// [Clean].
func Render(body string) (string, bool) {
	return RenderWith(body, func(string) string { return "" })
}

// RenderWith is like Render, but shows images. For each image, it calls to(destination) with the destination in the
// body. If the result is not "", it is the address of the image to show, and the image is also a link to that
// address.
func RenderWith(body string, to func(destination string) (address string)) (string, bool) {
	source := []byte(normalize(body))
	if len(source) > Limit {
		return "", false
	}
	doc := parseTree(source, util.Prioritized(bareLinks{}, 600))
	if doc == nil {
		return "", false
	}
	return renderTree(doc, source, reading{to})
}

// renderTree renders the tree as HTML. It returns false if goldmark failed or panicked.
func renderTree(doc ast.Node, source []byte, nodes reading) (page string, ok bool) {
	defer func() {
		if recover() != nil {
			page, ok = "", false
		}
	}()
	r := renderer.NewRenderer(renderer.WithNodeRenderers(
		util.Prioritized(nodes, 100),
		util.Prioritized(extension.NewTableHTMLRenderer(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)), 500),
		util.Prioritized(extension.NewStrikethroughHTMLRenderer(), 500),
		util.Prioritized(html.NewRenderer(), 1000),
	))
	var b bytes.Buffer
	err := r.Render(&b, source, doc)
	return b.String(), err == nil
}

// reading renders the nodes for which our HTML differs from goldmark's.
type reading struct {
	image func(destination string) (address string)
}

func (r reading) RegisterFuncs(to renderer.NodeRendererFuncRegisterer) {
	to.Register(ast.KindImage, r.renderImage)
	to.Register(ast.KindBlockquote, renderQuote)
	to.Register(ast.KindCodeSpan, renderCodeSpan)
	to.Register(ast.KindCodeBlock, renderCode)
	to.Register(ast.KindFencedCodeBlock, renderCode)
	to.Register(ast.KindHTMLBlock, renderCode)
	to.Register(ast.KindRawHTML, renderTag)
	to.Register(extast.KindTaskCheckBox, renderCheckBox)
	to.Register(ast.KindListItem, renderItem)
	to.Register(extast.KindTable, renderTable)
}

// renderCodeSpan writes a code span in the same way as goldmark, except that "\|" in a table cell means a pipe.
func renderCodeSpan(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		_, err := w.WriteString("</code>")
		return ast.WalkContinue, err
	}
	_, _ = w.WriteString("<code>")
	for _, text := range codeTexts(n, source) {
		_, _ = w.Write(util.EscapeHTML([]byte(strings.ReplaceAll(text, "\n", " "))))
	}
	return ast.WalkSkipChildren, nil
}

// codeTexts returns the pieces of text in a code span. In a table cell, "\|" means a pipe, even in code.
func codeTexts(n ast.Node, source []byte) (texts []string) {
	cell := false
	for p := n.Parent(); p != nil && !cell; p = p.Parent() {
		_, cell = p.(*extast.TableCell)
	}
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		t, ok := c.(*ast.Text)
		if !ok {
			continue
		}
		text := string(t.Value(source))
		if cell {
			text = strings.ReplaceAll(text, `\|`, "|")
		}
		texts = append(texts, text)
	}
	return texts
}

func (r reading) renderImage(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	to := n.(*ast.Image).Destination
	if address := r.image(string(to)); address != "" {
		if entering {
			writeImage(w, address, Line(readProse(source, n)), inLink(n))
		}
		return ast.WalkSkipChildren, nil
	}
	safe := !html.IsDangerousURL(to) && !bytes.HasPrefix(bytes.ToLower(to), []byte("data:"))
	switch {
	case !safe && entering:
		_, _ = w.WriteString("[image: ")
	case !safe:
		_, _ = w.WriteString("]")
	case entering:
		_, _ = w.WriteString(`<a href="`)
		_, _ = w.Write(util.EscapeHTML(util.URLEscape(to, true)))
		_, _ = w.WriteString(`">[image: `)
	default:
		_, _ = w.WriteString("]</a>")
	}
	return ast.WalkContinue, nil
}

// renderQuote collapses a quote that ends the body, unless the body consists only of the quote.
func renderQuote(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	fold := n.Parent().Kind() == ast.KindDocument && n.PreviousSibling() != nil && n.NextSibling() == nil
	if entering {
		if fold {
			_, _ = w.WriteString("<details><summary>Quoted text</summary>\n")
		}
		_, _ = w.WriteString("<blockquote>\n")
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString("</blockquote>\n")
	if fold {
		_, _ = w.WriteString("</details>\n")
	}
	return ast.WalkContinue, nil
}

// renderCode writes a code block. The block can be scrolled, so it must be focusable.
func renderCode(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString(`<pre tabindex="0"><code>`)
	writeSegments(w, source, n.Lines())
	if b, ok := n.(*ast.HTMLBlock); ok && b.HasClosure() {
		_, _ = w.Write(util.EscapeHTML(b.ClosureLine.Value(source)))
	}
	_, _ = w.WriteString("</code></pre>\n")
	return ast.WalkSkipChildren, nil
}

// renderTag shows an HTML tag as text.
func renderTag(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		writeSegments(w, source, n.(*ast.RawHTML).Segments)
	}
	return ast.WalkSkipChildren, nil
}

// writeImage writes an image. Unless the image is already inside a link, it becomes a link to its own address.
func writeImage(w util.BufWriter, address, alt string, linked bool) {
	at := util.EscapeHTML([]byte(address))
	image := fmt.Sprintf(`<img src="%s" alt="%s" loading="lazy">`, at, util.EscapeHTML([]byte(alt)))
	if !linked {
		image = fmt.Sprintf(`<a href="%s">%s</a>`, at, image)
	}
	_, _ = w.WriteString(image)
}

func inLink(n ast.Node) bool {
	for n = n.Parent(); n != nil; n = n.Parent() {
		if n.Kind() == ast.KindLink {
			return true
		}
	}
	return false
}

func writeSegments(w util.BufWriter, source []byte, all *text.Segments) {
	for i := range all.Len() {
		s := all.At(i)
		_, _ = w.Write(util.EscapeHTML(s.Value(source)))
	}
}

// renderCheckBox shows a check box as a character, because the reader cannot check it.
func renderCheckBox(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		box := "☐ "
		if n.(*extast.TaskCheckBox).IsChecked {
			box = "☑ "
		}
		_, _ = w.WriteString(box)
	}
	return ast.WalkContinue, nil
}

// renderItem writes a list item. If the item begins with a check box, its class is "task", and the box replaces the
// bullet.
func renderItem(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	first := n.FirstChild()
	switch {
	case !entering:
		_, _ = w.WriteString("</li>\n")
		return ast.WalkContinue, nil
	case first != nil && first.FirstChild() != nil && first.FirstChild().Kind() == extast.KindTaskCheckBox:
		_, _ = w.WriteString(`<li class="task">`)
	default:
		_, _ = w.WriteString("<li>")
	}
	if first != nil && first.Kind() != ast.KindTextBlock {
		_ = w.WriteByte('\n')
	}
	return ast.WalkContinue, nil
}

// renderTable writes a table. The table can be scrolled, so it must be focusable.
func renderTable(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, _ = w.WriteString("<table tabindex=\"0\">\n")
	} else {
		_, _ = w.WriteString("</table>\n")
	}
	return ast.WalkContinue, nil
}
