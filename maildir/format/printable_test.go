package format

import (
	"strconv"
	"testing"
)

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
		"a\u061cb\u200f":    `"a\u061cb\u200f"`,
		"\U000e0041x":       `"\U000e0041x"`,
		"\u00a0\u200e\\\"":  "\"\u00a0\\u200e\\\\\\\"\"",
	} {
		got := Printable(s)
		if got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
		if back, err := strconv.Unquote(got); got != s && back != s {
			t.Errorf("%q: %s is read back as %q: %v", s, got, back, err)
		}
	}
}

// TestPrintableScripts checks that characters that a language or an emoji needs are not escaped, even inside
// quotation marks.
func TestPrintableScripts(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"Prêt\u00a0?", "10\u202f000", "می\u200cخواهم", "क\u094d\u200dष", "こんにちは\u3000世界", "soft\u00adhyphen", "zero\u200bwidth",
		"👩\u200d💻", "❤\ufe0f", "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", "\ue0b0", "\U0001fae8", "\ufeffa",
	} {
		if got := Printable(s); got != s {
			t.Errorf("%q: %s", s, got)
		}
		if got := Quote(s); got != `"`+s+`"` {
			t.Errorf("%q is quoted as %s", s, got)
		}
	}
	if got, want := Quote("a\n\u202e\x9b"), `"a\n\u202e\x9b"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
