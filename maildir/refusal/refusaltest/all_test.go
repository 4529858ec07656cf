package refusaltest

import (
	"errors"
	"strings"
	"testing"

	"mailtree/maildir/refusal"
)

// TestSentences: each refusal has a sentence, whose keys all mean something, and in a log nothing stays
// open.
func TestSentences(t *testing.T) {
	for _, what := range All(t) {
		said := (&refusal.Error{What: what, Name: "name", Why: "why", Err: errors.New("cause.")}).Error()
		if said == "" || strings.ContainsAny(said, "{}") || strings.Contains(said, "  ") {
			t.Errorf("%+v is said as %q", what, said)
		}
	}
}
