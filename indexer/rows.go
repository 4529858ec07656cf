package indexer

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"path"
	"strings"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/question"
)

// Only the code in this file and in schema.sql changes rows. The caller of any method in this file must hold
// Index.write.

// writer contains the only connection that writes to the database, and the connection's prepared statements. The
// statements run without a deadline, so a batch is always written completely.
type writer struct {
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
	seq   int64 // position of the newest change in the feed
}

func newWriter(ctx context.Context, db *sql.DB) (*writer, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &writer{conn: conn, stmts: map[string]*sql.Stmt{}}, nil
}

func (w *writer) close() error {
	var err error
	for _, s := range w.stmts {
		err = errors.Join(err, s.Close())
	}
	return errors.Join(err, w.conn.Close())
}

func (w *writer) stmt(text string) (*sql.Stmt, error) {
	if s := w.stmts[text]; s != nil {
		return s, nil
	}
	s, err := w.conn.PrepareContext(context.Background(), text) // not the caller's context, because the statement outlives the batch
	if err == nil {
		w.stmts[text] = s
	}
	return s, err
}

func (w *writer) exec(text string, args ...any) (sql.Result, error) {
	s, err := w.stmt(text)
	if err != nil {
		return nil, err
	}
	return s.Exec(args...)
}

// do executes a statement and ignores its result.
func (w *writer) do(text string, args ...any) error {
	_, err := w.exec(text, args...)
	return err
}

// script executes statements without preparing them.
func (w *writer) script(text string) error {
	_, err := w.conn.ExecContext(context.Background(), text) // not the caller's context, because a batch must be written completely
	return err
}

// each runs a query, and calls row with a scanner for each row.
func (w *writer) each(text string, args []any, row func(scan scanner) error) error {
	s, err := w.stmt(text)
	if err != nil {
		return err
	}
	return each(context.Background(), s, args, row) // not the caller's context, because a batch must be written completely
}

