package indexer

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// Page sizes of lists, as in index.InboxQuery. The value of maxPage is one more than the maximum size of a page that
// callers return. Callers request the extra row to find out whether there is a next page.
const (
	defaultPage = 20
	maxPage     = 201
)

func pageSize(n int) int {
	if n <= 0 {
		return defaultPage
	}
	return min(n, maxPage)
}

const (
	deliveryColumns = copyPath + ", d.fact, d.read, d.read_at, d.ack, d.ack_at, d.archived"
	// copyPath is SQL for the path of delivery d's copy. If fol is 0, there is no copy, and the path is "".
	copyPath = ", ifnull((SELECT path FROM folders WHERE fol = d.fol) || '/' || m.id || '.md', '')"
)

func deliveries(ctx context.Context, from reader, slug, agent, text string, args ...any) ([]index.Delivery, error) {
	return list(ctx, from, text, args, func(scan scanner, d *index.Delivery) error {
		d.Agent = agent
		err := scanMessage(slug, scan, &d.MessageRow, &d.CopyPath, &d.Kind, &d.Read, instant{&d.ReadAt.Time}, &d.Acked, instant{&d.AckedAt.Time},
			&d.Archived)
		if d.Kind == "bcc" {
			d.BCC = []string{agent}
		}
		d.Astray = !slices.Contains(d.Recipients(), agent)
		return err
	})
}

// agentID is a subquery for the number of agent ?2 in project ?1.
const agentID = "(SELECT aid FROM agents WHERE pid = ?1 AND name = ?2)"

// Delivery implements index.Index. It reads one agent's copy.
func (x *Index) Delivery(ctx context.Context, slug, agent, id string, wanted index.BodyWanted,
	room *index.Room) (*index.Delivery, error) {
	text := "SELECT " + messageColumns + bodyColumn(wanted) + deliveryColumns +
		" FROM messages m JOIN deliveries d ON d.box = " + agentID + " AND d.row = m.row WHERE m.pid = ?1 AND m.id = ?3"
	v, err := x.view(ctx, text, bodyPiece)
	if err != nil {
		return nil, err
	}
	defer v.close()
	rows, err := deliveries(ctx, v, slug, agent, text, x.pid(slug), agent, id)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	_, err = takeBody(ctx, v, &rows[0].MessageRow, wanted, room)
	return &rows[0], err
}

// Deliveries implements index.Index. It reads an agent's copies of messages.
func (x *Index) Deliveries(ctx context.Context, slug, agent string, ids []string) ([]index.Delivery, error) {
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	const text = "SELECT " + messageColumns + withoutBody + deliveryColumns + " FROM json_each(?3) j " +
		"CROSS JOIN messages m ON m.pid = ?1 AND m.id = j.value CROSS JOIN deliveries d ON d.box = " + agentID + " AND d.row = m.row"
	return deliveries(ctx, x, slug, agent, text, x.pid(slug), agent, string(list))
}

// awaitingText lists the messages that are waiting for an acknowledgment. Both halves of the query use a partial
// index, so the cost depends on the number of waiting messages, not on the total number of messages. The query reads
// the table messages only for the rows on the page, and for copies in other projects.
const awaitingText = "SELECT " + messageColumns + withoutBody + deliveryColumns + " FROM (" +
	"SELECT row, fol, fact, read, read_at, ack, ack_at, archived " +
	"FROM deliveries INDEXED BY deliveries_awaiting WHERE box = " + agentID + " AND asks = 1 AND ack = 0 AND row < ?3 " +
	"UNION ALL SELECT DISTINCT m.row, 0, '" + index.KindSent + "', 1, NULL, 0, NULL, 0 " +
	"FROM deliveries o INDEXED BY deliveries_asking CROSS JOIN messages c ON c.row = o.row CROSS JOIN messages m ON " + ownOfCopy +
	" WHERE o.asks = 1 AND o.ack = 0 AND m.row < ?3 AND " + copyOfOwn +
	" AND NOT EXISTS (SELECT 1 FROM deliveries x WHERE x.box = " + agentID + " AND x.row = m.row AND x.ack = 0) " +
	"ORDER BY row DESC LIMIT ?4 + 0) d CROSS JOIN messages m ON m.row = d.row ORDER BY d.row DESC"

