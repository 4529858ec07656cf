package cli

import (
	"slices"
	"strings"
	"testing"
)

// TestKeys checks that a terminal's input is split into keys, and that pasted text does not produce keys.
func TestKeys(t *testing.T) {
	for _, tt := range []struct {
		sent string
		want []string
	}{
		{"jy", []string{"j", "y"}},
		{"\x1b[A\x1bOB\x1b", []string{"up", "down", "esc"}},
		{"\r \x7f\x03é", []string{"enter", " ", "backspace", "ctrl+c", "é"}},
		{"\x1b[200~yes\x1b[201~n", []string{"n"}},
		{"a\x00\xff\x1ab", []string{"a", "b"}},
	} {
		if got := (&Terminal{}).keys(tt.sent); !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, want %q", tt.sent, got, tt.want)
		}
	}
	const sent = "a\x1b[200~yé\x1b[201~\x1b[Aéq"
	for i := range len(sent) + 1 {
		k := &Terminal{}
		if got := append(k.keys(sent[:i]), k.keys(sent[i:])...); !slices.Equal(got, []string{"a", "up", "é", "q"}) &&
			!strings.HasSuffix(sent[:i], "\x1b") { // the Esc key
			t.Errorf("%q, read in two parts that end at %d: %q", sent, i, got)
		}
	}
	k := &Terminal{}
	k.keys("\x1b[200~y\x1b") // in pasted text, ESC is not a key
	if got := k.keys("[201~q"); !slices.Equal(got, []string{"q"}) {
		t.Errorf("an end mark that was read in two parts: %q", got)
	}
}

// TestCell checks that lines have exactly the given width.
func TestCell(t *testing.T) {
	const bold, end = "\x1b[1;3m", "\x1b[0m"
	for _, tt := range []struct{ got, want string }{
		{Cell("abc", 5), "abc  "},
		{Cell("abcdef", 5), "abcd…"},
		{Cell("日本語", 4), "日… "},
		{Cell(bold+"abc"+end, 5), bold + "abc" + end + "  "},
		{Cell("abc", 0), ""},
		{Ends("abc", "1h", 8), "abc   1h"},
		{Ends("abcdef", "1h", 8), "abcd… 1h"},
		{Ends("abc", "", 5), "abc  "},
		{Ends("abc", "now", 2), " …"},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
	if got := Wrap("日本語abc", 5); !slices.Equal(got, []string{"日本", "語abc"}) {
		t.Errorf("%q", got)
	}
}
