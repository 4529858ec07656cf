package markdown_test

import (
	"strings"
	"testing"

	"golang.org/x/net/html"

	"mailtree/maildir/markdown"
)

// narrow returns a policy that allows only a few elements.
func narrow() markdown.Policy {
	p := markdown.Bare("p", "em", "br")
	p["a"] = markdown.Attributes{"href": markdown.WebAddress}
	p["img"] = markdown.Attributes{"src": func(v string) bool { return v == "/own" }, "alt": func(string) bool { return true }}
	return p
}

// TestClean checks which markup Clean keeps, and how the kept markup is written.
func TestClean(t *testing.T) {
	t.Parallel()
	for page, want := range map[string]string{
		`<p>1 &lt; 2 &amp; "3"</p>`:                          `<p>1 &lt; 2 &amp; &#34;3&#34;</p>`,
		`<P CLASS=x onclick=y>a</P>`:                         `<p>a</p>`,
		`<a href="https://x.example/?a=1&amp;b">b</a>`:       `<a href="https://x.example/?a=1&amp;b" rel="nofollow noreferrer">b</a>`,
		`<a href="mailto:a@b.example" rel="opener">b</a>`:    `<a href="mailto:a@b.example" rel="nofollow noreferrer">b</a>`,
		`<p><a href="javascript:x">b</a> <em>c</em></p>`:     `<p>b <em>c</em></p>`,
		`<a href="docs/x.md">b</a>, <a>c</a>`:                `b, c`,
		`<a href=" https://x.example">b</a>`:                 `b`,
		`<img src="/own" alt="a&quot;b" onerror=x>`:          `<img src="/own" alt="a&#34;b">`,
		`<img src="/other" alt="a">b`:                        `b`,
		`<script>alert("<p>")</script>c`:                     `alert(&#34;&lt;p&gt;&#34;)c`,
		`<style>p{}</style><title><em>t</em></title>`:        `p{}&lt;em&gt;t&lt;/em&gt;`,
		`<!-- <p> --><!doctype html><?x?>c`:                  `c`,
		`<svg><p>a</p><a xlink:href="https://x">b</a></svg>`: `<p>a</p>b`,
		`<p title="`: ``,
		`<br/><em/`:  `<br>`,
	} {
		if got := markdown.Clean(page, narrow()); got != want {
			t.Errorf("%s\nbecame %s\nand not %s", page, got, want)
		}
	}
}

// FuzzClean checks that the result, as a browser would parse it, contains only what the policy allows, and that
// cleaning it again changes nothing.
func FuzzClean(f *testing.F) {
	for _, page := range []string{
		`<p><a href="https://x.example" onclick="y">b</a><img src="/own"></p>`,
		`<svg><style><p title="</style><img src=x onerror=y>">`,
		`<noscript><p title="</noscript><script>x</script>">`,
		"<a href=\"java\nscript:x\">b</a><textarea></p><plaintext><em>",
	} {
		f.Add(page)
	}
	f.Fuzz(func(t *testing.T, page string) {
		policy := narrow()
		once := markdown.Clean(page, policy)
		if again := markdown.Clean(once, policy); again != once {
			t.Errorf("%q\nbecame %q\nand then %q", page, once, again)
		}
		doc, err := html.Parse(strings.NewReader("<body>" + once))
		if err != nil {
			t.Fatal(err)
		}
		for n := range doc.Descendants() {
			switch {
			case n.Type == html.CommentNode || n.Type == html.DoctypeNode:
				t.Errorf("%q contains %q", once, n.Data)
			case n.Type != html.ElementNode || n.Data == "html" || n.Data == "head" || n.Data == "body":
				continue
			}
			allowed, ok := policy[n.Data]
			if !ok {
				t.Errorf("%q contains <%s>", once, n.Data)
			}
			for _, a := range n.Attr {
				if fits := allowed[a.Key]; a.Key != "rel" && (fits == nil || !fits(a.Val)) {
					t.Errorf("%q contains %s=%q", once, a.Key, a.Val)
				}
			}
		}
	})
}
