package watcher

import (
	"context"
	"time"
)

// Batch is a set of changed paths that are reported together. It lists paths to check, but does not say what happened
// to them. OnBatch reads the current file at each path.
type Batch struct {
	// Paths are relative to Root, slash-separated, unique and sorted. Names are the exact bytes from the file system,
	// neither cleaned nor checked. The paths are
	//   - files, links and other non-folders that were created or changed;
	//   - paths that are gone; for a folder, only the folder's own path, no matter what it contained;
	//   - folders that appeared or reappeared, each reported once everything in it is being watched.
	// So for every path, OnBatch must check everything that it has recorded below that path. If a folder is new to
	// OnBatch, everything below it is in this batch or another batch.
	//
	// The following example shows why batches contain folders that appeared. A folder "a" is removed. Before OnBatch
	// checks it, another folder "a" appears, which is not watched yet. OnBatch mistakes its file a/x for the old a/x.
	// If a/x is then removed, neither an event nor a listing shows the removal.
	Paths []string

	// Scan means that events were lost or cannot arrive, so the whole tree must be compared. Paths may then be
	// empty.
	Scan bool
}

// dispatch passes due batches to OnBatch until ctx is done. It sleeps until the earliest deadline or, if there is no
// deadline, until a path arrives.
func (w *Watcher) dispatch(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		batch, next := w.waiting.takeDue(time.Now())
		if batch.Scan || len(batch.Paths) > 0 {
			w.cfg.OnBatch(ctx, batch)
			w.waiting.reported()
			continue
		}
		timer.Stop()
		if !next.IsZero() {
			timer.Reset(time.Until(next))
		}
		select {
		case <-ctx.Done():
		case <-w.waiting.wake:
		case <-timer.C:
		}
	}
}
