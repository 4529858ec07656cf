package format

import "testing"

func TestPrintable(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"messages/a b.md":   "messages/a b.md",
		"Überblick „x“ …":   "Überblick „x“ …",
		`no "agent" \ here`: `no "agent" \ here`,
		"":                  "",
		"a\nok  b":          `"a\nok  b"`,
		"\x1b[2J":           `"\x1b[2J"`,
		"\u202egnp":         `"\u202egnp"`,
		"\u009b2J":          `"\u009b2J"`,
		"\x9b2J":            `"\x9b2J"`,
		"a\u2028b":          `"a\u2028b"`,
	} {
		if got := Printable(s); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
}
