// Package indexer is the SQLite index of a store's trees. The index only answers queries. The trees are the source of
// truth, so the database can be deleted at any time, at the cost of a rebuild. The index implements index.Index.
//
// # One entry point
//
// Ingest accepts the names of files. A batch examines each file (look.go), compares the file with its row, and writes
// the rows that differ. Reconcile finds the names by comparing stamps, and Rebuild by walking the tree. All three call
// batch.apply, so their results cannot disagree. One pure function (derive.go) derives a message from its files. The
// batch deletes the rows of each message whose files were observed, and inserts the derived rows. Text is added to the
// full-text index only if its hash changed, and triggers maintain the counts. No row depends on the order of arrival,
// the clock or a stamp, except for row numbers, seq and the stamp columns, which Dump omits.
//
// # The tables (schema.sql), one example row each
//
//	projects    pid 1, slug "backend-1a2b3c4d", max_file 8388608
//	folders     fol 7, pid 1, path "agents/BlueLake/inbox/2025/10/23" ("." is the tree itself),
//	            files 12 (number of its files), messages 0 (number of messages whose content is in one of them)
//	files       pid 1, name "msg_….md", fol 7, kind 6 (format.Kind), aid 3 (the agent that exists
//	            because of the file, or 0), stamp (a hash of its state; if even, reread the file), hash
//	            (half a SHA-256; NULL if the index ignores the content), valid 1, bad 0 (1 if the file itself
//	            has a problem), at NULL (a mark's time, µs), fact "cc" (inbox: kind of the delivery;
//	            outbox: the bcc names)
//	agents      aid 3, pid 1, name "BlueLake", files 29 (the agent exists as long as it has files), total 20, unread
//	            4, archived 2 (of the total), sent 9, profile 1, program, model, task, inception (µs),
//	            machine "1f2e…", status "work", hold "{…}" (the hold's file as the server writes it, or "")
//	messages    row 4066…, pid 1, id "msg_…", thread "TKT-123", sender "GreenCastle", tos "BlueLake
//	            Ann", ccs "", created (µs), importance "high", ack 1, in_reply_to, message_id, key, auth, door, rest
//	            (the other header keys, as JSON), digest, fol 4 (the folder of the file with its
//	            content), facets "ƿp47… ƿf11… ƿt80… ƿr42… ƿi68…",
//	            question 1, subject, body
//	search      FTS5 over the subject, body and facets of messages; facets (rowid.go) make project,
//	            sender, recipient, importance and thread part of one full-text query
//	deliveries  box 3 (the agent's inbox; -3: its outbox), row 4066…, fol 7 (the folder of the
//	            copy), fact as in files, urgent 1, asks 0 (1 if an acknowledgment is requested), read 1,
//	            read_at (µs or NULL), ack 0, ack_at NULL, archived 0
//	claims      pid 1, path "claims/….json", pattern "app/api/*.py", agent, exclusive 1, reason,
//	            created, expires (µs), released 0, released_at NULL
//	problems    pid 1, path "messages/x.md", reason "no \"from\"", line 2
//	changes     seq (always grows, even across rebuilds), pid, path, kind, op "added", agent,
//	            thread, at; the newest million. The removal of a project has pid 0 and the
//	            slug as its agent
//
// A message's row number encodes its time (rowid.go). The table and the full-text index are therefore in the same
// order as a page of results, and the cost of a page does not depend on the amount of mail. Only the column fact
// contains bcc recipients. The tables messages and search never contain them.
//
// The cost of a send depends on the number of database pages that it writes, not on the number of bytes. The three
// files of a message have the same name, so their rows in the table files are on one page. Pages are small (newPages).
// If files disappear from a folder, the index notices only that the folder's count is too high. To find out which files
// are gone, it scans all of the project's rows in files.
//
// # Invalid and other files
//
// An invalid file has a row in files, which keeps it from being read again, and a row in problems. It has no other
// row. An agent exists as long as its folder contains any file of a known kind, even a damaged one. Regular files
// that the index does not use (KindOther, drafts, attachments) have a row in files, but the index never opens them. A
// Change reports an invalid file as KindOther. When the file becomes valid, a Change reports it as Added with its own
// kind.
package indexer
