package gitlog

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"mailtree/maildir/history"
)

// TestRemovedByHand checks that a commit that only removes files is shown as a removal, both in Git and in the entries
// of the history. A commit that also contains other edits must be shown as an edit. Commits by an older version must
// be shown in the same way.
func TestRemovedByHand(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true})
	edit := func(keep string, remove ...string) {
		t.Helper()
		for _, path := range remove {
			tr.check(os.Remove(tr.path(path)))
		}
		if keep != "" {
			tr.write(keep, "by hand")
			remove = append(remove, keep)
		}
		tr.log.RecordEdits(remove)
		tr.flush()
	}
	tr.send("m1", "messages/m1.md", "messages/m2.md", "messages/m3.md", "messages/m4.md", "messages/m5.md")
	tr.flush()
	edit("", "messages/m1.md")
	edit("", "messages/m2.md", "messages/m3.md")
	edit("messages/m6.md", "messages/m4.md")
	tr.check(os.Remove(tr.path("messages/m5.md")))
	tr.git("commit", "-q", "-a", "-m", "edit: messages/m5.md\n\nMail-Op: edit")
	tr.equal("subjects", tr.git("log", "-4", "--format=%s"),
		"edit: messages/m5.md\nedit: 2 files\nremove: 2 files\nremove: messages/m1.md")
	var verbs []string
	tr.check(tr.log.Walk(t.Context(), history.Everything(), func(r *history.Revision) error {
		for _, e := range r.Entries() {
			verbs = append(verbs, fmt.Sprintf("%s %s %t", e.Verb, e.Summary, e.IsOperation()))
		}
		return nil
	}))
	want := []string{"remove messages/m5.md false", "edit 2 files false", "remove 2 files false", "remove messages/m1.md false"}
	if len(verbs) < 4 || !slices.Equal(verbs[:4], want) {
		t.Errorf("%q", verbs)
	}
}
