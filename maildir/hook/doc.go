// Package hook decides which command runs for which message. It manages a store's list of hooks, matches messages
// with hooks, and logs the runs. Package watcher/hook runs the commands.
//
// A store keeps hooks beside its trees, so that no `git pull` changes a command:
//
//   - hooks.json, the List of hooks. The user may edit it while a server runs.
//   - hooks, the Log of runs: a folder with one mark for each run. The mark is written before the command
//     starts, so that no crash and no restart repeats the run.
//
// A copy that appears in an inbox or outbox is an Arrival. List.Firings returns a Firing for each hook on that
// mailbox and event. List.Stands and Firing.WhyNot decide whether it runs, Log.Begin writes the mark, and a Run
// contains everything that the command receives. Package maildir supplies the facts that this package does not
// have: who owns a mailbox, what changed, and how far a message is trusted.
//
// See docs/email.md, "Hooks".
package hook
