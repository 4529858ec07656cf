package unsent

import "testing"

// TestReason checks that reason reads the reason back from a notice, and rejects other bodies.
func TestReason(t *testing.T) {
	const path = "agents/Ann/outbox/a.md"
	tests := []struct{ name, body, why string }{
		{"one line", Body(path, "No agent Bop: did you mean Bob?"), "No agent Bop: did you mean Bob?"},
		{"two lines", Body(path, "The key is old.\nLine 3 is empty."), "The key is old. Line 3 is empty."},
		{"a final newline", Body(path, "It is a duplicate.") + "\n", "It is a duplicate."},
		{"another path", Body("agents/Ann/outbox/b.md", "It is a duplicate."), ""},
		{"no reason", "Your file was not sent.", ""},
		{"the end is missing", opening(path) + "It is a duplicate.", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			why, ok := reason(path, tt.body)
			if ok != (tt.why != "") || ok && why != tt.why {
				t.Errorf("reason = %q, %v; want %q", why, ok, tt.why)
			}
		})
	}
}

// TestKey checks that notices about different paths or bytes have different keys.
func TestKey(t *testing.T) {
	seen := map[string]bool{}
	for _, path := range []string{"agents/Ann/outbox/a.md", "agents/Ann/outbox/b.md"} {
		for _, data := range []string{"", "a", "b"} {
			seen[Key(path, []byte(data))] = true
		}
	}
	if len(seen) != 6 {
		t.Errorf("six notices have %d keys, want 6", len(seen))
	}
}
