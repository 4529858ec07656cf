// Package keys manages a store's secrets and the list of keys whose seals the store trusts. All of these files are in
// the store's folder, never in a tree that a `git pull` could change:
//
//	key            the private key for the store's own seals, created at the first start
//	key.old        a key file in an older format, whose seals are no longer trusted
//	token          the bearer token for the store's clients, created at the first start
//	trusted_keys   the other keys whose seals are trusted: one public key and name per line
//
// A server opens a Ring, which verifies the seals of messages. The command line reads and changes trusted_keys, even
// while a server is running. The Ring reads the changed file at the next verification.
//
// See docs/reference/tree.md, "Seals". format/seal.go defines what a seal is and what it covers.
package keys
