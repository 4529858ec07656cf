// Package history is what Git says of a mail tree: which operations there were on a message, by an
// agent, in a thread or below a path, what others edited, and how a folder was at some moment. It is
// the contract between the mail, which asks, and package gitlog, which commits and reads: both
// import it, and neither the other.
//
// A [Log] keeps the history of one tree. A [Query] says what of it is wanted, and gitlog finds the
// commits of that without looking at all: [Everything], [OfAgent], [OfMessages], [OfPath],
// [OfRemoved]. It answers with one [Revision] for each commit, newest first, operations that wait
// among them, and [Revision.Entries] makes of it what people are shown: an [Entry] for each
// operation, or for what somebody edited at once.
//
// What a name that a person gives means (an agent, a message, a thread), and what of an answer shows
// who got a blind copy (Invariant I7), this package does not know: see maildir.Project.Log.
package history
