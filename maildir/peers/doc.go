// Package peers shares a project's mail with other machines, through a branch in a Git repository that all of them can
// reach. Each server fetches the branch, merges it into its own, and pushes the result without force. The writer
// applies a merge to the tree as operations. See docs/reference/sync.md.
//
// One shared list is authoritative for the claims on all machines. Only one push at a time can change the list. A
// server reads the list and decides. If the list has not changed since then, the server pushes it with the new claim,
// and answers the request only after the push. The claim files in each tree are updated to match the list. See
// docs/reference/sync.md, "Claims".
//
// While two machines cannot reach each other, they may create agents with the same name. When their mail is merged, the
// agent that was created first keeps the name. The other agent becomes NAME-machine and keeps its folder and claims.
// Both machines compute the same names. The first agent's machine imports the other agent's files under the new name.
// The other agent's machine renames its agent before it merges, and notifies both agents. See docs/reference/sync.md,
// "Names".
//
//	sync.go    the rounds
//	merge.go   merges the shared branch into the tree
//	names.go   two agents with the same name
//	claims.go  claim requests and the shared list
//	round.go   a round for the list: package claimlist decides, and this file reads, pushes and writes
package peers
