package writer

import (
	"strconv"
	"strings"
	"time"

	"mailtree/maildir/tree"
)

// leftoverAge is how long a file that nobody is known to need stays in staging: another process,
// such as a guard, may be about to put it into its place.
const leftoverAge = time.Hour

// SweepStaging removes what was left below tmp: what could not be unlinked on a failing disk, what an
// operation replaced that was not taken back because a person has changed the file since, and what a
// process that was killed was writing there. Files of groups in the journal stay, which the next start
// may need. Run calls it every hour; it is for what Aside calls.
func (w *Writer) SweepStaging() {
	entries, err := w.Tree.List(tree.TmpDir)
	if err != nil {
		w.Log.Warn("leftovers in staging not looked for", "error", err)
	}
	for _, e := range entries {
		name := e.Name()
		fi, err := e.Info()
		if err != nil || w.journal.holds(groupOf(name)) || time.Since(fi.ModTime()) < leftoverAge {
			continue
		}
		if err := w.Tree.RemoveStaged(name); err != nil {
			w.Log.Warn("a leftover in staging stays until it can be removed", "name", name, "error", err)
		}
	}
}

// stageName is the name below tmp of the n-th file that a group stages.
func stageName(group uint64, n int) string {
	return strconv.FormatUint(group, 36) + "-" + strconv.Itoa(n)
}

// groupOf is the number of the group that staged a file of that name; 0 where no group did.
func groupOf(name string) uint64 {
	number, _, _ := strings.Cut(name, "-")
	n, err := strconv.ParseUint(number, 36, 64)
	if err != nil {
		return 0
	}
	return n
}

// holds reports whether the group has a record: it is not in a commit yet, or something of it could
// not be taken back.
func (j *journal) holds(group uint64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.open[group] != nil
}