// Awaiting implements index.Index. It lists the messages that are waiting for an acknowledgment.
func (x *Index) Awaiting(ctx context.Context, q index.InboxQuery) ([]index.Delivery, error) {
	before := q.Before
	if before <= 0 {
		before = math.MaxInt64
	}
	return deliveries(ctx, x, q.Project, q.Agent, awaitingText, x.pid(q.Project), q.Agent, before, pageSize(q.Limit))
}

// Receipts implements index.Index. It lists the agents that have copies of messages.
func (x *Index) Receipts(ctx context.Context, slug string, ids ...string) (map[string][]index.Receipt, error) {
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	const text = `SELECT m.id, a.name, d.fact, d.read, d.read_at, d.ack, d.ack_at, d.archived AND m.question AND NOT d.ack
		AND NOT EXISTS (SELECT 1 FROM messages r WHERE ` + later + ` AND r.sender = a.name AND ` + toSender + `) FROM json_each(?2) j
		CROSS JOIN messages m ON m.pid = ?1 AND m.id = j.value
		CROSS JOIN files f ON f.pid = m.pid AND f.name = m.id || '.md' AND f.kind = 6 AND f.valid
		CROSS JOIN agents a ON a.aid = f.aid
		CROSS JOIN deliveries d ON d.box = a.aid AND d.row = m.row AND d.fol = f.fol
		ORDER BY a.name`
	all := map[string][]index.Receipt{}
	err = x.each(ctx, text, []any{x.pid(slug), string(list)}, func(scan scanner) error {
		r := index.Receipt{Delivered: true}
		var id string
		err := scan(&id, &r.Agent, &r.Kind, &r.Read, instant{&r.ReadAt.Time}, &r.Acked, instant{&r.AckedAt.Time}, &r.Unanswered)
		all[id] = append(all[id], r)
		return err
	})
	return all, err
}

// Inbox implements index.Index. It lists deliveries newest first. Each filter has an index, so the cost of a page does
// not depend on the size of the inbox. Without INDEXED BY, SQLite would choose the primary key and read the whole
// inbox.
func (x *Index) Inbox(ctx context.Context, q index.InboxQuery) (page []index.Delivery, c index.Counts, err error) {
	text, args := inboxQuery(x.pid(q.Project), q)
	v, err := x.view(ctx, text, countsText, bodyPiece)
	if err != nil {
		return nil, c, err
	}
	defer v.close()
	if page, err = deliveries(ctx, v, q.Project, q.Agent, text, args...); err == nil {
		page, err = takeAll(ctx, v, page, func(d *index.Delivery) *index.MessageRow { return &d.MessageRow },
			index.BodyWanted(q.Bodies), q.Room)
	}
	if err == nil {
		c, err = counts(ctx, v, x.pid(q.Project), q.Agent)
	}
	return page, c, err
}

func inboxQuery(pid int64, q index.InboxQuery) (text string, args []any) {
	before, after, since := q.Before, int64(0), int64(math.MinInt64)
	if before <= 0 {
		before = math.MaxInt64
	}
	if !q.Since.IsZero() {
		since = q.Since.UnixMicro()
		after = firstRow(since)
	}
	where, by := "", ""
	if !q.Archived {
		where += " AND d.archived = 0"
	}
	if q.UnreadOnly {
		where, by = where+" AND d.read = 0", " INDEXED BY deliveries_unread"
	}
	if q.UrgentOnly {
		where, by = where+" AND d.urgent = 1", " INDEXED BY deliveries_urgent"
	}
	if q.ReplyTo != "" {
		where += " AND m.in_reply_to = ?7"
	}
	if q.Quiet {
		where += " AND (m.door <> '" + format.DoorGateway + "' OR " + fromTrusted + ")"
	}
	return "SELECT " + messageColumns + bodyColumn(index.BodyWanted(q.Bodies)) + deliveryColumns +
			" FROM deliveries d" + by + " CROSS JOIN messages m ON m.row = d.row WHERE d.box = " +
			"" + agentID + " AND d.row < ?3 AND d.row >= ?4" +
			where + " AND m.created > ?5 ORDER BY d.row DESC LIMIT ?6 + 0",
		[]any{pid, q.Agent, before, after, since, pageSize(q.Limit), q.ReplyTo, "\n" + strings.Join(q.Trusted, "\n") + "\n"}
}

