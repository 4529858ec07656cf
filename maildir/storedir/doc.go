// Package storedir describes a store's folder as processes other than the store's server see it: which process owns it,
// where its server listens and logs, and which projects it contains. The command line and the guard use this package to
// read a store, whether or not a server is running. A server uses it to take its Lock.
//
//	server.lock           names the owner, which holds a flock on it
//	server.sock           the socket on which the owner listens
//	server.log            the log of a background server
//	README.md             explains the files to users
//	projects/<slug>/repo  a project's working tree
//
// See docs/reference/tree.md, "The store". The packages maildir, keys and hook describe the other files in the folder.
package storedir
