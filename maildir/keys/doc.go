// Package keys holds the secrets of a store and says whose seals it believes. All of them are files
// in the store's folder, never in a tree that a `git pull` could change:
//
//	key            the private key of the store's own seals, made at the first start
//	key.old        what stood there in an older format: its seals are no longer believed
//	token          the bearer token of the store's clients, made at the first start
//	trusted_keys   whose seals are believed beside the store's own: a public key and a name a line
//
// A server opens a Ring, which verifies the seals of messages. The command line reads and changes
// trusted_keys, also while a server runs: the ring takes the new file at its next look.
//
// See docs/tree.md, "Seals". What a seal is, and what it covers: format/seal.go.
package keys
