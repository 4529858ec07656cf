// Package hook says which command runs for which message: the hooks of a store, what calls for one,
// and what has run. It runs nothing; watcher/hook does.
//
// A store keeps them beside its trees, so that no `git pull` changes a command:
//
//   - hooks.json, the List of hooks. A person may edit it while a server runs.
//   - hooks, the Log of runs: a folder with a mark for each. A run has its mark before its command
//     starts, so that no crash and no restart repeats it.
//
// A copy that appears in an inbox or outbox is an Arrival. List.Firings gives a Firing for each
// hook on that mailbox and event. List.Stands and Firing.WhyNot decide about it, Log.Begin notes
// the run, and a Run carries all that its command is given. maildir brings what the room does not
// know: who owns a mailbox, what changed, and how far a message is trusted.
//
// See docs/email.md, "Hooks".
package hook
