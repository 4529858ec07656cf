// Package watcher turns what happens to the files below one folder into
// batches of changed paths. It is the only importer of fsnotify, imports
// nothing else of mailtree, and knows nothing of mail: it says "look at these
// paths", never what they hold.
//
//	inotify -> read -> queue -> session -> waiting -> dispatch -> OnBatch
//	           only    set of   lstat,     one        one batch
//	           drains  events   watches,   deadline   at a time
//	                            folders    per path
//
// What holds, while Run runs:
//
//	W1  A change below Root is reported in a batch after it happened, by its
//	    path or by a batch with Scan set. Never by nothing.
//	W2  A path that was only created, renamed or removed is reported Rename
//	    after its last event, one written in place Write after its last write
//	    or Rename after it where nobody has it open for writing any more,
//	    and every path at the latest Longest after its first event; only a
//	    blocked OnBatch delays it further.
//	W3  A folder is watched before it is listed, so a file made in a new
//	    folder is in the list, or its event comes. All files found in a folder
//	    made or moved here are reported, and then the folder itself.
//	W4  Nobody's slowness stops the draining of inotify's queue: not OnBatch's
//	    and not the disk's.
//	W5  After lost events (queue overflow), when no watch or instance is left and
//	    while the root is gone, State says degraded and what to do, a batch asks
//	    for a Scan, and the watch mends itself. Only its context ends Run.
//	W6  A batch with Scan that follows lost events is sent after all watches
//	    stand again, so what the scan could miss has an event.
//	W7  Symlinks are never followed, no file is ever read; only folders are
//	    listed, and only inside Root. A file written in place is opened, to
//	    ask for a lease (lease_linux.go).
//	W8  Where nothing happens nothing runs: no ticker, no open folder. With
//	    NoEvents there are no events and no watches, only a Scan every Poll.
//
// What is below Root before Run is not reported: compare the tree once Ready
// is closed.
//
// The watcher cannot see these: renaming a folder above Root's parent (found at the next
// event), unmounting Root, changes made by another machine on a network file
// system. The caller's hourly comparison finds them.
//
// Folder names are the hard part. fsnotify on Linux watches inodes under the
// name they were added by and does not follow a rename, and adding a folder
// that it still watches under its old name succeeds and keeps the old name
// (inotify_add_watch answers with the same descriptor). So the session keeps
// its own tree of watched folders with the identity (device, inode) of each,
// and removes the watches of the old name, and all below it, before it adds
// the new one.
package watcher
