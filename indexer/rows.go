package indexer

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/format"
)

// This file is the only one besides schema.sql that changes rows. Every method needs Index.write.

// writer is the one connection that writes, with its statements. Its context never ends, so that it
// writes a batch whole.
type writer struct {
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
}

func newWriter(ctx context.Context, db *sql.DB) (*writer, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &writer{conn, map[string]*sql.Stmt{}}, nil
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
	s, err := w.conn.PrepareContext(context.Background(), text) // no caller's: it outlasts the batch
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

// do is exec without a result.
func (w *writer) do(text string, args ...any) error {
	_, err := w.exec(text, args...)
	return err
}

// script runs statements once, unprepared.
func (w *writer) script(text string) error {
	_, err := w.conn.ExecContext(context.Background(), text) // no caller's: see writer
	return err
}

// each calls row for every row of a query.
func (w *writer) each(text string, args []any, row func(scan func(...any) error) error) error {
	s, err := w.stmt(text)
	if err != nil {
		return err
	}
	return each(context.Background(), s, args, row) // no caller's: see writer
}

// transaction runs f in one; an error undoes all.
func (w *writer) transaction(f func() error) error {
	if err := w.do("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := f()
	if err == nil {
		err = w.do("COMMIT")
	}
	if err != nil {
		w.do("ROLLBACK") // fails where SQLite has rolled back by itself
	}
	return diskFault(err)
}

// project returns the number of a project, and creates one. A changed limit of message files makes
// every file stale.
func (w *writer) project(slug string, maxFile int64) (pid int64, err error) {
	err = w.transaction(func() error {
		if err := w.do("INSERT INTO projects (slug, max_file) VALUES (?, ?) ON CONFLICT DO NOTHING", slug, maxFile); err != nil {
			return err
		}
		var limit int64
		if err := w.each("SELECT pid, max_file FROM projects WHERE slug = ?", []any{slug},
			func(scan func(...any) error) error { return scan(&pid, &limit) }); err != nil || limit == maxFile {
			return err
		}
		if err := w.do("UPDATE files SET read_at = 0, size = CASE WHEN hash IS NULL THEN -1 ELSE size END WHERE pid = ?", pid); err != nil {
			return err
		}
		return w.do("UPDATE projects SET max_file = ? WHERE pid = ?", maxFile, pid)
	})
	return pid, err
}

func (w *writer) projects() (map[string]int64, error) {
	all := map[string]int64{}
	err := w.each("SELECT slug, pid FROM projects", nil, func(scan func(...any) error) error {
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
		"DELETE FROM deliveries WHERE aid IN (SELECT aid FROM agents WHERE pid = ?)",
		"DELETE FROM messages WHERE pid = ?", "DELETE FROM agents WHERE pid = ?", "DELETE FROM claims WHERE pid = ?",
		"DELETE FROM problems WHERE pid = ?", "DELETE FROM files WHERE pid = ?", "DELETE FROM changes WHERE pid = ?",
		"DELETE FROM projects WHERE pid = ?",
	} {
		if err := w.do(q, pid); err != nil {
			return err
		}
	}
	return nil
}

// startChanges makes the marks of a new index begin above those of any earlier one, so that a
// reader of the feed that kept its mark misses nothing. Microseconds since 1970 do: they grow
// faster than anybody can change files.
func (w *writer) startChanges(now time.Time) error {
	return w.do("INSERT INTO sqlite_sequence (name, seq) VALUES ('changes', ?)", now.UnixMicro())
}

// keepChanges is how many changes the index keeps; it deletes older ones after every trimEvery of
// them.
const (
	keepChanges = 1_000_000
	trimEvery   = 4096
)

// removedProject stands for the number of a project in the change that tells of its removal: there
// is no row with its slug any more, so the change has the slug as its agent.
const removedProject = 0

// addChanges records changes and gives each its mark.
func (w *writer) addChanges(pid int64, all []maildir.Change) error {
	return w.insertAll("INSERT OR FAIL INTO changes (pid, path, kind, op, agent, msgid, thread, at) VALUES ", 8, len(all),
		func(args []any, i int) []any {
			c := &all[i]
			return append(args, pid, c.Path, int(c.Kind), c.Op, c.Agent, c.ID, c.Thread, c.At.UnixMicro())
		}, func(from, to int, last int64) error {
			trim := false
			for i := from; i < to; i++ {
				all[i].Seq = last - int64(to-1-i)
				trim = trim || all[i].Seq%trimEvery == 0
			}
			if !trim {
				return nil
			}
			return w.do("DELETE FROM changes WHERE seq <= ?", last-keepChanges)
		})
}

// insertFiles stores files that have no rows yet.
func (w *writer) insertFiles(pid int64, all []*file) error {
	return w.insertAll("INSERT OR FAIL INTO files (pid, path, kind, agent, msgid, size, mtime, ctime, inode, read_at, hash, valid, bad, "+
		"at, fact) VALUES ", 15, len(all), func(args []any, i int) []any {
		f := all[i]
		return append(args, pid, f.path, int(f.kind), f.agent, f.id, f.stat.Size, f.stat.MTime, f.stat.CTime, int64(f.stat.Inode),
			f.readAt, nullBlob(f.hash), f.valid, f.reason != "", orNull(f.at), f.fact)
	}, func(int, int, int64) error { return nil })
}

// insertAll inserts n rows of so many columns, up to sixteen by one statement: half the cost of a
// small row is the call. row appends the values of a row to args. insertAll calls done with the
// rows of each statement and the number of the last one.
//
// text says OR FAIL, which keeps the rows inserted before a fault; the transaction rolls them back.
// With the default, ABORT, a statement of several rows takes a savepoint, at which FTS5 flushes its
// buffer.
func (w *writer) insertAll(text string, columns, n int, row func(args []any, i int) []any,
	done func(from, to int, last int64) error) error {
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
		res, err := w.exec(text+strings.Repeat(one+", ", to-i-1)+one, args...)
		if err != nil {
			return err
		}
		last, err := res.LastInsertId()
		if err != nil {
			return err
		}
		if err := done(i, to, last); err != nil {
			return err
		}
		i = to
	}
	return nil
}

func (w *writer) updateFile(fid int64, f *file) error {
	return w.do("UPDATE files SET kind = ?, agent = ?, msgid = ?, size = ?, mtime = ?, ctime = ?, inode = ?, read_at = ?, hash = ?, "+
		"valid = ?, bad = ?, at = ?, fact = ? WHERE fid = ?",
		int(f.kind), f.agent, f.id, f.stat.Size, f.stat.MTime, f.stat.CTime, int64(f.stat.Inode), f.readAt,
		nullBlob(f.hash), f.valid, f.reason != "", orNull(f.at), f.fact, fid)
}

// restat stores the new stamps of an unchanged file.
func (w *writer) restat(fid int64, f *file) error {
	return w.do("UPDATE files SET size = ?, mtime = ?, ctime = ?, inode = ?, read_at = ? WHERE fid = ?",
		f.stat.Size, f.stat.MTime, f.stat.CTime, int64(f.stat.Inode), f.readAt, fid)
}

func (w *writer) deleteFile(fid int64) error { return w.do("DELETE FROM files WHERE fid = ?", fid) }

func (w *writer) insertProblem(pid int64, path, reason string, line int) error {
	return w.do("INSERT OR REPLACE INTO problems (pid, path, reason, line) VALUES (?, ?, ?, ?)", pid, path, reason, line)
}

func (w *writer) deleteProblem(pid int64, path string) error {
	return w.do("DELETE FROM problems WHERE pid = ? AND path = ?", pid, path)
}

func (w *writer) insertAgent(pid int64, name string) (int64, error) {
	res, err := w.exec("INSERT INTO agents (pid, name) VALUES (?, ?)", pid, name)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// countAgent adds to an agent's counts.
func (w *writer) countAgent(aid int64, d *tally) error {
	return w.do("UPDATE agents SET files = files + ?, total = total + ?, unread = unread + ?, archived = archived + ?, sent = sent + ? "+
		"WHERE aid = ?",
		d.files, d.total, d.unread, d.archived, d.sent, aid)
}

// deleteAgent deletes an agent that has no file left.
func (w *writer) deleteAgent(aid int64) error {
	return w.do("DELETE FROM agents WHERE aid = ? AND files = 0", aid)
}

func (w *writer) setProfile(aid int64, p *format.Profile) error {
	if p == nil {
		return w.do("UPDATE agents SET profile = 0, program = '', model = '', task = '', inception = NULL WHERE aid = ?", aid)
	}
	return w.do("UPDATE agents SET profile = 1, program = ?, model = ?, task = ?, inception = ? WHERE aid = ?",
		p.Program, p.Model, p.Task, orNull(micros(p.Inception)), aid)
}

func (w *writer) setStatus(aid int64, status string) error {
	return w.do("UPDATE agents SET status = ? WHERE aid = ?", status, aid)
}

// insertMessage stores m at row; false when that row is taken.
func (w *writer) insertMessage(pid, row int64, m *format.Message, src, facets string) (bool, error) {
	attachments, err := encodeList(m.Attachments)
	if err != nil {
		return false, fmt.Errorf("attachments of %s: %w", m.ID, err)
	}
	refs, err := encodeList(m.References)
	if err != nil {
		return false, fmt.Errorf("references of %s: %w", m.ID, err)
	}
	res, err := w.exec("INSERT INTO messages (row, pid, id, thread, human, sender, tos, ccs, created, importance, ack, in_reply_to, "+
		"refs, message_id, media_type, attachments, html, key, auth, door, terminal, seal, digest, src, facets, subject, body) "+
		"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (row) DO NOTHING",
		row, pid, m.ID, m.ThreadID, m.Project, m.From, joinNames(m.To), joinNames(m.CC), m.Created.UnixMicro(),
		m.Importance, m.AckRequired, m.InReplyTo, refs, m.MessageID, m.MediaType, attachments, m.HTML, m.Key, m.Auth, m.Door, m.Terminal,
		m.Seal, nullBlob(m.Digest), src, facets, m.Subject, m.Body)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

func (w *writer) deleteMessage(row int64) error {
	return w.do("DELETE FROM messages WHERE row = ?", row)
}

func (w *writer) moveSource(row int64, src string) error {
	return w.do("UPDATE messages SET src = ? WHERE row = ?", src, row)
}

// searchable adds a message to the full-text index. Callers add rows in ascending order, because
// FTS5 flushes its buffer at every step back, and one by one, because a statement of several rows
// takes a savepoint, which flushes it too.
func (w *writer) searchable(row int64, m *format.Message, facets string) error {
	return w.do("INSERT INTO search (rowid, subject, body, facets) VALUES (?, ?, ?, ?)", row, m.Subject, m.Body, facets)
}

// unsearchable deletes messages from the full-text index. Their rows must still be as they were
// when they were added.
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

func (w *writer) countMessages(pid int64, n int) error {
	return w.do("UPDATE projects SET messages = messages + ? WHERE pid = ?", n, pid)
}

func (w *writer) putDelivery(aid int64, t *letter, b box) error {
	read, ack := b.read != nil, b.ack != nil
	var readAt, ackAt any
	if read {
		readAt = orNull(b.read.at)
	}
	if ack {
		ackAt = orNull(b.ack.at)
	}
	return w.do("INSERT OR REPLACE INTO deliveries (aid, row, path, kind, urgent, asks, read, read_at, ack, ack_at, archived) "+
		"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		aid, t.row, b.copy.path, b.copy.fact, t.urgent, t.asks, read, readAt, ack, ackAt, b.archived != nil)
}

func (w *writer) deleteDelivery(aid, row int64) error {
	return w.do("DELETE FROM deliveries WHERE aid = ? AND row = ?", aid, row)
}

func (w *writer) putClaim(pid int64, path string, c *format.Claim) error {
	return w.do("INSERT OR REPLACE INTO claims (pid, path, pattern, agent, exclusive, reason, created, expires, released, released_at) "+
		"VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, NULL)",
		pid, path, c.Pattern, c.Agent, c.Exclusive, c.Reason, c.Created.UnixMicro(), c.Expires.UnixMicro())
}

func (w *writer) deleteClaim(pid int64, path string) error {
	return w.do("DELETE FROM claims WHERE pid = ? AND path = ?", pid, path)
}

// releaseClaim copies the release of a claim from the row of its mark in files.
func (w *writer) releaseClaim(pid int64, path string) error {
	return w.do("UPDATE claims SET (released, released_at) = (SELECT count(*), max(f.at) FROM files f WHERE f.pid = ?1 AND f.path = ?3 "+
		"AND f.valid) WHERE pid = ?1 AND path = ?2",
		pid, path, format.ReleasedMark(path))
}

// bufferSearch sets how many bytes FTS5 collects before it writes them: many for a load, SQLite's
// default of 1 MiB for a server.
func (w *writer) bufferSearch(bytes int) error {
	return w.do("INSERT INTO search (search, rank) VALUES ('hashsize', ?)", bytes)
}

// checkSearch compares the full-text index with the messages; rank 1 finds stale rows too.
func (w *writer) checkSearch() error {
	return w.do("INSERT INTO search (search, rank) VALUES ('integrity-check', 1)")
}

func nullBlob(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}
