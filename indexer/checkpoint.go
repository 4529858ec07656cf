package indexer

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
)

// SQLite runs its own checkpoint inside the commit that finds a thousand pages in the log, and syncs twice while
// every caller waits for that commit. So a goroutine runs checkpoints beside the writer, and the writer waits for a
// checkpoint only if the log grows faster than that. Checkpoints are rare. Therefore a page that many messages
// change is copied once for all of them.
const (
	checkpointFiles  = 4096     // files ingested between two checkpoints
	transactionFiles = 8        // a transaction counts as this many files
	checkpointPages  = 32 << 10 // pages in the log (64 MiB) at which the writer waits
)

// checkpoints counts the work since the last checkpoint began.
type checkpoints struct {
	files   int // under Index.write
	busy    atomic.Bool
	running sync.WaitGroup
}

// checkpoint counts ingested files, and starts a checkpoint in the background after enough of them. The
// caller holds write; Close waits for the checkpoint.
func (x *Index) checkpoint(files int) {
	if x.wal.files += files + transactionFiles; x.wal.files < checkpointFiles || x.reads == x.writes ||
		!x.wal.busy.CompareAndSwap(false, true) {
		return
	}
	x.wal.files = 0
	x.wal.running.Go(func() {
		defer x.wal.busy.Store(false)
		if err := x.checkpointNow(); err != nil {
			x.cfg.Log.Warn("the index's log was not checkpointed", "error", err)
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
		_, err = passive(db) // the next transaction then starts the log from its beginning
		x.write.Unlock()
	}
	return errors.Join(err, db.Close())
}

// passive copies the pages of the log that no reader needs, and returns how many pages the log has.
func passive(db *sql.DB) (pages int, err error) {
	var busy, done int
	// The context is not a caller's: a checkpoint outlives the batch that starts it, and Close waits for
	// it.
	err = db.QueryRowContext(context.Background(), "PRAGMA wal_checkpoint(PASSIVE)").Scan(&busy, &pages, &done)
	return pages, err
}