// transaction runs f in a transaction, and rolls it back if f fails.
func (w *writer) transaction(f func() error) error {
	if err := w.do("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := f()
	if err == nil {
		err = w.do("COMMIT")
	}
	if err != nil {
		w.do("ROLLBACK") // fails if SQLite has already rolled back
	}
	return diskFault(err)
}

// project returns the number of a project, and creates its row if necessary. If the size limit for message files has
// changed, project marks all of the project's files as stale.
func (w *writer) project(slug string, maxFile int64) (pid int64, err error) {
	err = w.transaction(func() error {
		if err := w.do("INSERT INTO projects (slug, max_file) VALUES (?, ?) ON CONFLICT DO NOTHING", slug, maxFile); err != nil {
			return err
		}
		var limit int64
		if err := w.each("SELECT pid, max_file FROM projects WHERE slug = ?", []any{slug},
			func(scan scanner) error { return scan(&pid, &limit) }); err != nil || limit == maxFile {
			return err
		}
		if err := w.do("UPDATE files SET stamp = CASE WHEN hash IS NULL THEN 0 ELSE stamp & ~1 END WHERE pid = ?", pid); err != nil {
			return err
		}
		return w.do("UPDATE projects SET max_file = ? WHERE pid = ?", maxFile, pid)
	})
	return pid, err
}

func (w *writer) projects() (map[string]int64, error) {
	all := map[string]int64{}
	err := w.each("SELECT slug, pid FROM projects", nil, func(scan scanner) error {
		var slug string
		var pid int64
		err := scan(&slug, &pid)
		all[slug] = pid
		return err
	})
	return all, err
}

func (w *writer) dropProject(pid int64) error {
	for _, q := range []string{
		"INSERT INTO search (search, rowid, subject, body, facets) SELECT 'delete', row, subject, body, facets FROM messages " +
			"WHERE pid = ? ORDER BY row",
		"DELETE FROM deliveries WHERE box IN (SELECT aid FROM agents WHERE pid = ?1 UNION ALL SELECT -aid FROM agents WHERE pid = ?1)",
		"DELETE FROM messages WHERE pid = ?", "DELETE FROM folders WHERE pid = ?", "DELETE FROM agents WHERE pid = ?",
		"DELETE FROM claims WHERE pid = ?",
		"DELETE FROM problems WHERE pid = ?", "DELETE FROM files WHERE pid = ?", "DELETE FROM changes WHERE pid = ?",
		"DELETE FROM projects WHERE pid = ?",
	} {
		if err := w.do(q, pid); err != nil {
			return err
		}
	}
	return nil
}

// startChanges continues the numbering of changes from the last change in the table. If the table is empty, the
// numbering starts above the numbers of any earlier index, so that readers with a position in the earlier feed notice
// the difference. The first number is the time in microseconds since 1970, because time advances faster than files can
// change.
func (w *writer) startChanges(now time.Time) error {
	return w.each("SELECT ifnull(max(seq), ?) FROM changes", []any{now.UnixMicro()},
		func(scan scanner) error { return scan(&w.seq) })
}

// keepChanges is the number of changes that the index keeps. The index deletes older changes after every trimEvery
// new ones.
const (
	keepChanges = 1_000_000
	trimEvery   = 4096
)

// removedProject is the project number in the change that records the removal of a project. The project's row is
// deleted by then, so the change contains the slug in place of an agent.
const removedProject = 0

// addChanges records changes and assigns each one its number in the feed.
func (w *writer) addChanges(pid int64, all []index.Change) error {
	before := w.seq
	err := w.insertAll("INSERT OR FAIL INTO changes (seq, pid, path, kind, op, agent, thread, at) VALUES ", "", 8, len(all),
		func(args []any, i int) []any {
			c := &all[i]
			w.seq++
			c.Seq = w.seq
			return append(args, c.Seq, pid, c.Path, int(c.Kind), c.Op, c.Agent, c.Thread, c.At.UnixMicro())
		})
	if err != nil || before/trimEvery == w.seq/trimEvery {
		return err
	}
	return w.do("DELETE FROM changes WHERE seq <= ?", w.seq-keepChanges)
}

// putFiles inserts or replaces the rows of files. The function agent returns the number of the agent whose existence
// a file implies, or 0.
func (w *writer) putFiles(pid int64, all []*file, agent func(*file) int64) error {
	return w.insertAll("INSERT OR FAIL INTO files (pid, name, fol, kind, aid, stamp, hash, valid, bad, at, fact) VALUES ",
		" ON CONFLICT DO UPDATE SET stamp = excluded.stamp, hash = excluded.hash, valid = excluded.valid, bad = excluded.bad, "+
			"at = excluded.at, fact = excluded.fact", 11, len(all),
		func(args []any, i int) []any {
			f := all[i]
			return append(args, pid, path.Base(f.path), f.fol, int(f.kind), agent(f), f.stamp, nullBlob(f.hash), f.valid,
				f.reason != "", micros(f.at), f.fact)
		})
}

// insertAll inserts n rows with the given number of columns. Each statement inserts up to sixteen rows, because the
// call itself accounts for half of the cost of a small row. The function row appends a row's values to args. The
// statement ends with clause.
//
// The statement must use OR FAIL, which keeps the rows inserted before an error. The transaction then rolls them
// back. With the default, ABORT, a statement with several rows creates a savepoint, at which FTS5 flushes its buffer.
func (w *writer) insertAll(text, clause string, columns, n int, row func(args []any, i int) []any) error {
	args := make([]any, 0, 16*columns)
	for i := 0; i < n; {
		to := i + 1
		for _, size := range []int{16, 4} {
			if i+size <= n {
				to = i + size
				break
			}
		}
		args = args[:0]
		for k := i; k < to; k++ {
			args = row(args, k)
		}
		one := "(" + strings.Repeat("?, ", columns-1) + "?)"
		if err := w.do(text+strings.Repeat(one+", ", to-i-1)+one+clause, args...); err != nil {
			return err
		}
		i = to
	}
	return nil
}

func (w *writer) deleteFile(pid int64, f *file) error {
	return w.do("DELETE FROM files WHERE pid = ? AND name = ? AND fol = ?", pid, path.Base(f.path), f.fol)
}

func (w *writer) insertProblem(pid int64, path, reason string, line int) error {
	return w.do("INSERT OR REPLACE INTO problems (pid, path, reason, line) VALUES (?, ?, ?, ?)", pid, path, reason, line)
}

func (w *writer) deleteProblems(pid int64, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	return w.do("DELETE FROM problems WHERE pid = ? AND path IN (SELECT "+given+" FROM json_each(?) j)", pid, listed(paths))
}

func (w *writer) setProfile(aid int64, p *format.Profile) error {
	if p == nil {
		return w.do("UPDATE agents SET profile = 0, program = '', model = '', task = '', inception = NULL, machine = '' WHERE aid = ?", aid)
	}
	return w.do("UPDATE agents SET profile = 1, program = ?, model = ?, task = ?, inception = ?, machine = ? WHERE aid = ?",
		p.Program, p.Model, p.Task, micros(p.Inception), p.Machine, aid)
}

func (w *writer) setStatus(aid int64, status string) error {
	return w.do("UPDATE agents SET status = ? WHERE aid = ?", status, aid)
}

func (w *writer) setHold(aid int64, h *format.Hold) error {
	text := ""
	if h != nil {
		text = string(format.FormatHold(*h, nil))
	}
	return w.do("UPDATE agents SET hold = ? WHERE aid = ?", text, aid)
}

// insertMessage inserts m at row. It returns false if the row number is already in use.
func (w *writer) insertMessage(pid, row int64, m *format.Message, fol int64, facets string) (bool, error) {
	res, err := w.exec("INSERT INTO messages (row, pid, id, thread, sender, tos, ccs, created, importance, ack, in_reply_to, "+
		"message_id, key, auth, door, rest, digest, fol, facets, question, subject, body) "+
		"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (row) DO NOTHING",
		row, pid, m.ID, m.ThreadID, m.From, joinNames(m.To), joinNames(m.CC), m.Created.UnixMicro(), m.Importance, m.AckRequired,
		m.InReplyTo, m.MessageID, m.Key, m.Auth, m.Door, m.Rest(inColumns), nullBlob(m.Digest), fol, facets,
		question.Asks(m.Subject, m.Body, m.AckRequired), m.Subject, m.Body)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

func (w *writer) deleteMessage(row int64) error {
	return w.do("DELETE FROM messages WHERE row = ?", row)
}

func (w *writer) moveSource(row, fol int64) error {
	return w.do("UPDATE messages SET fol = ? WHERE row = ?", fol, row)
}

// searchable adds a message to the full-text index. Callers add rows in ascending order, because FTS5 flushes its
// buffer whenever a row number is lower than the previous one. Each statement adds only one row, because a statement
// with several rows creates a savepoint, which also flushes the buffer.
func (w *writer) searchable(row int64, m *format.Message, facets string) error {
	return w.do("INSERT INTO search (rowid, subject, body, facets) VALUES (?, ?, ?, ?)", row, m.Subject, m.Body, facets)
}

// unsearchable deletes messages from the full-text index. The table messages must still contain the indexed text.
func (w *writer) unsearchable(rows []int64) error {
	if len(rows) == 0 {
		return nil
	}
	list, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	return w.do("INSERT INTO search (search, rowid, subject, body, facets) SELECT 'delete', m.row, m.subject, m.body, m.facets "+
		"FROM json_each(?) j CROSS JOIN messages m ON m.row = j.value", string(list))
}

// delivery is a row of deliveries. It represents a message in an agent's inbox, or the sender's copy.
type delivery struct {
	aid  int64
	of   *letter
	box  box
	sent bool
}

// insertDeliveries inserts deliveries. A sender's copy has the agent's negated number as its box.
func (w *writer) insertDeliveries(all []delivery) error {
	return w.insertAll("INSERT OR FAIL INTO deliveries VALUES ", "", 12, len(all), func(args []any, i int) []any {
		d := all[i]
		if t := d.of; d.sent {
			const no, yes = false, true
			return append(args, -d.aid, t.row, t.outbox.fol, t.outbox.fact, no, no, yes, nil, no, nil, no, nil)
		}
		read, readAt := marked(d.box.read)
		ack, ackAt := marked(d.box.ack)
		_, later := marked(d.box.later)
		return append(args, d.aid, d.of.row, d.box.copy.fol, d.box.copy.fact, d.of.urgent, d.of.asks, read, readAt, ack, ackAt,
			d.box.archived != nil, later)
	})
}

// marked reports whether a mark exists, and returns its time.
func marked(mark *file) (is bool, at any) {
	if mark == nil {
		return false, nil
	}
	return true, micros(mark.at)
}

// deleteDeliveries deletes the rows of a message in an agent's inbox and outbox.
func (w *writer) deleteDeliveries(aid, row int64) error {
	return w.do("DELETE FROM deliveries WHERE box IN (?1, -?1) AND row = ?2", aid, row)
}

func (w *writer) putClaim(pid int64, path string, c *format.Claim) error {
	return w.do("INSERT OR REPLACE INTO claims (pid, path, pattern, agent, exclusive, reason, created, expires, released, released_at) "+
		"VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, NULL)",
		pid, path, c.Pattern, c.Agent, c.Exclusive, c.Reason, c.Created.UnixMicro(), c.Expires.UnixMicro())
}

func (w *writer) deleteClaim(pid int64, path string) error {
	return w.do("DELETE FROM claims WHERE pid = ? AND path = ?", pid, path)
}

// releaseClaim updates a claim's released and released_at from the row of its mark in the table files.
func (w *writer) releaseClaim(pid int64, claim string) error {
	mark := format.ReleasedMark(claim)
	return w.do("UPDATE claims SET (released, released_at) = (SELECT count(*), max(f.at) FROM files f WHERE f.pid = ?1 AND f.name = ?4 "+
		"AND f.fol = (SELECT fol FROM folders WHERE pid = ?1 AND path = ?3) AND f.valid) WHERE pid = ?1 AND path = ?2",
		pid, claim, path.Dir(mark), path.Base(mark))
}

// bufferSearch sets the size, in bytes, of the buffer that FTS5 fills before it writes. Rebuild uses a large buffer.
// Otherwise, the size is SQLite's default, 1 MiB.
func (w *writer) bufferSearch(bytes int) error {
	return w.do("INSERT INTO search (search, rank) VALUES ('hashsize', ?)", bytes)
}

// checkSearch compares the full-text index with the table messages. With rank 1, FTS5 also finds stale rows.
func (w *writer) checkSearch() error {
	return w.do("INSERT INTO search (search, rank) VALUES ('integrity-check', 1)")
}

func nullBlob(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}
