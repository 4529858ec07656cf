// Package post connects a project with other domains: it receives their mail, queues mail to them, and resolves
// addresses. A mailbox is an agent seen as an address with an owner: the operating system's user who may read and write
// it. The store's owners.json records the owners, never a tree, which a `git pull` could change. An agent that
// owners.json does not list belongs to the store's user, who can read its files anyway. See docs/email.md.
//
//	mailboxes.go  whose a mailbox is
//	receive.go    mail from other domains
//	queue.go      mail to other domains
//	hooks.go      the hooks of mailboxes
package post
