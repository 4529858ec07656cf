package format

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNear(t *testing.T) {
	t.Parallel()
	all := []string{"body_md", "to", "subject", "BlueLake", "GreenCastle"}
	for name, want := range map[string][]string{"body": {"body_md"}, "bluelake": {"BlueLake"}, "GrenCastle": {"GreenCastle"}, "zzzz": nil, "": nil, "subjetc": {"subject"},
		"cc": nil, "Castle": {"GreenCastle"}, "RedStone": nil} {
		if d := cmp.Diff(want, Near(name, all)); d != "" {
			t.Errorf("%q: %s", name, d)
		}
	}
	if distance("kitten", "sitting") != 3 || distance("", "abc") != 3 {
		t.Error("not Levenshtein's distance")
	}
}
