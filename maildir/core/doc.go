// Package core contains the state and helpers that every operation of the domain needs, both for one project's mail and
// for all projects of a store. It implements no operations of its own.
//
//	core.go      Mail: one project's mail, which callers may act, and whether the project was removed
//	store.go     Store: the state that all projects of a store share
//	config.go    how to open a store
//	agents.go    which agents exist, when they were last seen, and to which machine they belong
//	party.go     what a sender or recipient is: an agent here, an agent of another project, or an email address
//	refusals.go  errors for unknown names, which list the names that exist
//	ids.go       shortened ids, and messages by their ids
//	message.go   the files of a new message
//	marks.go     the marks of deliveries
//	receipts.go  what recipients have done with a message
//	notice.go    the messages of Postmaster
//	trust.go     whether a message is verified, and which senders a mailbox trusts
//	owners.go    which OS user owns a mailbox
//	feed.go      how callers wait for changes
//
// An agent belongs to the machine that created it. The agent's profile identifies that machine by its key id. If
// machines share the mail of a project, programs act only as agents of their own machine. A user's agent is the same
// agent on all machines. See docs/reference/sync.md, "Names".
package core
