package maildir_test

import (
	"fmt"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
)

// BenchmarkSummarize measures how long it takes to summarize a thread of 1,000 messages. The bodies are read from the
// index.
func BenchmarkSummarize(b *testing.B) {
	p := project(b, storetest.Config{}, "Ann", "Bob")
	for i := range 1000 {
		send(b, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "s", ThreadID: "T", Body: fmt.Sprintf("Table %d is copied to "+
			"`new_%d`, see tools/copy.go:%d.\n\n- [x] verify table %d\n- [ ] @Bob drops table %d\n\nDecision: table %d stays "+
			"until Friday.\n\nDo we keep the index of table %d?", i, i, i, i, i, i, i)})
	}
	for b.Loop() {
		if s, err := p.Summarize(b.Context(), "T", true); err != nil || s.Messages != 1000 {
			b.Fatal(s, err)
		}
	}
}
