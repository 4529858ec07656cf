// Package storedir is the folder of a store as another process than the store's server sees it: who owns
// it, where its server listens and logs, and which projects it has. The command line and the guard look at
// a store through this package, whether or not a server runs. A server takes its Lock here.
//
//	server.lock           names the owner, which holds a flock on it
//	server.sock           the socket on which the owner listens
//	server.log            the log of a background server
//	README.md             tells a person what each file is for
//	projects/<slug>/repo  a project's work tree
//
// See docs/tree.md, "The store". The packages maildir, keys and hook describe the other files of the
// folder.
package storedir
