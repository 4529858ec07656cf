package docs

import "testing"

// TestHeadings checks anchors and sections, and that a comment in a code block is not a heading.
func TestHeadings(t *testing.T) {
	t.Parallel()
	page := "# Mail\n\nText.\n\n## Who's `who`, & why\n\n```\n# no heading\n```\n\n### Two\n\nMore.\n\n## Last_one\nEnd.\n"
	var got []string
	for _, h := range Headings(page) {
		got = append(got, h.Anchor)
	}
	want := []string{"mail", "whos-who--why", "two", "last_one"}
	if len(got) != len(want) {
		t.Fatalf("anchors: %q, not %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("anchor %d: %q, not %q", i, got[i], want[i])
		}
	}
	if got, want := Headings(page)[1].Section, "## Who's `who`, & why\n\n```\n# no heading\n```\n\n### Two\n\nMore.\n\n"; got != want {
		t.Errorf("section: %q, not %q", got, want)
	}
	if got := Headings(page)[3].Section; got != "## Last_one\nEnd.\n" {
		t.Errorf("last section: %q", got)
	}
}
