package main

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"mailtree/fixtures/inmemory"
	"mailtree/maildir/storedir"
)

// TestIndexLocked checks that `index verify` reports that another program has locked the index, and does not suggest
// restarting the server.
func TestIndexLocked(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, filepath.Join(inmemory.Dir(t), "store"))
	d.real = true
	d.start()
	d.interrupt()
	db, err := sql.Open("sqlite", storedir.IndexPath(d.store))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // the lock belongs to one connection
	if _, err := db.Exec("PRAGMA locking_mode = exclusive; BEGIN EXCLUSIVE"); err != nil {
		t.Fatal(err)
	}
	out, err := d.command("index", "verify").CombinedOutput()
	if said := string(out); err == nil || !strings.Contains(said, "has locked the index") || strings.Contains(said, "start") {
		t.Errorf("%v: %s", err, said)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	d.mailtree("index", "verify")
}
