package gitlog

import (
	"fmt"
	"testing"

	"mailtree/maildir/writer"
)

// TestAuthored checks that Authored returns an agent's commits, newest first, regardless of how Git stores the
// objects.
func TestAuthored(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	for i, name := range []string{"A", "B", "A", "AB", "A"} {
		p := fmt.Sprint("messages/m", i)
		tr.write(p, "text")
		tr.log.Record([]writer.Op{op("send", name, fmt.Sprint("m", i), p)}, nil)
		tr.flush()
	}
	for range 2 {
		found, err := tr.log.Authored(t.Context(), "A", 2)
		tr.check(err)
		got := ""
		for _, c := range found {
			got += c.Hash + " " + c.Subject + "\n"
		}
		tr.equal("commits", got, tr.git("log", "-2", "--author=^A <", "--format=%H %s")+"\n")
		if len(found) == 2 && !found[0].At.After(found[1].At.AddDate(-1, 0, 0)) {
			t.Errorf("times %v, %v", found[0].At, found[1].At)
		}
		tr.git("gc", "-q")
	}
}
