package indexer

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"mailtree/maildir/index"
)

// threadOf is SQL for the thread id of message m. If m has no thread id, the result is m's own id.
const threadOf = "ifnull(nullif(m.thread, ''), m.id)"

// dueColumns are the leading columns of the queries below. They describe message m.
const dueColumns = "SELECT m.row, " + threadOf + ", m.sender, m.subject, m.importance, m.question, m.id, "

// receivedText lists the deliveries that may be waiting for an agent. A row matches at most one part of the query.
var receivedText = dueColumns + "d.fact, (d.read = 0) + 2 * (d.asks AND NOT d.ack) FROM (" +
	receivedPart("INDEXED BY deliveries_unread", "read = 0 AND urgent = 0") + " UNION ALL " +
	receivedPart("INDEXED BY deliveries_urgent", "read = 0 AND urgent = 1") + " UNION ALL " +
	receivedPart("INDEXED BY deliveries_awaiting", "read = 1 AND asks = 1 AND ack = 0 AND archived = 0") + " UNION ALL " +
	receivedPart("", "row >= ?3 AND read = 1 AND asks = 0 AND ack = 0 AND archived = 0 AND fact = 'to'") +
	") d CROSS JOIN messages m ON m.row = d.row"

// receivedPart returns SQL for an agent's newest deliveries that meet a condition.
func receivedPart(by, where string) string {
	return "SELECT * FROM (SELECT row, fact, read, asks, ack FROM deliveries " + by + " WHERE box = " + agentID + " AND " + where +
		" ORDER BY row DESC LIMIT ?4 + 0)"
}

// owedText lists an agent's sent messages that other agents still have to acknowledge, together with the names of these
// agents. If ?4 is set, it ignores bcc recipients. It also lists agents in other projects, by address. For such an
// agent, c is the copy in the agent's own project.
const owedText = dueColumns + "group_concat(a.name || iif(c.pid = ?1, '', '@' || p.slug), ' ' ORDER BY c.pid <> ?1, a.name) " +
	"FROM deliveries d INDEXED BY deliveries_asking CROSS JOIN messages c ON c.row = d.row CROSS JOIN agents a ON a.aid = d.box " +
	"CROSS JOIN projects p ON p.pid = c.pid CROSS JOIN messages m ON " + ownOfCopy +
	" WHERE d.asks = 1 AND d.ack = 0 AND " + copyOfOwn + " AND NOT (c.pid = ?1 AND a.name = ?2) " +
	"AND (NOT ?4 OR d.fact <> 'bcc') GROUP BY m.row ORDER BY m.row DESC LIMIT ?3 + 0"

// copyOfOwn is an SQL condition. It is true if agent ?2 of project ?1 sent message c. The message c may be in any
// project.
const copyOfOwn = "c.sender = iif(c.pid = ?1, ?2, ?2 || '@' || (SELECT slug FROM projects WHERE pid = ?1))"

// ownOfCopy is an SQL condition. It is true if message m is the original of message c, in the sender's project.
const ownOfCopy = "m.pid = ?1 AND m.id = c.id AND m.sender = ?2"

// sentText lists the newest messages that an agent sent without requesting an acknowledgment.
const sentText = dueColumns + "m.tos FROM deliveries d CROSS JOIN messages m ON m.row = d.row " +
	"WHERE d.box = -" + agentID + " AND d.row >= ?3 AND m.ack = 0 ORDER BY d.row DESC LIMIT ?4 + 0"

// Due implements index.Index. It lists the messages that may be waiting for an agent.
func (x *Index) Due(ctx context.Context, q index.DueQuery) ([]index.Due, error) {
	v, err := x.view(ctx, receivedText, owedText, sentText)
	if err != nil {
		return nil, err
	}
	defer v.close()
	args := []any{x.pid(q.Project), q.Agent, firstRow(q.Since.UnixMicro()), q.Most}
	received, err := list(ctx, v, receivedText, args, func(scan scanner, d *index.Due) error {
		var flags int
		err := scan(&d.Cursor, &d.Thread, &d.From, &d.Subject, &d.Importance, &d.Question, &d.ID, &d.Kind, &flags)
		d.Unread, d.Asks = flags&1 != 0, flags&2 != 0
		return err
	})
	if err != nil {
		return nil, err
	}
	own := func(scan scanner, d *index.Due) error {
		d.Kind = index.KindSent
		return scan(&d.Cursor, &d.Thread, &d.From, &d.Subject, &d.Importance, &d.Question, &d.ID, names{&d.Of})
	}
	owed, err := list(ctx, v, owedText, []any{args[0], q.Agent, q.Most, q.Open}, func(scan scanner, d *index.Due) error {
		d.Asks = true
		return own(scan, d)
	})
	if err != nil {
		return nil, err
	}
	sent, err := list(ctx, v, sentText, args, own)
	return slices.Concat(received, owed, sent), err
}

