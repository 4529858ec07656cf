package sending

import "testing"

// TestForwardSubject checks that a forward's subject begins with exactly one "Fwd:".
func TestForwardSubject(t *testing.T) {
	for subject, want := range map[string]string{
		"Plan":           "Fwd: Plan",
		"Re: Plan":       "Fwd: Re: Plan",
		"Fwd: Plan":      "Fwd: Plan",
		"FWD: Plan":      "FWD: Plan",
		"Fwd":            "Fwd: Fwd",
		"":               "Fwd: ",
		" a\u202eb\nc  ": "Fwd: a b c",
	} {
		if got := forwardSubject(subject); got != want {
			t.Errorf("%q: %q, want %q", subject, got, want)
		}
	}
}

// TestQuoted checks the quotation of texts, including empty lines and nested quotations.
func TestQuoted(t *testing.T) {
	for text, want := range map[string]string{
		"":                "> \n",
		"one\n":           "> one\n",
		"one\n\ntwo\n\n":  "> one\n>\n> two\n",
		"one\r\ntwo":      "> one\n> two\n",
		"> one\n>\n> two": "> > one\n> >\n> > two\n",
	} {
		if got := quoted(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
