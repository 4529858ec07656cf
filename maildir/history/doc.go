// Package history describes what Git knows about a mail tree: the operations on a message, by an agent, in a thread
// or below a path, the edits by others, and the state of a folder at some moment. It is the contract between
// package maildir, which queries, and package gitlog, which commits and reads. Both import package history, and
// neither imports the other.
//
// A [Log] keeps the history of one tree. A [Query] selects commits; [Everything], [OfAgent], [OfMessages], [OfPath]
// and [OfRemoved] make queries that gitlog can answer without examining every commit. The answer is one [Revision]
// for each commit, newest first, including waiting operations. [Revision.Entries] converts a Revision to the
// entries that users see: an [Entry] for each operation, or for a set of edits.
//
// This package does not know what a name given by a user means (an agent, a message, a thread), nor which parts of
// an answer would reveal bcc recipients (Invariant I7). See maildir.Project.Log.
package history
