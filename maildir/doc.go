// Package maildir is the domain: it defines what a project, an agent, a message, a delivery, a claim and a
// hook are, how they lie on disk, and every verb on them. Start reading here; everything else (index,
// history, watcher, tools, command line) leads into this package or out of it.
//
// A Store opens the projects of a store folder. A Project is put together from parts, each a package below this one:
// Claims, Agents, Sessions (package wake), Sync (package peers) and Post. They share package core. A Box has the verbs
// of one agent's mail. A View is a project as one user of the operating system may see it (package access).
//
// # The tree
//
// A project is one Git work tree, and the tree is the mail: nothing else is the truth.
//
//	project.json                              {"human_key": "/abs/path/backend", "slug": "backend-1a2b3c4d", "created": "…"}
//	messages/YYYY/MM/DD/<id>.md               the canonical message
//	agents/<Name>/profile.json                written once by the server; a person may edit it
//	agents/<Name>/status                      one word: ready, work, offline
//	agents/<Name>/inbox/YYYY/MM/DD/<id>.md    the recipient's copy
//	agents/<Name>/inbox/YYYY/MM/DD/<id>.read  exists once the recipient has read it: one line, the time
//	agents/<Name>/inbox/YYYY/MM/DD/<id>.ack   exists once the recipient has acknowledged it: one line, the time
//	agents/<Name>/inbox/YYYY/MM/DD/<id>.archived  exists once the recipient has put it away: one line, the time
//	agents/<Name>/outbox/YYYY/MM/DD/<id>.md   the sender's copy: it alone names every bcc recipient
//	agents/<Name>/outbox/**/*.md              without an id: it is sent
//	agents/<Name>/drafts/**                   never delivered
//	claims/<sha1(path)>-<Name>.json           that agent's lease on that path pattern
//	claims/<sha1(path)>-<Name>.released       exists once it was released: one line, the time
//	attachments/<xx>/<sha1>.<ext>             named by content
//	machines/<key id>.key                     public key of a machine that shares the mail; believed only once trusted
//	.mailtree/                                untracked: tmp/ (staging), journal, seen/<Name> (when an agent was
//	                                          last here), notified/<Name> (what it was told of),
//	                                          sessions/<client>-<hash> (which agent a client's session is),
//	                                          stopped/<what>-<Name> (what claims kept it from)
//
// format/layout.go is the only place that spells these names; reading is path-agnostic below the
// first two or three elements.
//
// # One door in
//
// A verb plans files. The project's one writer stages them, makes them durable, renames them into place,
// has the index ingest their paths, and hands the operation to the history (package writer). An edit by
// another program comes through the watcher to the same Ingest. The index is given only names of files, so
// the two ways in cannot disagree. Package store does both for one tree; writing.go and edits.go handle
// what it reports to the mail.
//
// # Invariants
//
// The invariants I1 to I11, which everything else keeps: docs/architecture.md, "Invariants".
package maildir
