package refusaltest

import (
	"errors"
	"strings"
	"testing"

	"mailtree/maildir/refusal"
)

// TestSentences: each refusal has a sentence that contains only known keys, and in a log every key is replaced.
func TestSentences(t *testing.T) {
	for _, what := range All(t) {
		said := (&refusal.Error{What: what, Name: "name", Why: "why", Err: errors.New("cause.")}).Error()
		if said == "" || strings.ContainsAny(said, "{}") || strings.Contains(said, "  ") {
			t.Errorf("%+v becomes %q", what, said)
		}
	}
}
