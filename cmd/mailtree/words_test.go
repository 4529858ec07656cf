package main

import (
	"strings"
	"testing"
)

// TestWords checks that the command line and the page have words for every refusal, and that the page's words do not
// mention flags.
func TestWords(t *testing.T) {
	for _, open := range append(words.Missing(), pageWords.Missing()...) {
		t.Errorf("no words for %s", open)
	}
	for key, text := range pageWords.Phrases {
		if strings.Contains(text, "--") {
			t.Errorf("the page's words for %q: %s", key, text)
		}
	}
}
