package main

import "testing"

// TestWords: the command line has words for every refusal.
func TestWords(t *testing.T) {
	for _, open := range words.Missing() {
		t.Errorf("no words for %s", open)
	}
}
