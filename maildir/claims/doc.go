// Package claims keeps the claims of a project: its claim files decide who holds which path. Package claim has the rules,
// this package reads and writes the files. See docs/guard.md, "Making a claim".
//
//	claims.go  grant, release, list, sweep
//	done.go    the claims of an operation that is to be undone
//	stops.go   agents that claims have stopped
package claims
