// Package crossing carries messages from one project of a store to its other projects.
//
// A message has an Item for each other project in which it has recipients. The Item is a file in the folder "crossing"
// next to the tree of the sender's project. The folder is not in the tree, so neither Git nor another machine can add
// an Item, and `git clean` cannot remove one. The file is signed with the store's key (package signed).
//
// An Item does not specify an action. It only records that another project may not agree with the sender's tree about a
// message yet. The sender's tree is authoritative. The other project must have copies of the message if and only if the
// sender's tree has the message. An Item is durable before the operation that changes the sender's tree, and is removed
// after both trees agree. Therefore, even if the server is killed at any point, the next server finds every message
// that still has to be carried:
//
//   - If the operation was not durable yet, the tree does not have the message, and the Item is removed.
//   - Otherwise, the tree has the message, and the copies are written unless the other project already has them.
//
// The same applies to operations that withdraw or restore a message (Carrier.Change).
//
// Only the server that sends a message writes Items. A copy that comes from another machine, from Git or from a user is
// not carried to other projects. See docs/explanation/durability.md, "Mail between projects".
//
//	item.go     the files of the Items
//	carrier.go  makes another project agree with the sender's tree; operations that remove or restore a message
//	passage.go  a message that is being sent
//	deliver.go  writes and withdraws the copies in the other project
//	run.go      the retries
//	keep.go     keeps Items for a backup
package crossing
