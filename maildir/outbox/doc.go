// Package outbox sends messages that people and programs save as files.
//
// When a message file without an id is saved in an outbox or moved there, the server sends it once it has not changed
// for SettleTime. The operation that sends the file also removes it, so a file is never partly sent, and never sent
// without being removed. The message's key is derived from the file's bytes, so an editor that saves the same text
// again does not cause a second message. A file that cannot be sent stays in the outbox, and Postmaster sends the
// reason to the file's author. See docs/reference/tree.md, "Sending by saving".
package outbox
