// Package guard stops a commit that touches files claimed by another agent. Its pre-commit check needs neither a server
// nor an index. It reads claim files, asks Git what a commit would change, and lets maildir/claim decide. CheckEdit
// checks a file before it is edited, without Git. Both also stop an agent that a user has put on hold (maildir/hold).
//
//	mailtree guard install     writes hooks into the code repository (hook.sh); existing hooks are kept and run first
//	mailtree guard check       what the hooks call; exits with 0 (pass), 1 (blocked) or 2 (error)
//	mailtree guard status      shows what is installed where, and whether it works
//	mailtree guard uninstall   restores the earlier hooks, byte for byte
//
// A commit changes the files whose index entries differ from HEAD: added, changed and deleted files, and both names of
// a renamed file. A merge changes only the files that differ from each of its parents. If a file is the same as in one
// of the parents, it was already checked when that parent was committed. An amended commit is compared with the commit
// that it replaces.
//
// If a guard cannot check, because its program or store is gone or because Git fails, it prints a clear warning and
// lets the commit pass, unless GUARD_MODE=block is set. Claims are only advisory, and a broken guard that blocks every
// commit is worse than no guard.
//
// The guard never executes anything that the code repository's configuration specifies. It calls only Git plumbing
// commands that run no filter, textconv, external diff or pager, and it turns off fsmonitor, hooks and transports.
// Installing the guard writes only to the hooks folder of the code repository (invariant I8). See
// docs/reference/guard.md, "What it checks".
package guard