// repliedText selects two flags for each message: whether agent ?2 later wrote to the message's sender in the same
// thread, and whether another agent later wrote an answer in that thread.
const repliedText = "SELECT m.row, " +
	"EXISTS (SELECT 1 FROM messages r WHERE " + later + " AND r.sender = ?2 AND " + toSender + "), " +
	"EXISTS (SELECT 1 FROM messages r WHERE " + later + " AND " + answers + ") " +
	"FROM json_each(?3) j CROSS JOIN messages m ON m.row = j.value"

// inThreadOf is an SQL condition. It is true if message r has the id of message m's thread as its thread id.
const inThreadOf = "r.pid = ?1 AND r.thread <> '' AND r.thread = " + threadOf + " COLLATE NOCASE AND r.thread = " + threadOf

// toSender is an SQL condition. It is true if message r was sent to the sender of message m. If the sender has an
// address outside the project, it is always true, because replies may go to another address of that sender.
const toSender = "(instr(m.sender, '@') OR instr(' ' || r.tos || ' ' || r.ccs || ' ', ' ' || m.sender || ' '))"

// later is an SQL condition. It is true if message r is in the thread of message m and comes after m.
const later = inThreadOf + " AND r.row > m.row"

// answers is an SQL condition. It is true if message r, which comes after message m in its thread, is by another author
// and answers m: it replies to m, or its author has received m. An author with an address outside the project always
// counts, because replies may come from another address of a recipient.
const answers = "r.sender <> m.sender AND (r.in_reply_to = m.id OR instr(r.sender, '@') OR EXISTS (SELECT 1 FROM agents a " +
	"CROSS JOIN deliveries d ON d.box = a.aid AND d.row = m.row WHERE a.pid = m.pid AND a.name = r.sender))"

// Replied implements index.Index. It reports which messages have replies.
func (x *Index) Replied(ctx context.Context, slug, agent string, cursors []int64) (map[int64]index.Replied, error) {
	all := make(map[int64]index.Replied, len(cursors))
	err := x.each(ctx, repliedText, []any{x.pid(slug), agent, listedRows(cursors)}, func(scan scanner) error {
		var row int64
		var r index.Replied
		err := scan(&row, &r.ByAgent, &r.ByOthers)
		all[row] = r
		return err
	})
	return all, err
}

// hiddenText lists an agent's threads with a .later mark that has not expired.
const hiddenText = "SELECT " + threadOf + ", max(d.row), max(d.later) FROM deliveries d INDEXED BY deliveries_later " +
	"CROSS JOIN messages m ON m.row = d.row WHERE d.box = " + agentID + " AND d.later > ?3 + 0 GROUP BY 1"

// Hidden implements index.Index. It lists hidden threads.
func (x *Index) Hidden(ctx context.Context, slug, agent string, now time.Time) (map[string]index.Hidden, error) {
	all := map[string]index.Hidden{}
	err := x.each(ctx, hiddenText, []any{x.pid(slug), agent, now.UnixMicro()}, func(scan scanner) error {
		var thread string
		var h index.Hidden
		err := scan(&thread, &h.Cursor, instant{&h.Until})
		all[thread] = h
		return err
	})
	return all, err
}

// outlineText selects a description of each message's thread. SQLite takes the subject from the row with min(t.row).
const outlineText = "SELECT m.row, m.id, m.created, substr(m.body, 1, 500), min(t.row), t.subject, count(*), " +
	"sum(CASE WHEN instr(t.rest, '\"attachments\"') THEN json_array_length(t.rest, '$.attachments') ELSE 0 END) " +
	"FROM json_each(?2) j CROSS JOIN messages m ON m.row = j.value CROSS JOIN messages t ON t.row IN (" +
	"SELECT r.row FROM messages r WHERE " + inThreadOf + " UNION SELECT r.row FROM messages r WHERE r.pid = ?1 AND r.id = " + threadOf +
	") GROUP BY m.row"

// Outlines implements index.Index. It describes the threads of messages.
func (x *Index) Outlines(ctx context.Context, slug string, cursors []int64) (map[int64]index.Outline, error) {
	all := make(map[int64]index.Outline, len(cursors))
	err := x.each(ctx, outlineText, []any{x.pid(slug), listedRows(cursors)}, func(scan scanner) error {
		var row, first int64
		var o index.Outline
		err := scan(&row, &o.ID, instant{&o.Created}, &o.Beginning, &first, &o.Subject, &o.Messages, &o.Files)
		all[row] = o
		return err
	})
	return all, err
}

func listedRows(cursors []int64) string {
	list, _ := json.Marshal(cursors) // encoding numbers cannot fail
	return string(list)
}
