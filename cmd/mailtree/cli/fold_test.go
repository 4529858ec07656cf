package cli

import "testing"

// TestFold checks that a line is broken between words, that continuation lines are aligned with the line's last
// column, and that commands are not broken.
func TestFold(t *testing.T) {
	for given, want := range map[string]string{
		"short\n":                                "short\n",
		"a line of more than twenty letters\n":   "a line of more than\ntwenty letters\n",
		"  -a  all of the messages\n":            "  -a  all of the\n      messages\n",
		"  an indented line of text\n":           "  an indented line\n  of text\n",
		"averyveryverylongwordindeed x\n":        "averyveryverylongwordindeed\nx\n",
		"\nlast":                                 "\nlast",
		"first run `mailtree setup`, then x\n":   "first run\n`mailtree setup`,\nthen x\n",
		"see /a/path/that/is/longer/than/it x\n": "see\n/a/path/that/is/longer/than/it\nx\n",
		"!!  日本語日本語日本語日本語日本\n":                   "!!  日本語日本語日本\n    語日本語日本\n",
		"🚀🚀🚀🚀 🚀🚀🚀🚀🚀 ab\n":                        "🚀🚀🚀🚀 🚀🚀🚀🚀🚀\nab\n",
		"one ` two three four five\n":            "one ` two three four\nfive\n",

		"ask:\n  mailtree send Ann -m \"a  b\"\n  mailtree send Bob -m \"c\"\n": "ask:\n  mailtree send Ann -m \"a  b\"\n  mailtree send Bob -m \"c\"\n",
		"a long line before commands:\n  mailtree send Ann -m x\n":              "a long line before\ncommands:\n  mailtree send Ann -m x\n",
		"run:\n  make  the server and x\n":                                      "run:\n  make  the server\n        and x\n",
		"run:\nand then x\n  an indented line of text\n":                        "run:\nand then x\n  an indented line\n  of text\n",
	} {
		if got := Fold(given, 20); got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
}

// TestFacts checks that values are aligned in a column, and that the continuation of a long value is aligned with the
// start of the value.
func TestFacts(t *testing.T) {
	s, out := testScreen(24)
	s.Facts([]Row{{Cells: []string{"to", "Ann, Bob, Cat, Dan, Eve"}}, {Cells: []string{"thread", "T"}}})
	if want := "to      Ann, Bob, Cat,\n        Dan, Eve\nthread  T\n"; out.String() != want {
		t.Errorf("%q, want %q", out, want)
	}
}

// TestTell checks that lines are broken between words, but only on a terminal.
func TestTell(t *testing.T) {
	for width, want := range map[int]string{0: "one two three four\n", 10: "one two\nthree four\n"} {
		s, out := testScreen(width)
		s.Tell("one %s three four\n", "two")
		if out.String() != want {
			t.Errorf("%d columns: %q, want %q", width, out, want)
		}
	}
}
