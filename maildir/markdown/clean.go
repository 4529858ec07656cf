package markdown

import (
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// Policy lists the HTML elements that Clean keeps, with their attributes. Clean keeps a link only if the link's
// address is allowed, and an image only if the image's source is allowed.
type Policy map[string]Attributes

// Attributes lists an element's attributes. Each function reports whether a value of the attribute is allowed.
type Attributes map[string]func(value string) bool

// Clean returns the text of page with only the markup that the policy allows. All other markup becomes text or is
// dropped. Clean writes every tag in the result itself, with quoted and escaped attributes, so the result cannot
// contain other tags. Each link gets rel="nofollow noreferrer".
func Clean(page string, allowed Policy) string {
	var b strings.Builder
	dropped := map[string]int{} // number of dropped start tags that have not been closed yet, by element
	for z := html.NewTokenizer(strings.NewReader(page)); ; {
		switch z.Next() {
		case html.ErrorToken:
			return b.String()
		case html.TextToken:
			b.WriteString(html.EscapeString(z.Token().Data))
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			if !writeTag(&b, &t, allowed) {
				dropped[t.Data]++
			}
		case html.EndTagToken:
			t := z.Token()
			if _, ok := allowed[t.Data]; !ok {
				continue
			}
			if dropped[t.Data] > 0 {
				dropped[t.Data]--
				continue
			}
			b.WriteString("</" + t.Data + ">")
		}
	}
}

// needs lists elements that are kept only if they have a certain attribute.
var needs = map[string]string{"a": "href", "img": "src"}

// writeTag writes a start tag with its allowed attributes. It returns false if the tag is not allowed.
func writeTag(b *strings.Builder, t *html.Token, allowed Policy) bool {
	attributes, ok := allowed[t.Data]
	if !ok {
		return false
	}
	kept := slices.DeleteFunc(t.Attr, func(a html.Attribute) bool {
		fits := attributes[a.Key]
		return a.Namespace != "" || fits == nil || !fits(a.Val)
	})
	if need := needs[t.Data]; need != "" && !slices.ContainsFunc(kept, func(a html.Attribute) bool { return a.Key == need }) {
		return false
	}
	b.WriteString("<" + t.Data)
	for _, a := range kept {
		b.WriteString(" " + a.Key + `="` + html.EscapeString(a.Val) + `"`)
	}
	if t.Data == "a" {
		b.WriteString(` rel="nofollow noreferrer"`)
	}
	b.WriteString(">")
	return true
}

// WebAddress reports whether an address is a valid URL with the scheme http, https or mailto.
func WebAddress(address string) bool {
	u, err := url.Parse(address)
	return err == nil && slices.Contains([]string{"http", "https", "mailto"}, u.Scheme)
}

// Bare returns a policy that allows the named elements without attributes.
func Bare(names ...string) Policy {
	p := Policy{}
	for _, name := range names {
		p[name] = nil
	}
	return p
}
