package indexer

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
)

// By default, SQLite runs a checkpoint as part of the first commit that finds a thousand pages in the log. Such a
// checkpoint syncs twice, and every caller has to wait for the commit. To avoid this, a goroutine runs checkpoints
// concurrently with the writer. The writer waits for a checkpoint only if the log grows faster than checkpoints can
// copy it. Checkpoints are rare, so a page that is changed by many messages is copied only once.
const (
	checkpointFiles  = 4096     // number of files ingested between checkpoints
	transactionFiles = 8        // the cost of a transaction, expressed as a number of files
	checkpointPages  = 32 << 10 // number of pages in the log (64 MiB) at which the writer waits
)

// checkpoints counts the work since the last checkpoint began.
type checkpoints struct {
	files   int // guarded by Index.write
	busy    atomic.Bool
	running sync.WaitGroup
}

// checkpoint counts ingested files, and starts a checkpoint in the background once there are enough of them. The caller
// must hold x.write. Close waits for the checkpoint.
func (x *Index) checkpoint(files int) {
	if x.wal.files += files + transactionFiles; x.wal.files < checkpointFiles || x.reads == x.writes ||
		!x.wal.busy.CompareAndSwap(false, true) {
		return
	}
	x.wal.files = 0
	x.wal.running.Go(func() {
		defer x.wal.busy.Store(false)
		if err := x.checkpointNow(); err != nil {
			x.cfg.Log.Warn("failed to checkpoint the index's write-ahead log", "error", err)
		}
	})
}

func (x *Index) checkpointNow() error {
	db, err := sql.Open("sqlite", dsn(x.cfg.Path, "busy_timeout(10000)"))
	if err != nil {
		return err
	}
	left, err := passive(db)
	if err == nil && left >= checkpointPages {
		x.write.Lock()
		_, err = passive(db) // afterward, the next transaction overwrites the log from the start
		x.write.Unlock()
	}
	return errors.Join(err, db.Close())
}

// passive copies log pages to the database, except those that readers still need, and returns the number of pages in
// the log.
func passive(db *sql.DB) (pages int, err error) {
	var busy, done int
	// The query does not use a caller's context, because a checkpoint may outlive the batch that starts it. Close
	// waits for the checkpoint.
	err = db.QueryRowContext(context.Background(), "PRAGMA wal_checkpoint(PASSIVE)").Scan(&busy, &pages, &done)
	return pages, err
}
