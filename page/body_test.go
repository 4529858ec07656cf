package page

import (
	"testing"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// TestBodyDirection checks that each paragraph, heading, list item and table cell has the writing direction of its
// own text. Text that looks like a tag must remain text.
func TestBodyDirection(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"# \u05e9\u05dc\u05d5\u05dd\n\nword": "<h1 dir=\"auto\">\u05e9\u05dc\u05d5\u05dd</h1>\n<p dir=\"auto\">word</p>\n",
		"- [x] a":                            "<ul>\n<li dir=\"auto\" class=\"task\">\u2611 a</li>\n</ul>\n",
		"\\<p> `<li>`":                       "<p dir=\"auto\">&lt;p&gt; <code>&lt;li&gt;</code></p>\n",
		"| a |\n|:-:|\n| `b\\|c` |": "<table tabindex=\"0\">\n<thead>\n<tr>\n<th class=\"short\" dir=\"auto\" align=\"center\">a</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n" +
			"<td dir=\"auto\" align=\"center\"><code>b|c</code></td>\n</tr>\n</tbody>\n</table>\n",
	} {
		if got := string(bodyHTML(&index.MessageRow{Message: format.Message{Body: body}})); got != want {
			t.Errorf("%q:\n got %q\nwant %q", body, got, want)
		}
	}
}
