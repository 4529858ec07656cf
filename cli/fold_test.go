package cli

import "testing"

// TestFold: a line ends between two words, and goes on below its last column.
func TestFold(t *testing.T) {
	for given, want := range map[string]string{
		"short\n":                              "short\n",
		"a line of more than twenty letters\n": "a line of more than\ntwenty letters\n",
		"  -a  all of the messages\n":          "  -a  all of the\n      messages\n",
		"  an indented line of text\n":         "  an indented line\n  of text\n",
		"averyveryverylongwordindeed x\n":      "averyveryverylongwordindeed\nx\n",
		"\nlast":                               "\nlast",
	} {
		if got := Fold(given, 20); got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
}

// TestFacts: values stand below each other, and a long one goes on below its beginning.
func TestFacts(t *testing.T) {
	s, out := testScreen(24)
	s.Facts([]Row{{Cells: []string{"to", "Ann, Bob, Cat, Dan, Eve"}}, {Cells: []string{"thread", "T"}}})
	if want := "to      Ann, Bob, Cat,\n        Dan, Eve\nthread  T\n"; out.String() != want {
		t.Errorf("%q, want %q", out, want)
	}
}
