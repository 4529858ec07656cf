package gitlog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailtree/maildir/writer"
)

// TestPruneAtEveryStep checks that no part of a commit is lost if a user runs `git gc --prune=now`, or one of the
// commands that git gc runs, at any step of the commit.
func TestPruneAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, step := range append([]string{"built", "objects"}, steps...) {
		for what, size := range map[string]int{"one": 1, "many": 30, "large file": -1} {
			t.Run(step+", "+what, func(t *testing.T) {
				t.Parallel()
				tr := newTree(t, Config{})
				tr.send("m0", "m0", "new/m0")
				tr.flush()
				if step == "reserved" {
					tr.log.optimistic = 0
				}
				if size < 0 {
					tr.write("big", strings.Repeat("0123456789abcdef", largeFile/8))
					tr.log.Record([]writer.Op{op("send", "A", "big", "big")}, nil)
				}
				for i := range size {
					tr.send(fmt.Sprint("m", i+1), fmt.Sprint("new/m", i+1))
				}
				reached := false
				tr.log.step = func(s string) {
					if s == step && !reached {
						reached = true
						tr.tryGit("gc", "-q", "--prune=now") // git gc fails while we hold a lock
						tr.tryGit("repack", "-a", "-d", "-q")
						tr.tryGit("prune", "--expire=now")
					}
					if s == "index moved" { // before the branch moves, the commit must be complete
						sum, err := os.ReadFile(tr.path(".git/refs/heads/main.lock"))
						tr.check(err)
						tr.have([]string{strings.TrimSpace(string(sum)) + "^{tree}"})
					}
				}
				if step == "built" {
					_ = tr.log.Flush(context.Background()) // may fail, because a prune may remove a file that git fast-import needs
				}
				tr.flush()
				if !reached {
					t.Fatal("the step was not reached")
				}
				tr.log.step = func(string) {}
				tr.send("last", "new/last")
				tr.flush()
				tr.sound()
				if n := len(tr.ids()); n != max(size, 1)+2 {
					t.Errorf("%d ids in the log", n)
				}
				if keep, _ := filepath.Glob(tr.path(".git/objects/pack/*.keep")); len(keep) > 0 {
					t.Errorf("left behind: %q", keep)
				}
			})
		}
	}
}