// fromTrusted is an SQL condition. It is true if the sender's domain vouches for message m, and ?8 has a line with the
// sender's address or domain.
const fromTrusted = "m.auth = 'dmarc:' || substr(m.sender, instr(m.sender, '@') + 1) AND " +
	"(instr(?8, char(10) || lower(m.sender) || char(10)) OR instr(?8, char(10) || substr(m.sender, instr(m.sender, '@')) || char(10)))"

// OldestUnread implements index.Index. It lists unread deliveries oldest first.
func (x *Index) OldestUnread(ctx context.Context, slug, agent string, n int) ([]index.Delivery, error) {
	return deliveries(ctx, x, slug, agent, "SELECT "+messageColumns+withoutBody+deliveryColumns+
		" FROM deliveries d INDEXED BY deliveries_unread CROSS JOIN messages m ON m.row = d.row WHERE d.box = "+agentID+
		" AND d.read = 0 ORDER BY d.row LIMIT ?3 + 0", x.pid(slug), agent, n)
}

// Box implements index.Index. It lists copies in descending order of file name.
func (x *Index) Box(ctx context.Context, q index.BoxQuery) ([]index.BoxRow, error) {
	text, kind := boxQuery(q)
	args := []any{x.pid(q.Project), q.Agent, int(kind), q.ID + q.Before + q.Prefix, q.Limit, q.Offset}
	return list(ctx, x, text, args, func(scan scanner, r *index.BoxRow) error {
		var fact string
		err := scanMessage(q.Project, scan, &r.MessageRow, &r.CopyPath, &fact, &r.Read, &r.Holders)
		switch {
		case q.Sent:
			r.BCC = strings.Fields(fact)
		case fact == "bcc":
			r.BCC = []string{q.Agent}
		}
		r.Astray = !q.Sent && !slices.Contains(r.Recipients(), q.Agent)
		return err
	})
}

// boxQuery returns the SQL for Box. SQLite uses the partial index files_copies only if the query repeats the index's
// condition. If several files have the same name, the row in deliveries determines which file is used.
func boxQuery(q index.BoxQuery) (text string, kind format.Kind) {
	kind = format.KindInbox
	box, read, holders, where := "f.aid", "d.read", "0", ""
	switch {
	case q.Sent:
		kind = format.KindOutbox
		box, read = "-f.aid", "0"
		holders = "(SELECT count(DISTINCT g.aid) FROM files g WHERE g.pid = f.pid AND g.name = f.name AND g.kind = 6 AND g.valid)"
	case q.HideArchived:
		where = " AND d.archived = 0"
	}
	switch {
	case q.ID != "":
		where += " AND f.name = ?4 || '.md'"
	case q.Before != "":
		where += " AND f.name < ?4 || '.md'"
	case q.Prefix != "":
		where += " AND f.name >= ?4 AND f.name < ?4 || char(0x10ffff)"
	}
	return "SELECT " + messageColumns + withoutBody + copyPath + ", d.fact, " + read + ", " + holders +
		" FROM files f INDEXED BY files_copies CROSS JOIN messages m ON m.pid = f.pid AND m.id = substr(f.name, 1, length(f.name) - 3) " +
		"CROSS JOIN deliveries d ON d.box = " + box + " AND d.row = m.row AND d.fol = f.fol " +
		"WHERE f.aid = " + agentID + " AND f.kind = ?3 AND f.kind IN (6, 9)" + where + " ORDER BY f.name DESC LIMIT ?5 + 0 OFFSET ?6 + 0", kind
}

// The SQL above and schema.sql contain these file kinds as numbers. If the numbers change, the following line does not
// compile.
var _, _ = [1]int{}[format.KindInbox-6], [1]int{}[format.KindOutbox-9]

// Counts implements index.Index. It reads the counts of an agent's inbox, which triggers maintain.
func (x *Index) Counts(ctx context.Context, slug, agent string) (index.Counts, error) {
	return counts(ctx, x, x.pid(slug), agent)
}

const countsText = "SELECT total, unread, archived, sent FROM agents WHERE pid = ? AND name = ?"

func counts(ctx context.Context, from reader, pid int64, agent string) (c index.Counts, err error) {
	err = one(ctx, from, countsText, []any{pid, agent}, &c.Total, &c.Unread, &c.Archived, &c.Sent)
	return c, err
}

// ceilMicro returns t in microseconds, rounded up. time.UnixMicro rounds down.
func ceilMicro(t time.Time) int64 {
	us := t.UnixMicro()
	if t.Nanosecond()%1000 != 0 {
		us++
	}
	return us
}
