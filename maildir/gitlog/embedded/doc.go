// Package embedded reads and writes the objects and branches of a Git repository without the git program. Package
// gitlog uses it on machines that have none.
//
// A [Repository] reads objects, which may be loose or in packs, with go-git. It does not notice later changes to the
// packs: after a user's `git gc`, it may no longer find objects, and must be opened again. A [Writer] writes loose
// objects. It rewrites only the folders above the changed paths, and makes all objects durable before it moves the
// first one into place. A [RefLock] moves a branch under the lock files that Git uses, so that a git command waits,
// fails, or sees the move. [Untracked] finds new files in the same way as git status.
//
// The package has no index: gitlog removes the Git index when it first commits without the git program. It never
// repacks, and never contacts another repository.
package embedded
