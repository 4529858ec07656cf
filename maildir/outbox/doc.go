// Package outbox sends messages that people and programs save as files.
//
// A message file without an id that is saved below an outbox, or moved there, is sent once it has not changed for
// SettleTime. The operation that sends it also removes it, so a file is never sent in part, and never sent without being
// removed. The message's key is made of the file's bytes, so an editor that saves the same text again sends nothing. A
// file that cannot be sent stays, and Postmaster tells its author why. See docs/tree.md, "Sending by saving".
package outbox
