package mcp

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestHints checks that the table in docs/reference/tools.md, "Hints", lists every tool that changes something, with
// the hints that clients get. The server in this test has no store, so it cannot send email.
func TestHints(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../docs/reference/tools.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(doc), "\n## Hints\n")
	table, _, _ = strings.Cut(table, "\n## ")
	var want, got []string
	for line := range strings.Lines(table) {
		cells := strings.Split(line, " | ")
		if len(cells) < 4 || !strings.Contains(cells[0], "`") {
			continue
		}
		for name := range strings.SplitSeq(strings.TrimPrefix(cells[0], "| "), ", ") {
			open := cells[2] == "true"
			want = append(want, fmt.Sprintf("%s destructive %s, open world %t", strings.Trim(name, "`"), cells[1], open))
		}
	}
	for _, result := range listings(t) {
		var list struct {
			Tools []struct {
				Name        string
				Annotations struct{ ReadOnlyHint, DestructiveHint, OpenWorldHint bool }
			}
		}
		if err := json.Unmarshal(result, &list); err != nil {
			t.Fatal(err)
		}
		for _, tool := range list.Tools {
			if h := tool.Annotations; !h.ReadOnlyHint {
				got = append(got, fmt.Sprintf("%s destructive %t, open world %t", tool.Name, h.DestructiveHint, h.OpenWorldHint))
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
