package indexer

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
)

// SQLite takes its own checkpoint inside the commit that finds a thousand pages in the log, and
// syncs twice while every caller waits for that commit. So a goroutine takes checkpoints beside the
// writer, and the writer waits for one only where the log grows faster than that. They are rare:
// pages that many messages change are then copied once for all of these.
const (
	checkpointFiles  = 4096     // files ingested between two checkpoints
	transactionFiles = 8        // as how many files a transaction counts
	checkpointPages  = 32 << 10 // pages in the log (64 MiB) at which the writer waits
)

// checkpoints counts what was written since the last one began.
type checkpoints struct {
	files   int // under Index.write
	busy    atomic.Bool
	running sync.WaitGroup
}

// checkpoint counts the files that were ingested, and starts a checkpoint in the background once
// there are enough. The caller holds write; Close waits for the checkpoint.
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
		_, err = passive(db) // the next transaction then begins the log anew
		x.write.Unlock()
	}
	return errors.Join(err, db.Close())
}

// passive copies the pages of the log that no reader needs, and returns how many pages the log has.
func passive(db *sql.DB) (pages int, err error) {
	var busy, done int
	// No caller's context: a checkpoint goes on beside the batch that set it off, and Close waits for it.
	err = db.QueryRowContext(context.Background(), "PRAGMA wal_checkpoint(PASSIVE)").Scan(&busy, &pages, &done)
	return pages, err
}
