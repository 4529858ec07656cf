// Package history defines how the Git history of a mail tree is queried: the operations on a message, by an agent, in a
// thread or below a path, the edits by users and other programs, and the content of a folder at a given moment. It is
// the interface between package maildir, which queries the history, and package gitlog, which writes and reads it. Both
// packages import history, and neither imports the other.
//
// A [Log] keeps the history of one tree. A [Query] selects commits. [Everything], [OfAgent], [OfMessages], [OfPath] and
// [OfRemoved] create queries that gitlog can process without examining every commit. The result contains one [Revision]
// for each commit, newest first, including operations that are not committed yet. [Revision.Entries] converts a
// Revision to the entries that users see: an [Entry] for each operation or set of edits.
//
// This package does not know whether a user-supplied name belongs to an agent, a message or a thread. Nor does it know
// which parts of a result would reveal bcc recipients (Invariant I7). See maildir.Project.Log.
package history
