package refusaltest

import (
	"errors"
	"strings"
	"testing"

	"mailtree/maildir/refusal"
)

// TestSentences checks that each refusal has a sentence, and that every key in the sentence is replaced in a log.
func TestSentences(t *testing.T) {
	for _, what := range All(t) {
		said := (&refusal.Error{What: what, Name: "name", Why: "why", Err: errors.New("cause.")}).Error()
		if said == "" || strings.ContainsAny(said, "{}") || strings.Contains(said, "  ") {
			t.Errorf("%+v becomes %q", what, said)
		}
	}
}
