package markdown

import (
	"strings"
	"testing"
)

// TestRewriteImages checks that each inline image is found at its position, and that nothing else is changed.
func TestRewriteImages(t *testing.T) {
	t.Parallel()
	data := "data:image/png;base64," + strings.Repeat("iVBORw0KGgo+/=", 100<<10)
	for _, tt := range []struct{ body, found, want string }{
		{"![diagram](docs/flow.png)", "docs/flow.png", "![diagram](NEW)"},
		{"a ![](a.png) b ![x](b.png \"title\") c", "a.png b.png", "a ![](NEW) b ![x](NEW \"title\") c"},
		{"![](<my flow.png>)", "my flow.png", "![](NEW)"},
		{`![a](a\_b&amp;c.png 'it')`, "a_b&c.png", "![a](NEW 'it')"},
		{"![a](  a.png\n\"t\" )", "a.png", "![a](  NEW\n\"t\" )"},
		{"![a](a(1).png)", "a(1).png", "![a](NEW)"},
		{"[![a](a.png)](https://example.org)", "a.png", "[![a](NEW)](https://example.org)"},
		{"![a ![b](b.png)](a.png)", "b.png a.png", "![a ![b](NEW)](NEW)"},
		{"> - ![a](a.png)\r\n>\r\n> ![b](b.png)\r\n", "a.png b.png", "> - ![a](NEW)\r\n>\r\n> ![b](NEW)\r\n"},
		{"|a|\n|-|\n|![a](a.png)|\n", "a.png", "|a|\n|-|\n|![a](NEW)|\n"},
		{"é\n\n# ![a](ä.png)", "ä.png", "é\n\n# ![a](NEW)"},
		{"![a](" + data + ") ![b](" + data + " 'b') ![c](c.png)", data + " " + data + " c.png", "![a](NEW) ![b](NEW 'b') ![c](NEW)"},
		{"`![a](a.png)`\n\n    ![a](a.png)\n\n```\n![a](a.png)\n```\n", "", ""},
		{"[a](a.png) ![a][b] ![a]()\n\n[b]: b.png\n", "", ""},
		{"![a] (a.png) \\![a](a.png) \\![a](a b.png) ![", "", ""},
		{"![a](a b.png)![c]( image (1).png \"t\" ) end", "a b.png image (1).png", "![a](NEW)![c]( NEW \"t\" ) end"},
		{"> - ![a [b] c](a b.png) [![d](d e.png)](https://example.org)", "a b.png d e.png",
			"> - ![a [b] c](NEW) [![d](NEW)](https://example.org)"},
		{"![a](x ![b](c.png) d.png)", "x ![b](c.png) d.png", "![a](NEW)"},
		{"![a](" + data + ") ![c](c d.png)", data + " c d.png", "![a](NEW) ![c](NEW)"},
		{"`![a](a b.png)`\n\n    ![a](a b.png)\n\n```\n![a](a b.png) <img src=\"a.png\">\n```\n`<img src=a.png>`", "", ""},
		{"[a](a b.png) ![a](\na b.png) ![a](b.png\n\"t t\")", "b.png", "[a](a b.png) ![a](\na b.png) ![a](NEW\n\"t t\")"},
		{"see <img src=\"a b.png\" alt='x'> and <IMG alt=\"no src='n.png'\" src='a&amp;b.png'/>", "a b.png a&b.png",
			"see <img src=\"NEW\" alt='x'> and <IMG alt=\"no src='n.png'\" src='NEW'/>"},
		{"<p align=center>\r\n  <img width=9\r\n  src=a.png>\r\n</p>\r\n", "a.png",
			"<p align=center>\r\n  <img width=9\r\n  src=NEW>\r\n</p>\r\n"},
		{"<img src=\"" + data + "\">", data, "<img src=\"NEW\">"},
		{"<!-- <img src=\"a.png\"> --> <img data-src=\"a.png\"> <imgs src=\"a.png\">", "", ""},
		{"none", "", ""},
	} {
		var found []string
		got, _ := RewriteImages(tt.body, func(d string) string {
			found = append(found, d)
			return "NEW"
		})
		if tt.want == "" {
			tt.want = tt.body
		}
		if strings.Join(found, " ") != tt.found || got != tt.want {
			t.Errorf("%.80s\nfound %.80q, made %.80s", tt.body, found, got)
		}
		if same, _ := RewriteImages(tt.body, func(d string) string { return d }); same != tt.body {
			t.Errorf("%.80s\nwas changed to %.80s, but should not change", tt.body, same)
		}
	}
}

// FuzzRewriteImages checks that no body causes a panic, and that a body does not change if the function to returns
// its argument.
func FuzzRewriteImages(f *testing.F) {
	for _, body := range hostile(300) {
		f.Add(body)
	}
	f.Add("![a](x ![b](c) <img src='d e'> f) <img src=\"g\">")
	f.Add("![a](<b \\> c> \"t\") ![d](data:image/png;base64," + strings.Repeat("A", 99) + ")")
	f.Fuzz(func(t *testing.T, body string) {
		if same, _ := RewriteImages(body, func(d string) string { return d }); same != body {
			t.Error("changed")
		}
		RewriteImages(body, func(string) string { return "x" })
	})
}

// TestRewriteImagesWhole checks that the result whole is false if RewriteImages may have missed images because the
// text is too long.
func TestRewriteImagesWhole(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		want       bool
	}{
		{"no image", strings.Repeat("word ", Limit), true},
		{"short", "![a](b.png)", true},
		{"a tag after the limit", strings.Repeat("word ", Limit/5) + "\n\n<IMG src=b.png>", false},
		{"an image after the limit", strings.Repeat("word ", Limit/5) + "\n\n![a](b.png)", false},
		{"none after the limit", "![a](b.png)\n\n" + strings.Repeat("word ", Limit/5), true},
	} {
		if _, whole := RewriteImages(tt.body, func(string) string { return "x" }); whole != tt.want {
			t.Errorf("%s: %t", tt.name, whole)
		}
	}
}
