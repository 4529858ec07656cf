// Package hook determines which command runs for which message. It manages a store's list of hooks, matches messages
// with hooks, and logs the runs. Package watcher/hook runs the commands.
//
// A store keeps hooks outside its trees, so that a `git pull` cannot change a command:
//
//   - hooks.json is the List of hooks. The user may edit it while a server is running.
//   - hooks is the Log of runs, a folder with one mark for each run. The mark is written before the command starts, so
//     that a crash or restart never causes a second run.
//
// A copy that appears in an inbox or outbox is an Arrival. List.Firings returns a Firing for each hook on that mailbox
// and event. List.Stands and Firing.WhyNot decide whether the hook runs, Log.Begin writes the mark, and a Run contains
// everything that the command receives. Package maildir supplies the other facts: the owner of a mailbox, the feed of
// changes, and whether a message is trusted.
//
// See docs/reference/email.md, "Hooks".
package hook
