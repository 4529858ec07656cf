// Package claims manages a project's claims. The claim files determine which agent has claimed which path. Package
// claim contains the rules, and this package reads and writes the files. See docs/reference/guard.md, "Making a claim".
//
//	claims.go  grant, release, list, sweep
//	done.go    the claims in an operation to undo
//	stops.go   agents that are blocked by claims
package claims
