// Package core has what every verb of the domain needs: a project's mail with its agents, and what the projects of a store
// share. It knows none of the verbs.
//
//	core.go      Mail: one project's mail; who may act, and what is known of its removal
//	store.go     Store: what the projects of a store share
//	config.go    how to open a store
//	agents.go    which agents exist, when they were last seen, and to which machine they belong
//	refusals.go  refusals of names that nothing has, which say what exists instead
//	ids.go       shortened ids, and messages by their ids
//	message.go   the files of a new message
//	marks.go     the marks of deliveries
//	receipts.go  what the recipients of a message have done with it
//	notice.go    the messages of Postmaster
//	trust.go     who vouches for a message, and whom a mailbox trusts
//	owners.go    whose a mailbox is
//	feed.go      how callers wait for changes
//
// An agent belongs to the machine that created it. The agent's profile names that machine by the id of its key. If
// machines share the mail of a project, programs act only as agents of their own machine. A person is one person on all
// machines. See docs/sync.md, "Names".
package core
