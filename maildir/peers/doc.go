// Package peers shares the mail of a project with other machines, through a branch of a Git repository that all of
// them reach. Each server fetches the branch, merges it into its own, and pushes the result without force. The
// writer applies a merge to the tree, in operations. See docs/sync.md.
//
// One list decides the claims of all machines. Only one push at a time can change the list. A server reads the
// list, decides, and pushes the list with the new claim if the list has not changed since. Only then does it
// answer. The claim files of each tree follow the list. See docs/sync.md, "Claims".
//
// Two machines may create agents with the same name while they cannot reach each other. When their mail is merged,
// the agent that was created first keeps the name. The other agent becomes NAME-machine and keeps its folder and
// claims. Both machines compute the same names. The machine of the first agent imports the other agent's files
// under the new name. The machine of the other agent renames it before it merges, and notifies both agents. See
// docs/sync.md, "Names".
//
//	sync.go    the rounds
//	merge.go   files that only the shared branch has
//	names.go   two agents with the same name
//	claims.go  claims that depend on the list
//	round.go   a round of the list: package claimlist decides, this file reads, pushes and writes
package peers
