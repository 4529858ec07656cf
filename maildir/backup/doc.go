// Package backup writes a store to one file while the store's server is running, and creates a store from such a file.
//
// A backup is a gzipped tar archive. It contains everything that a store cannot rebuild: all projects with their
// histories, keys, mailbox owners, hooks and the marks of their runs. It does not contain the index, MCP sessions, locks,
// sockets and logs.
//
//	mailtree-backup.json         first: a Header
//	projects/SLUG/…              each project as it was at one moment, between two operations
//	key, token, …                the store's own files
//	hooks/…                      last of the store's files, so that it has the mark of every run that the projects know of
//	mailtree-backup-end.json     an End, without which the archive is incomplete
//
// Write copies each project twice. The first copy is made while the server works as usual. The second one is made
// between two operations, and contains only files that have changed since, so that callers do not have to wait long. The
// archive contains both, and the later entry of a file applies.
//
// What the original store has done since the backup was made is unknown to a restored store. Therefore, Restore makes
// sure that the restored store repeats nothing: see docs/operations.md, "Backup and restore".
package backup

import "time"

// Version is the number of the archive's format.
const Version = 1

const (
	headerName = "mailtree-backup.json"
	endName    = "mailtree-backup-end.json"
)

// Header describes a backup.
type Header struct {
	Format  int       `json:"format"`
	Program string    `json:"mailtree"` // version of the program that wrote it
	Created time.Time `json:"created"`
	Store   string    `json:"store"` // path of the store
}

// End is at the end of a complete backup.
type End struct {
	Removed []string `json:"removed"` // paths in the archive that were gone when the second copy was made
}
