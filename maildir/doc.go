// Package maildir is the domain: what a project, an agent, a message, a delivery, a claim and a hook are, how they lie on
// disk, and every verb on them. Start reading here; everything else (index, history, watcher, tools, command line)
// is a way into this package or out of it.
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
//	agents/<Name>/outbox/YYYY/MM/DD/<id>.md   the sender's copy: it alone names every bcc recipient
//	agents/<Name>/drafts/**                   never delivered
//	claims/<sha1(path)>-<Name>.json           that agent's lease on that path pattern
//	claims/<sha1(path)>-<Name>.released       exists once it was released: one line, the time
//	attachments/<xx>/<sha1>.<ext>             named by content
//	.mailtree/                                untracked: tmp/ (staging), journal, seen/<Name> (when an agent was last here), notified/<Name> (what it was told of)
//
// layout.go is the only place that spells these names; reading is path-agnostic below the first two or three elements.
//
// # One door in
//
// A verb plans files; the project's one writer stages them, makes them durable, renames them into place, has the index
// ingest their paths, and hands the operation to the history (batch.go, its stages: pipeline.go, what operations under way
// hold: flight.go). Somebody else's edit comes through the
// watcher to the same Ingest (edits.go). The index is given names of files and nothing else, so the two ways in
// cannot disagree.
//
// # Invariants
//
//   - I1 A reply received: every copy exists, parses, and survives kill -9 and power loss.
//   - I2 The live index equals one rebuilt from the tree.
//   - I3 No operation is half visible through the server; no file is ever half written to anybody.
//   - I4 No delivery is popped twice; none is lost.
//   - I5 No byte that a person wrote is overwritten without that version being in the history.
//   - I6 git fsck is clean, every operation is in git log once, git status is clean when nobody else wrote.
//   - I7 A bcc recipient is named in no file, commit or answer but its own copy and the sender's.
//   - I8 Nothing outside the store is read or written because of a name, id, path or link in a request or in the tree.
//   - I9 Counts, lists and reads agree.
//   - I10 A bad file, request or peer never hides other mail and never stops the server.
//   - I11 Cost per operation does not grow with the number of messages stored.
package maildir
