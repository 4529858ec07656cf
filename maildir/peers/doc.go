// Package peers shares the mail of a project with other machines, through a branch of a Git repository that all of them
// reach. Each server fetches the branch, merges it into its own, and pushes the result without force. A merge reaches the
// tree through the writer, in operations. See docs/sync.md.
//
// One list decides about the claims of all machines. Only one push at a time can change it: a server reads the list,
// decides, pushes the list with the new claim if the list is still the one that it has read, and only then answers. The
// claim files of each tree follow the list. See docs/sync.md, "Claims".
//
// Two machines may create agents of one name while they cannot reach each other. When their mail meets, the agent that was
// created first keeps the name. The other becomes NAME-machine and takes its folder and claims along. Both machines come to
// the same names: the machine of the first agent imports the other's files under the new name, and the machine of the other
// agent renames it before it merges, and notifies both agents. See docs/sync.md, "Names".
//
//	sync.go    the rounds
//	merge.go   files that only the shared branch has
//	names.go   two agents of one name
//	claims.go  claims that depend on the list
//	round.go   a round of the list: package claimlist decides, this reads, pushes and writes
package peers
