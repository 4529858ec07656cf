package indexer

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
)

// SQLite's own checkpoint, in the commit that finds a thousand pages in the log, waits for the disk twice while everybody
// waits for that commit. So it is taken beside the writer, and only when that cannot keep up does the writer wait for it.
const (
	checkpointFiles  = 1024    // files ingested between two checkpoints; a transaction counts like transactionFiles
	transactionFiles = 8       // the pages that it writes anyway, beside those of its files
	checkpointPages  = 4 << 10 // pages in the log (32 MiB) at which the writer waits
)

// checkpoints counts what was written since the last one began.
type checkpoints struct {
	files   int // under Index.write
	busy    atomic.Bool
	running sync.WaitGroup
}

// checkpoint notes that so many files were ingested, and takes a checkpoint in the background when it is time. The caller
// holds write; Close waits for the end.
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
		_, err = passive(db) // what came meanwhile; then the log begins anew with the next transaction
		x.write.Unlock()
	}
	return errors.Join(err, db.Close())
}

// passive copies from the log what no reader stands in the way of, and returns how many pages the log has.
func passive(db *sql.DB) (pages int, err error) {
	var busy, done int
	err = db.QueryRowContext(context.Background(), "PRAGMA wal_checkpoint(PASSIVE)").Scan(&busy, &pages, &done)
	return pages, err
}
