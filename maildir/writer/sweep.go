package writer

import (
	"strconv"
	"strings"
	"time"

	"mailtree/maildir/tree"
)

// leftoverAge is how long an unknown file may stay in staging. Another process, such as a guard, may be about to
// rename the file into place.
const leftoverAge = time.Hour

// SweepStaging removes old leftovers from TmpDir: files that could not be removed because the disk was failing, files
// left behind by killed processes, and replaced files that an undo did not restore because a user had changed the new
// file. It keeps the files of groups in the journal, because the next start may need them. Run calls SweepStaging
// every hour. Only Run and functions passed to Aside may call it.
func (w *Writer) SweepStaging() {
	entries, err := w.Tree.List(tree.TmpDir)
	if err != nil {
		w.Log.Warn("cannot search the staging folder for leftover files", "error", err)
	}
	for _, e := range entries {
		name := e.Name()
		fi, err := e.Info()
		if err != nil || w.journal.holds(groupOf(name)) || time.Since(fi.ModTime()) < leftoverAge {
			continue
		}
		if err := w.Tree.RemoveStaged(name); err != nil {
			w.Log.Warn("cannot remove a leftover file from the staging folder yet", "name", name, "error", err)
		}
	}
}

// stageName returns the name below TmpDir for the nth file that a group stages.
func stageName(group uint64, n int) string {
	return strconv.FormatUint(group, 36) + "-" + strconv.Itoa(n)
}

// groupOf returns the number of the group that staged the file with the given name, or 0 if no group staged it.
func groupOf(name string) uint64 {
	number, _, _ := strings.Cut(name, "-")
	n, err := strconv.ParseUint(number, 36, 64)
	if err != nil {
		return 0
	}
	return n
}

// holds reports whether the journal contains a record of the group. If so, the group has not been committed yet, or
// could not be undone completely.
func (j *journal) holds(group uint64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.open[group] != nil
}
