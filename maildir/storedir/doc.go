// Package storedir is the folder of a store as seen by processes other than the store's server: which process owns
// it, where its server listens and logs, and which projects it has. The command line and the guard use this package
// to read a store, whether or not a server is running. A server takes its Lock here.
//
//	server.lock           names the owner, which holds a flock on it
//	server.sock           the socket on which the owner listens
//	server.log            the log of a background server
//	README.md             tells users what each file is for
//	projects/<slug>/repo  a project's work tree
//
// See docs/tree.md, "The store". The packages maildir, keys and hook describe the other files of the
// folder.
package storedir
