package indexer

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"iter"
	"strings"

	"mailtree/maildir/format"
)

// table is a table in the canonical dump. Its query returns the project, the key and the row as JSON, ordered by
// project and key.
type table struct{ name, query string }

// dumped lists the tables in the dump. The queries omit row numbers, stamps, positions in the feed and the times at
// which files were read. A stray is a delivery whose agent or message is missing. A correct index has no strays.
var dumped = []table{
	{"project", "SELECT p.slug, '', json_array('project', p.slug) FROM projects p"},
	{"folder", "SELECT p.slug, o.path, json_array('folder', p.slug, o.path, o.files, o.messages) FROM folders o JOIN projects p USING (pid)"},
	{"file", "SELECT p.slug, " + filePath + ", json_array('file', p.slug, " + filePath + ", " + kindName() +
		", (SELECT name FROM agents WHERE aid = f.aid), lower(hex(f.hash)), f.valid, f.bad, f.at, f.fact) " +
		"FROM files f JOIN folders o USING (fol) JOIN projects p ON p.pid = f.pid"},
	{"agent", "SELECT p.slug, x.name, json_array('agent', p.slug, x.name, x.files, x.profile, x.program, x.model, x.task, x.inception, x.machine, " +
		"x.status, x.total, x.unread, x.archived, x.sent) FROM agents x JOIN projects p USING (pid)"},
	{"hold", "SELECT p.slug, x.name, json_array('hold', p.slug, x.name, json(x.hold)) FROM agents x JOIN projects p USING (pid) " +
		"WHERE x.hold <> ''"},
	{"message", "SELECT p.slug, m.id, json_array('message', p.slug, m.id, " + messagePath + ", m.thread, m.sender, m.tos, m.ccs, " +
		"m.created, m.importance, m.ack, m.in_reply_to, m.message_id, m.key, m.auth, m.door, json(m.rest), lower(hex(m.digest)), m.question, " +
		"m.subject, m.body) " +
		"FROM messages m JOIN projects p USING (pid)"},
	{"delivery", "SELECT p.slug, a.name || ' ' || m.id, json_array('delivery', p.slug, a.name, m.id" + copyPath + ", d.fact, " +
		"d.urgent, d.asks, d.read, d.read_at, d.ack, d.ack_at, d.archived, d.later) FROM deliveries d JOIN agents a ON a.aid = d.box " +
		"JOIN projects p ON p.pid = a.pid JOIN messages m ON m.row = d.row"},
	{"sent", "SELECT p.slug, a.name || ' ' || m.id, json_array('sent', p.slug, a.name, m.id" + copyPath + ", d.fact) " +
		"FROM deliveries d JOIN agents a ON a.aid = -d.box JOIN projects p ON p.pid = a.pid JOIN messages m ON m.row = d.row"},
	{"claim", "SELECT p.slug, c.path, json_array('claim', p.slug, c.path, c.pattern, c.agent, c.exclusive, c.reason, c.created, " +
		"c.expires, c.released, c.released_at) FROM claims c JOIN projects p USING (pid)"},
	{"problem", "SELECT p.slug, q.path, json_array('problem', p.slug, q.path, q.reason, q.line) FROM problems q " +
		"JOIN projects p USING (pid)"},
	{"stray", "SELECT '', d.row, json_array('stray', d.box, d.row) FROM deliveries d WHERE NOT EXISTS (SELECT 1 FROM agents a " +
		"WHERE a.aid = abs(d.box)) OR NOT EXISTS (SELECT 1 FROM messages m WHERE m.row = d.row)"},
}

// kindName returns SQL for the name of a file's kind.
func kindName() string {
	var b strings.Builder
	b.WriteString("CASE f.kind")
	for k := format.KindIgnored; k <= format.KindLater; k++ {
		fmt.Fprintf(&b, " WHEN %d THEN '%s'", k, k)
	}
	return b.String() + " END"
}

// Dump writes the content of the index as one JSON array per line, with the table's name first. Equal trees always
// produce equal bytes, regardless of how the trees were created. Dump reads a consistent snapshot of the index and does
// not block writers.
func (x *Index) Dump(ctx context.Context, w io.Writer) error {
	b := bufio.NewWriter(w)
	for text, err := range x.lines(ctx) {
		if err != nil {
			return fmt.Errorf("dump: %w", err)
		}
		b.WriteString(text)
		b.WriteByte('\n')
	}
	return b.Flush()
}

// lines yields the rows of the dump in order. An error ends the sequence.
func (x *Index) lines(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		conn, done, err := x.snapshot(ctx)
		if err != nil {
			yield("", err)
			return
		}
		defer done()
		for _, t := range dumped {
			if more, err := t.lines(ctx, conn, yield); err != nil || !more {
				if err != nil {
					yield("", fmt.Errorf("%s: %w", t.name, err))
				}
				return
			}
		}
	}
}

func (t *table) lines(ctx context.Context, conn *sql.Conn, yield func(string, error) bool) (more bool, err error) {
	rows, err := conn.QueryContext(ctx, t.query+" ORDER BY 1, 2")
	if err != nil {
		return false, err
	}
	defer rows.Close()
	for rows.Next() {
		var project, key, text string
		if err := rows.Scan(&project, &key, &text); err != nil {
			return false, err
		}
		if !yield(text, nil) {
			return false, nil
		}
	}
	return true, rows.Err()
}

// snapshot returns a connection that sees an unchanging state of the index until the caller calls done.
func (x *Index) snapshot(ctx context.Context) (conn *sql.Conn, done func(), err error) {
	if x.reads == x.writes { // an index that is being built has only one connection
		x.write.Lock()
		return x.w.conn, x.write.Unlock, nil
	}
	if conn, err = x.reads.Conn(ctx); err != nil {
		return nil, nil, err
	}
	if _, err = conn.ExecContext(ctx, "BEGIN"); err != nil {
		conn.Close()
		return nil, nil, err
	}
	return conn, func() {
		conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		conn.Close()
	}, nil
}
