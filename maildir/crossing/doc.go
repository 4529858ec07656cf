// Package crossing carries messages from one project of a store to its other projects.
//
// A message has an Item for each other project that it has recipients in. The Item is a file in the folder "crossing"
// next to the tree of the sender's project. The folder is not in the tree, so neither Git nor another machine can add an
// Item, and `git clean` cannot remove one. The file is signed with the store's key (package signed).
//
// An Item does not say what to do. It says that a message and another project may not agree yet, and the sender's tree
// decides: if the tree has the message, the other project must have its copies, and otherwise the other project must not
// have them. An Item is durable before the operation that changes the sender's tree, and is removed after both trees
// agree. So whenever the server is killed, the next one finds every message that still has to be carried:
//
//   - before the operation is durable, the tree lacks the message, and the Item is removed;
//   - after that, the tree has the message, and the copies are written unless the other project has them already.
//
// The same holds for an operation that withdraws a message and for one that restores it (Carrier.Change).
//
// Only the server that sends a message writes Items. A copy of a message that comes from another machine, from Git or
// from a user is carried to no other project. See docs/durability.md, "Mail between projects".
//
//	item.go     the files of the Items
//	carrier.go  makes another project agree with the sender's tree; operations that remove or restore a message
//	passage.go  a message that is being sent
//	deliver.go  writes and withdraws the copies in the other project
//	run.go      the retries
//	keep.go     what a backup needs
package crossing
