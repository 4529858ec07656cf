// Package watcher turns file changes below one folder into batches of changed paths. No other package imports fsnotify.
// The watcher imports no other package of mailtree and does not depend on mail. It reports which paths to check, never
// what they contain.
//
//	inotify -> read -> queue -> session -> waiting -> dispatch -> OnBatch
//	           only    set of   lstat,     one        one batch
//	           drains  events   watches,   deadline   at a time
//	                            folders    per path
//
// Invariants while Run runs:
//
//	W1  Every change below Root is reported after it happened, either by its
//	    path or by a batch with Scan set.
//	W2  Rename, Write and Longest are durations in Config. A path that was
//	    only created, renamed or removed is reported when Rename has passed
//	    since its last event. A path that was written in place is reported when
//	    Write has passed since the last write, or Rename if no process has the
//	    file open for writing anymore. Every path is reported no later than
//	    Longest after its first event, unless OnBatch blocks.
//	W3  A folder is watched before it is listed, so a file created in a new
//	    folder is in the list or has an event. All files found in a folder
//	    created in or moved into Root are reported, and then the folder itself.
//	W4  Neither a slow OnBatch nor a slow disk stops the draining of inotify's
//	    queue.
//	W5  If events are lost (queue overflow), if no watch or instance is available, or
//	    if the root is gone, State reports "degraded" and what to do. A batch asks for
//	    a Scan, and the watch repairs itself. Run returns only when its context is done.
//	W6  A batch with Scan that follows lost events is sent after all watches
//	    are in place again, so any change that the scan misses has an event.
//	W7  Symlinks are never followed and no file is ever read; only folders are
//	    listed, and only inside Root. A file written in place is opened, to
//	    ask for a lease (lease_linux.go).
//	W8  An idle watcher does nothing: no ticker, no open folder. With NoEvents
//	    there are no events and no watches, only a Scan every Poll.
//
// Files that already existed below Root before Run are not reported. Compare the tree once Ready is closed to find
// them.
//
// The watcher cannot see three kinds of changes: a folder above Root's parent is renamed (noticed at the next event),
// Root is unmounted, or another machine changes files on a network file system. The caller's hourly comparison finds
// them.
//
// Renamed folders are the hard part. On Linux, fsnotify watches inodes under the names with which they were added,
// and does not follow renames. If a renamed folder is added again, the call succeeds, but fsnotify keeps the old name
// (inotify_add_watch returns the same descriptor). So the session keeps its own tree of watched folders with the
// identity (device, inode) of each. Before it adds a new name, it removes the watches of the old name and of
// everything below it.
package watcher
