package indexer

import (
	"context"
	"time"

	"mailtree/maildir/index"
)

// askedText lists messages that ask for an answer. For each message, it also selects two times: when another agent first
// answered in the thread, and when the last recipient acknowledged the message.
const askedText = "SELECT m.id, " + threadOf + ", m.sender, m.subject, m.created, " +
	"(SELECT r.created FROM messages r WHERE " + later + " AND " + answers + " ORDER BY r.row LIMIT 1), " +
	"(SELECT CASE WHEN min(d.ack) THEN max(ifnull(d.ack_at, m.created)) END FROM files f CROSS JOIN agents a ON a.aid = f.aid " +
	"CROSS JOIN deliveries d ON d.box = f.aid AND d.row = m.row AND d.fol = f.fol " +
	"WHERE f.pid = m.pid AND f.name = m.id || '.md' AND f.kind = 6 AND f.valid AND a.name <> m.sender AND d.fact <> 'bcc') " +
	"FROM messages m INDEXED BY messages_question WHERE m.pid = ?1 AND m.question = 1 AND m.row >= ?2 ORDER BY m.row DESC LIMIT ?3 + 0"

// Asked implements index.Index. It lists messages that ask for an answer.
func (x *Index) Asked(ctx context.Context, slug string, since time.Time, limit int) ([]index.Asked, error) {
	args := []any{x.pid(slug), firstRow(since.UnixMicro()), limit}
	return list(ctx, x, askedText, args, func(scan scanner, a *index.Asked) error {
		var acked time.Time
		err := scan(&a.ID, &a.Thread, &a.From, &a.Subject, instant{&a.Created}, instant{&a.Settled}, instant{&acked})
		if a.Settled.IsZero() || !acked.IsZero() && acked.Before(a.Settled) {
			a.Settled = acked
		}
		return err
	})
}

// actsText lists the times at which an agent wrote, read or acknowledged a message.
const actsText = "SELECT at FROM (" +
	"SELECT * FROM (SELECT read_at AS at FROM deliveries INDEXED BY deliveries_read WHERE box = " + agentID +
	" AND read_at IS NOT NULL ORDER BY read_at DESC LIMIT ?3 + 0) UNION ALL " +
	"SELECT * FROM (SELECT ack_at AS at FROM deliveries INDEXED BY deliveries_acked WHERE box = " + agentID +
	" AND ack_at IS NOT NULL ORDER BY ack_at DESC LIMIT ?3 + 0) UNION ALL " +
	"SELECT * FROM (SELECT m.created AS at FROM deliveries d CROSS JOIN messages m USING (row) WHERE d.box = -" + agentID +
	" ORDER BY d.row DESC LIMIT ?3 + 0)) ORDER BY at DESC LIMIT ?3 + 0"

// Acts implements index.Index. It lists the times at which an agent was active.
func (x *Index) Acts(ctx context.Context, slug, agent string, limit int) ([]time.Time, error) {
	return list(ctx, x, actsText, []any{x.pid(slug), agent, limit}, func(scan scanner, at *time.Time) error {
		return scan(instant{at})
	})
}
