// Package backup writes a store to one file while the store's server is running, and creates a store from such a file.
//
// A backup is a gzipped tar archive. It contains everything that a store cannot rebuild, namely all projects with their
// histories, the keys, the mailbox owners, the hooks, and the records of hook runs. It does not contain the index, MCP
// sessions, locks, sockets and logs.
//
//	mailtree-backup.json         first: a Header
//	projects/SLUG/…              a consistent copy of each project, as it was between two operations
//	key, token, …                the store's own files
//	hooks/…                      last, so that it records all hook runs for the mail in the projects
//	mailtree-backup-end.json     an End; an archive without an End is incomplete
//
// Write copies each project twice. It makes the first copy while the server works as usual. It makes the second copy
// between two operations. That copy contains only files that have changed since the first one, so callers do not have
// to wait long. The archive contains both copies, and a file's later entry replaces the earlier one.
//
// A restored store has no record of what the original store has done since the backup. Restore therefore makes sure
// that the restored store does not repeat anything that the original may have done. See docs/howto/backup.md,
// "Restore".
package backup

import "time"

// Version is the version of the archive format.
const Version = 1

const (
	headerName = "mailtree-backup.json"
	endName    = "mailtree-backup-end.json"
)

// Header describes a backup.
type Header struct {
	Format  int       `json:"format"`
	Program string    `json:"mailtree"` // version of the program that wrote the backup
	Created time.Time `json:"created"`
	Store   string    `json:"store"` // path of the store
}

// End is the last entry of a complete backup.
type End struct {
	Removed []string `json:"removed"` // paths in the archive that no longer existed when the second copy was made
}
