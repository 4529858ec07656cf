// Package guard keeps a commit from touching files that another agent has claimed: a pre-commit
// check that needs no server and no index. It reads claim files, asks Git what a commit would
// change, and lets maildir decide. CheckEdit asks the same before a file is edited, without Git.
//
//	mailtree guard install     writes hooks into the code repository (hook.sh), keeps those that are there, and runs them first
//	mailtree guard check       what the hooks call: 0 pass, 1 blocked, 2 wrong call or could not check
//	mailtree guard status      what is installed where, and whether it works
//	mailtree guard uninstall   puts back what was there, byte for byte
//
// What a commit changes is what of the index differs from HEAD: additions, changes, deletions, both
// names of a rename. A merge changes what differs from each of its parents: what it takes unchanged
// from one of them is somebody's commit already, and that was checked when it was made. A commit
// that is amended is compared with the commit that it replaces.
//
// A guard that cannot check (its program or store is gone, Git fails) says so loudly and lets the
// commit pass, unless GUARD_MODE=block was set: claims are advice, and a guard that nobody can get
// rid of is worse than none.
//
// The guard executes nothing that the code repository's configuration names: it calls only plumbing
// that runs no filter, no textconv, no external diff and no pager, with fsmonitor, hooks and
// transports turned off. Installing writes into the hooks folder of the code repository and nowhere
// else (invariant I8). See docs/guard.md, "What it checks".
package guard
