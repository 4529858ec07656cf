package cli

import (
	"slices"
	"testing"
)

// TestKeys checks how a terminal's input is split into keys. Pasted text produces no keys.
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
	k := &Terminal{}
	if got := append(k.keys("\x1b[200~y"), k.keys("y\x1b[201~q")...); !slices.Equal(got, []string{"q"}) {
		t.Errorf("text that was pasted in two parts: %q", got)
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
