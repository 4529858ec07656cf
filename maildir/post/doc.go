// Package post connects a project with other domains: it receives their mail, queues mail to them, and resolves
// addresses. A mailbox is an agent with an address and an owner. The owner is the OS user that may read and write the
// mailbox. The store's owners.json records the owners. They are never stored in a tree, because a `git pull` could
// change them there. An agent that owners.json does not list belongs to the store's user, who can read its files
// anyway. See docs/reference/email.md.
//
//	mailboxes.go  mailboxes and their owners
//	receive.go    mail from other domains
//	queue.go      mail to other domains
//	hooks.go      the hooks of mailboxes
package post
