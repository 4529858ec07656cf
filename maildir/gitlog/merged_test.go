package gitlog

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// TestMergeOfGoneFiles checks that an operation does not merge a commit if a file that the operation wrote has been
// removed. This happens if a user aborts a rebase that contained the same file. Merging such a tree would remove the
// file from all machines. The merge must be possible later. A file that a later operation removed must stay removed.
func TestMergeOfGoneFiles(t *testing.T) {
	t.Parallel()
	type brings struct {
		path            string
		more, recovered bool
	}
	for name, c := range map[string]struct {
		ops     []brings
		removed bool
		merges  string
	}{
		"the only one":                    {ops: []brings{{path: "late"}}, merges: "0"},
		"the first of two":                {ops: []brings{{path: "late", more: true}, {path: "other"}}, merges: "0"},
		"of an interrupted run":           {ops: []brings{{path: "late", recovered: true}}, merges: "0"},
		"the first of an interrupted run": {ops: []brings{{path: "late", more: true, recovered: true}, {path: "other"}}, merges: "0"},
		"removed by an operation":         {ops: []brings{{path: "late"}}, removed: true, merges: "1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := newTree(t, Config{})
			tr.send("first", "first", "gone")
			tr.flush()
			theirs := tr.elsewhere("late", "gone")
			bring := func(b brings) writer.Op {
				o := tr.deliver(b.path, b.path, b.path)
				o.Merges = writer.Merge{Commit: theirs, More: b.more}
				if o.Recovered = b.recovered; b.recovered {
					o.Written = nil
				}
				return o
			}
			var ops []writer.Op
			for _, b := range c.ops {
				ops = append(ops, bring(b))
			}
			tr.check(os.Remove(tr.path("late")))
			if c.removed {
				o := op("delete", "A", "late", "late")
				o.Written = map[string]tree.Written{"late": {Gone: true}}
				ops = append(ops, o)
			}
			tr.record(ops...)
			tr.flush()
			tr.equal("merges", tr.git("rev-list", "--count", "--merges", "HEAD"), c.merges)
			if files := tr.git("ls-files"); strings.Contains(files, "late") {
				t.Errorf("in the commit: %s", files)
			}
			tr.sound()
			if !c.removed {
				tr.record(bring(brings{path: "late"}))
				tr.flush()
				tr.equal("merges afterwards", tr.git("rev-list", "--count", "--merges", "HEAD"), "1")
			}
		})
	}
}

// TestMergeInParts checks that if several operations write the files of one merge, only the commit of the last
// operation is a merge.
func TestMergeInParts(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	tr.send("first", "first", "gone")
	tr.flush()
	part, rest := tr.deliver("late", "late", "late"), tr.deliver("other", "other", "other")
	rest.Merges.Commit = tr.elsewhere("late", "gone")
	part.Merges = writer.Merge{Commit: rest.Merges.Commit, More: true}
	for i, o := range []writer.Op{part, rest} {
		tr.record(o)
		tr.flush()
		tr.equal("merges", tr.git("rev-list", "--count", "--merges", "HEAD"), strconv.Itoa(i))
	}
}
