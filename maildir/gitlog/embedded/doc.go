// Package embedded reads and writes the objects of a Git repository without the git program. Package
// gitlog uses it on machines without that program.
//
// A [Repository] uses go-git to read objects, which may be loose or in packs. It does not notice changes to the packs.
// After a user runs `git gc`, it may no longer find objects, and must be opened again. A [Writer] writes loose
// objects. It rewrites only the folders above the changed paths, and makes all objects durable before it moves the
// first one into place. Package reflock moves the branch. [Untracked] finds the untracked files that git status would
// list.
//
// The package maintains no Git index: gitlog removes the index when it first commits without the git program. It
// never repacks, and never contacts another repository.
package embedded
