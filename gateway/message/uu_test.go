package message

import "testing"

// TestFromUU checks which uuencoded texts fromUU reports as whole.
func TestFromUU(t *testing.T) {
	for name, c := range map[string]struct {
		body, data string
		whole      bool
	}{
		"whole":                  {"begin 644 a\n#86)C\n`\nend\n", "abc", true},
		"an empty file":          {"begin 644 a\n`\nend\n", "", true},
		"no end":                 {"begin 644 a\n#86)C\n", "abc", false},
		"no begin":               {"#86)C\nend\n", "", false},
		"the first line cut":     {"begin 644 a\n#\n#86)C\n`\nend\n", "abc", false},
		"a later line cut":       {"begin 644 a\n#86)C\n#\n`\nend\n", "abc", false},
		"the first line partial": {"begin 644 a\n&86)C\n#86)C\n`\nend\n", "abcabc", false},
	} {
		if data, whole := fromUU([]byte(c.body)); string(data) != c.data || whole != c.whole {
			t.Errorf("%s: got %q, %v; want %q, %v", name, data, whole, c.data, c.whole)
		}
	}
}
