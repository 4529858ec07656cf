package gitlog

import (
	"context"
	"time"

	"mailtree/maildir/history"
)

// mostEdits is the maximum number of paths in one commit of edits. This limits how long an operation waits for its
// commit, and how much work is lost when the server stops.
const mostEdits = 5000

// importing is the progress of an import of edits. It is guarded by Log.mu.
type importing struct {
	began   time.Time // zero if no import is in progress
	done    int       // paths committed since the import began
	commits int
}

// progress updates the import after a change to the queue or a commit. The argument paths is the number of edits that
// were just committed. progress logs the beginning and the end of the import, and each commit. The caller must hold
// l.mu.
func (l *Log) progress(paths int) {
	im, left := &l.importing, l.waitingEdits()
	switch {
	case im.began.IsZero() && left >= history.ImportFrom:
		*im = importing{began: time.Now()}
		l.cfg.Log.Info("many files have changed; importing them", "paths", left)
	case im.began.IsZero() || paths == 0:
	default:
		im.done += paths
		im.commits++
		if left >= history.ImportFrom || left > 0 && paths >= mostEdits { // the import continues
			l.cfg.Log.Info("importing edits", "committed", im.done, "left", left)
			break
		}
		l.cfg.Log.Info("import committed", "paths", im.done, "commits", im.commits,
			"took", time.Since(im.began).Round(time.Millisecond))
		*im = importing{}
	}
}

// imported returns the progress of the import, or the zero value if there is none. The caller must hold l.mu.
func (l *Log) imported() history.Import {
	if l.importing.began.IsZero() {
		return history.Import{}
	}
	return history.Import{Committed: l.importing.done, Left: l.waitingEdits()}
}

// isImporting reports whether the waiting edits belong to an import.
func (l *Log) isImporting() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.imported().Left > 0
}

// StopBy implements history.Log.
func (l *Log) StopBy(at time.Time) {
	l.endImport()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopBy.IsZero() {
		l.stopBy = at
		time.AfterFunc(time.Until(at), l.endAll)
	}
}

// chance returns how long work may continue after Run's context has ended. This is lastChance or the time until the
// deadline passed to StopBy, whichever is shorter.
func (l *Log) chance() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopBy.IsZero() {
		return lastChance
	}
	return min(lastChance, time.Until(l.stopBy))
}

// within returns a context that ends with ctx or with outer, whichever ends first. The caller must call end after
// use.
func within(ctx, outer context.Context) (both context.Context, end func()) {
	both, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(outer, func() { cancel(context.Cause(outer)) })
	return both, func() { stop(); cancel(nil) }
}
