// Package maildir is the domain model of mailtree: it defines what a project, an agent, a message, a delivery, a claim
// and a hook are, how they are stored on disk, and every operation on them. Start reading here; everything else (index,
// history, watcher, tools, command line) calls this package or is called by it.
//
// A Store opens the projects of a store folder. A Project consists of parts, each a package below this one: Claims,
// Holds, Agents, Sessions (package wake), Sync (package peers) and Post. These packages share package core. A Box
// provides the operations on one agent's mail. The store's carrier (package crossing) delivers mail from one project
// to another. A View is a project with the access rights of one OS user (package access).
//
// # The tree
//
// A project is one Git working tree. The mail consists of the files in this tree; everything else is derived from
// them.
//
//	project.json                              {"human_key": "/abs/shop", "slug": "shop-1a2b3c4d", "created": "…"}
//	messages/YYYY/MM/DD/<id>.md               the canonical message
//	agents/<Name>/profile.json                written once by the server; the user may edit it
//	agents/<Name>/status                      one word: ready, work, offline
//	agents/<Name>/hold                        asks the agent to change no more files (package hold)
//	agents/<Name>/inbox/YYYY/MM/DD/<id>.md    the recipient's copy
//	agents/<Name>/inbox/YYYY/MM/DD/<id>.read  exists once the recipient has read it: one line, the time
//	agents/<Name>/inbox/YYYY/MM/DD/<id>.ack   exists once the recipient has acknowledged it: one line, the time
//	agents/<Name>/inbox/YYYY/MM/DD/<id>.archived  exists once the recipient has archived it: one line, the time
//	agents/<Name>/outbox/YYYY/MM/DD/<id>.md   the sender's copy; only this file lists every bcc recipient
//	agents/<Name>/outbox/**/*.md              a file without an id is sent
//	agents/<Name>/drafts/**                   never delivered
//	claims/<sha1(path)>-<Name>.json           that agent's lease on that path pattern
//	claims/<sha1(path)>-<Name>.released       exists once the claim has been released: one line, the time
//	attachments/<xx>/<sha1>.<ext>             named after its content's hash
//	machines/<key id>.key                     public key of a machine that shares the mail; ignored until trusted
//	machines/<key id>.format                  the highest project format that this machine supports
//	.mailtree/                                untracked: tmp/ (staging), journal, seen/<Name> (when an agent was
//	                                          last active), notified/<Name> (the mail it was notified about),
//	                                          sessions/<client>-<hash> (the agent of a client's session),
//	                                          stopped/<what>-<Name>-<claim> (the work blocked by claims)
//
// Only format/layout.go spells out these names. When the server reads the tree, only the first two or three elements
// of a path matter.
//
// # How the tree changes
//
// An operation plans files. The project's single writer stages them, makes them durable, renames them into place, tells
// the index to ingest their paths, and passes the operation to the history (package writer). The watcher passes the
// paths of files that other programs have edited to the same Ingest. In both cases, the index receives only paths and
// reads the files itself, so the index cannot disagree with the files. Package store does both for one tree; writing.go
// and edits.go handle what package store reports.
//
// # Invariants
//
// All code maintains the invariants I1 to I11. See docs/explanation/architecture.md, "Invariants".
package maildir
