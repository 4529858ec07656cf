package indexer

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"mailtree/maildir/format"
)

//go:embed schema.sql
var schema string

// edition is the version of schema.sql. Increment it whenever the schema or the meaning of a column changes.
const edition = 27

// schemaVersion is the PRAGMA user_version of an index that this program can use. It also depends on the header keys
// of messages, because an existing index has no values for a new key.
var schemaVersion = edition<<24 | int(crc32.ChecksumIEEE([]byte(strings.Join(format.Keys(), " "))))>>8

// The sizes of SQLite's page caches in KiB, for the writer and for each reader, and the number of readers. There are
// only a few readers, because a reader may keep several copies of an 8 MiB body in memory, outside Go's memory limit.
const (
	writeCache = 32 << 10
	readCache  = 6 << 10
	readers    = 4
)

// newPages is SQL that sets the page size of a new database, in bytes. The pages are small because a send makes small
// changes to about twenty pages, and SQLite writes whole pages.
const newPages = "PRAGMA page_size = 2048;"

// errStale means that this version of the program cannot use the file as an index. Open then replaces the file.
var errStale = errors.New("the index cannot be used")

// errVersion wraps errStale. It means that the index is intact, but was created by another version of the program.
var errVersion = fmt.Errorf("%w: it was written by another version of mailtree", errStale)

// IsLocked reports whether an error from an Index means that another program has locked the database.
func IsLocked(err error) bool { return isCode(err, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) }

// dsn returns the data source name for an existing database file. Each pragma has the form "name(value)".
func dsn(path string, pragmas ...string) string {
	q := url.Values{"_pragma": pragmas, "mode": {"rw"}}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

// open opens a database for writing. If the database is missing or empty, open creates it, unless existing is set.
func open(ctx context.Context, path string, existing bool) (db *sql.DB, fresh bool, err error) {
	if !existing {
		if err := private(path); err != nil {
			return nil, false, err
		}
	}
	db, err = sql.Open("sqlite", dsn(path, "busy_timeout(10000)", "synchronous(normal)", "temp_store(memory)",
		fmt.Sprintf("cache_size(-%d)", writeCache), "journal_size_limit(67108864)", "wal_autocheckpoint(0)"))
	if err != nil {
		return nil, false, err
	}
	db.SetMaxOpenConns(1)
	if fresh, err = prepare(ctx, db, existing); err != nil {
		db.Close()
		return nil, false, err
	}
	return db, fresh, nil
}

// private creates the database file, accessible only to its owner, if the file is missing. SQLite creates its other
// files with the same mode.
func private(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		if _, serr := os.Stat(path); serr == nil {
			return nil // SQLite will report the error
		}
		return err
	}
	return f.Close()
}

// prepare checks the tables of a database. If the database is empty, it creates the tables unless existing is set.
func prepare(ctx context.Context, db *sql.DB, existing bool) (fresh bool, err error) {
	var version, tables int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return false, stale(err)
	}
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return false, stale(err)
	}
	if version == 0 && tables == 0 && existing {
		return false, fmt.Errorf("%w: it is empty; a server may be creating it", errStale)
	}
	if version == 0 && tables == 0 {
		version := fmt.Sprintf("PRAGMA user_version = %d; COMMIT;", schemaVersion)
		_, err := db.ExecContext(ctx, newPages+"PRAGMA journal_mode = wal; BEGIN;"+schema+version)
		return true, err
	}
	if version != schemaVersion {
		return false, errVersion
	}
	if _, err := db.ExecContext(ctx, "PRAGMA journal_mode = wal"); err != nil {
		return false, stale(err)
	}
	for _, q := range []string{"SELECT max(fol) FROM folders", "SELECT max(pid) FROM files", "SELECT max(row) FROM messages",
		"SELECT max(box) FROM deliveries",
		"SELECT max(seq) FROM changes", "SELECT count(*) FROM agents", "SELECT count(*) FROM problems",
		"SELECT rowid FROM search('mailtree') LIMIT 1"} {
		var n sql.NullInt64
		if err := db.QueryRowContext(ctx, q).Scan(&n); err != nil && !errors.Is(err, sql.ErrNoRows) {
			return false, stale(err)
		}
	}
	return false, writable(ctx, db)
}

// writable returns an error if the index cannot be written. Without this check, SQLite would open the database
// read-only, and transactions could still begin.
func writable(ctx context.Context, db *sql.DB) error {
	if _, err := db.ExecContext(ctx, fmt.Sprintf("BEGIN IMMEDIATE; PRAGMA user_version = %d; ROLLBACK", schemaVersion)); err != nil {
		return fmt.Errorf("cannot write the index: %w", diskFault(err))
	}
	return nil
}

// stale converts an error to errStale if it means that the file is unusable. It returns disk and locking errors
// unchanged.
func stale(err error) error {
	if isCode(err, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_MISMATCH) {
		return fmt.Errorf("%w: %w", errStale, err)
	}
	return err
}

// isCode reports whether err comes from SQLite with one of the given primary result codes.
func isCode(err error, codes ...int) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	for _, c := range codes {
		if e.Code()&0xff == c {
			return true
		}
	}
	return false
}

// openReaders opens the connection pool that answers queries.
func openReaders(path string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", dsn(path, "busy_timeout(10000)", "query_only(1)", "temp_store(memory)",
		fmt.Sprintf("cache_size(-%d)", readCache)))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(readers)
	db.SetMaxIdleConns(readers)
	return db, nil
}

// wipe removes a database and the files that SQLite keeps next to it.
func wipe(path string) error {
	for _, ext := range []string{"-wal", "-shm", "-journal", ""} {
		if err := os.Remove(path + ext); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// schemaParts splits the schema into the tables and the database indexes. When Rebuild builds a whole index, it
// creates the database indexes last.
func schemaParts() (tables, indexes string) {
	tables, indexes, _ = strings.Cut(schema, "-- indexes")
	return tables, "-- indexes" + indexes
}

// diskFault adds the matching errno to SQLite's error, so that callers can distinguish a full disk from other errors.
func diskFault(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return errors.Join(err, syscall.ENOSPC)
	case sqlite3.SQLITE_READONLY:
		return errors.Join(err, syscall.EROFS)
	case sqlite3.SQLITE_IOERR:
		return errors.Join(err, syscall.EIO)
	}
	return err
}
