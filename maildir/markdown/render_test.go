package markdown

import (
	"strings"
	"testing"
)

func TestRender(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{"# a\n\nb *c* `d<e>`", "<h1>a</h1>\n<p>b <em>c</em> <code>d&lt;e&gt;</code></p>\n"},
		{"> old\n\nnew", "<blockquote>\n<p>old</p>\n</blockquote>\n<p>new</p>\n"},
		{"> all", "<blockquote>\n<p>all</p>\n</blockquote>\n"},
		{"new\n\n> old", "<p>new</p>\n<details><summary>Quoted text</summary>\n<blockquote>\n<p>old</p>\n</blockquote>\n</details>\n"},
		{"- > in a list", "<ul>\n<li>\n<blockquote>\n<p>in a list</p>\n</blockquote>\n</li>\n</ul>\n"},
		{"```go\na < b\n```", "<pre tabindex=\"0\"><code>a &lt; b\n</code></pre>\n"},
		{"![a](http://evil.example/x.png)", "<p><a href=\"http://evil.example/x.png\">[image: a]</a></p>\n"},
		{"![a](javascript:alert(1))", "<p>[image: a]</p>\n"},
		{"![a](data:image/svg+xml;base64,AAAA)", "<p>[image: a]</p>\n"},
		{"[a](javascript:alert(1))", "<p><a href=\"\">a</a></p>\n"},
		{"a <b onclick=x>c", "<p>a &lt;b onclick=x&gt;c</p>\n"},
		{"<script>\nalert(1)\n</script>", "<pre tabindex=\"0\"><code>&lt;script&gt;\nalert(1)\n&lt;/script&gt;</code></pre>\n"},
		{"~~a~~\n\n- [x] b", "<p><del>a</del></p>\n<ul>\n<li class=\"task\">☑ b</li>\n</ul>\n"},
		{"1. a\n\n   b\n2. c", "<ol>\n<li>\n<p>a</p>\n<p>b</p>\n</li>\n<li>\n<p>c</p>\n</li>\n</ol>\n"},
		{"see https://a.b/c_d_e?f=1&g, or\nhttp://localhost:80.", "<p>see " +
			"<a href=\"https://a.b/c_d_e?f=1&amp;g\">https://a.b/c_d_e?f=1&amp;g</a>, or\n<a href=\"http://localhost:80\">http://localhost:80</a>.</p>\n"},
		{"(www.a.b/c_(d)) **HTTPS://é.f**", "<p>(<a href=\"http://www.a.b/c_(d)\">www.a.b/c_(d)</a>) " +
			"<strong><a href=\"HTTPS://%C3%A9.f\">HTTPS://é.f</a></strong></p>\n"},
		{"[https://a.b](https://c.d) `https://e.f`", "<p><a href=\"https://c.d\">https://a.b</a> <code>https://e.f</code></p>\n"},
		{"xhttps://a.b https:// javascript://a.b www.", "<p>xhttps://a.b https:// javascript://a.b www.</p>\n"},
		{"| a |\n|---|\n| `b\\|c` **`d\\|<`** |", "<table tabindex=\"0\">\n<thead>\n<tr>\n<th>a</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n" +
			"<td><code>b|c</code> <strong><code>d|&lt;</code></strong></td>\n</tr>\n</tbody>\n</table>\n"},
		{"`a\\|b\nc`", "<p><code>a\\|b c</code></p>\n"},
		{"| a |\n|---|\n| https://b.c |", "<table tabindex=\"0\">\n<thead>\n<tr>\n<th>a</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n" +
			"<td><a href=\"https://b.c\">https://b.c</a></td>\n</tr>\n</tbody>\n</table>\n"},
	} {
		got, ok := Render(c.body)
		if !ok || got != c.want {
			t.Errorf("%q: %v\n got %q\nwant %q", c.body, ok, got, c.want)
		}
	}
	if got, ok := Render(strings.Repeat("a", Limit+1)); ok || got != "" {
		t.Errorf("a body over the limit produces %d bytes, %v", len(got), ok)
	}
}

func TestRenderWith(t *testing.T) {
	to := func(destination string) string {
		if destination == "a.png" {
			return `/x?"<`
		}
		return ""
	}
	const image = `<img src="/x?&quot;&lt;" alt="a &quot;b c" loading="lazy">`
	for _, c := range []struct{ body, want string }{
		{`![a "*b*` + "\nc](a.png)", `<p><a href="/x?&quot;&lt;">` + image + "</a></p>\n"},
		{`[![a "b c](a.png)](http://a.b)`, `<p><a href="http://a.b">` + image + "</a></p>\n"},
		{"![a](b.png) ![](a.png)", `<p><a href="b.png">[image: a]</a> <a href="/x?&quot;&lt;"><img src="/x?&quot;&lt;" alt="" loading="lazy"></a></p>` + "\n"},
	} {
		if got, ok := RenderWith(c.body, to); !ok || got != c.want {
			t.Errorf("%q: %v\n got %q\nwant %q", c.body, ok, got, c.want)
		}
	}
}
