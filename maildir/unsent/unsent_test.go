package unsent

import (
	"strings"
	"testing"
)

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

// TestKey checks that notices about different paths, bytes or reasons have different keys, and that keys about the same
// path and bytes share their beginning.
func TestKey(t *testing.T) {
	seen, abouts := map[string]bool{}, map[string]bool{}
	for _, path := range []string{"agents/Ann/outbox/a.md", "agents/Ann/outbox/b.md"} {
		for _, data := range []string{"", "a", "b"} {
			for _, why := range []string{"", "It is a duplicate."} {
				key := Key(path, []byte(data), why)
				seen[key], abouts[about(path, []byte(data))] = true, true
				if !strings.HasPrefix(key, about(path, []byte(data))) {
					t.Errorf("the key %q does not begin with %q", key, about(path, []byte(data)))
				}
			}
		}
	}
	if len(seen) != 12 || len(abouts) != 6 {
		t.Errorf("%d keys with %d beginnings, want 12 and 6", len(seen), len(abouts))
	}
}
