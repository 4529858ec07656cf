// Package storedir is the folder of a store, as a process sees it that does not own the store: who
// owns it, where its server listens and logs, and which projects lie in it. The command line and
// the guard look at a store through this package, while a server runs or none; a server takes its
// Lock here.
//
//	server.lock           names the owner, which holds a flock on it
//	server.sock           where the owner listens
//	server.log            what a server in the background logs
//	README.md             tells a person which file counts
//	projects/<slug>/repo  a project's work tree
//
// See docs/tree.md, "The store". What the other files of the folder hold: maildir, keys and hook.
package storedir
