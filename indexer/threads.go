package indexer

import (
	"context"
	"encoding/json"
	"strconv"

	"mailtree/maildir/index"
)

// Threads reads messages in batches of threadsBatch. A thread may have any number of messages, so Threads reads at
// most threadsWalked messages for a page, which takes about 100 ms.
const (
	threadsBatch  = 500
	threadsWalked = 20_000
)

// filesOf is SQL for the total number of attachments in the messages o.
const filesOf = "sum(CASE WHEN instr(o.rest, '\"attachments\"') THEN json_array_length(o.rest, '$.attachments') ELSE 0 END)"

const (
	walkText = "SELECT m.row, m.created, " + threadOf + " FROM (SELECT rowid AS r FROM search WHERE search MATCH ?1 AND rowid >= ?2 " +
		"AND rowid < ?3 ORDER BY rowid DESC LIMIT ?4 + 0) h CROSS JOIN messages m ON m.row = h.r ORDER BY m.row DESC"

	matchedText = "SELECT EXISTS (SELECT 1 FROM search WHERE search MATCH ?1 AND rowid >= ?2 AND rowid < ?3)"

	// ofThread is like inThread, but selects the rows of thread t.thread.
	ofThread = "SELECT row FROM messages WHERE pid = ?1 AND thread = t.thread COLLATE NOCASE AND thread = t.thread AND thread <> '' " +
		"UNION SELECT row FROM messages WHERE pid = ?1 AND id = t.thread"

	// threadsText reads the threads of the messages at the rows ?3, in that order.
	threadsText = "WITH t AS MATERIALIZED (SELECT j.key AS place, m.row AS hit, " + threadOf + " AS thread " +
		"FROM json_each(?3) j CROSS JOIN messages m ON m.row = j.value), " +
		"g AS MATERIALIZED (SELECT t.place, t.hit, t.thread, count(*) AS messages, count(d.row) AS unread, min(o.row) AS oldest, " +
		filesOf + " AS files, " +
		"(SELECT group_concat(sender, ' ') FROM (SELECT sender FROM messages WHERE row IN (" + ofThread + ") " +
		"GROUP BY sender ORDER BY max(row) DESC)) AS people " +
		"FROM t CROSS JOIN messages o ON o.row IN (" + ofThread + ") " +
		"LEFT JOIN deliveries d ON d.box = " + agentID + " AND d.row = o.row AND d.read = 0 GROUP BY t.place) " +
		"SELECT " + messageColumns + ", substr(m.body, 1, 2048), g.thread, o.subject, g.messages, g.unread, g.files, g.people " +
		"FROM g CROSS JOIN messages m ON m.row = g.hit CROSS JOIN messages o ON o.row = g.oldest ORDER BY g.place"
)

// Threads implements index.Index. It lists threads by their newest matches.
func (x *Index) Threads(ctx context.Context, q index.ThreadsQuery) (found index.FoundThreads, err error) {
	search := index.SearchQuery{Query: q.Query, Project: q.Project, Agent: q.Agent}
	w := threadWalk{
		pid:    x.pid(q.Project),
		search: search,
		match:  expression(x.pid(q.Project), search),
		span:   spanOf(search),
		limit:  pageSize(q.Limit),
	}
	w.last = w.before
	if q.Cursor != "" {
		if w.shown, err = strconv.ParseInt(q.Cursor, 10, 64); err != nil || w.shown < 1 {
			return found, unknownCursor(q.Cursor)
		}
		w.before = min(w.before, w.shown)
	}
	found.Cut, err = x.patiently(ctx, w.match, func(ctx context.Context) error { return w.walk(ctx, x) })
	if err != nil {
		return found, err
	}
	if w.next > 0 {
		found.Next = strconv.FormatInt(w.next, 10)
	}
	rows, _ := json.Marshal(w.rows) // encoding numbers cannot fail
	found.Threads, err = list(ctx, x, threadsText, []any{w.pid, q.Agent, string(rows)}, func(scan scanner, t *index.ThreadRow) error {
		return scanMessage(q.Project, scan, &t.MessageRow, &t.Thread, &t.Title, &t.Messages, &t.Unread, &t.Files, names{&t.People})
	})
	return found, err
}

// threadWalk walks through the matches, newest first, and finds the first match of each thread.
type threadWalk struct {
	pid    int64
	search index.SearchQuery
	match  match
	span
	limit int
	shown int64 // earlier pages covered this row and the rows above it; 0 on the first page
	last  int64 // the end of the range; all matches are below this row

	rows []int64 // the newest match of each thread
	next int64   // the next page starts below this row; 0 if there is no next page
}

func (w *threadWalk) walk(ctx context.Context, x *Index) error {
	seen := map[string]bool{}
	for range threadsWalked / threadsBatch {
		read := 0
		var firsts []threadMatch
		sql, args, err := x.inUnread(ctx, w.search, walkText, []any{w.match.whole, w.from, w.before, threadsBatch})
		if err != nil {
			return err
		}
		err = x.each(ctx, sql, args, func(scan scanner) error {
			var m threadMatch
			err := scan(&m.row, &m.created, &m.thread)
			read++
			w.before = m.row
			if in := w.after <= m.created && m.created < w.until; in && !seen[m.thread] {
				seen[m.thread] = true
				firsts = append(firsts, m)
			}
			return err
		})
		if err != nil {
			return err
		}
		for _, m := range firsts {
			if earlier, err := w.onEarlierPage(ctx, x, m.thread); err != nil {
				return err
			} else if earlier {
				continue
			}
			if len(w.rows) == w.limit {
				w.next = m.row + 1
				return nil
			}
			w.rows = append(w.rows, m.row)
		}
		if read < threadsBatch {
			return nil
		}
	}
	w.next = w.before
	return nil
}

// threadMatch is a message that matches the query, with its thread.
type threadMatch struct {
	row, created int64
	thread       string
}

// onEarlierPage reports whether a thread has a match among the rows that earlier pages covered.
func (w *threadWalk) onEarlierPage(ctx context.Context, x *Index, thread string) (is bool, err error) {
	if w.shown == 0 {
		return false, nil
	}
	text := "(" + w.match.whole + ") AND " + fts{w.pid}.facet("t", thread)
	sql, args, err := x.inUnread(ctx, w.search, matchedText, []any{text, w.shown, w.last})
	if err != nil {
		return false, err
	}
	err = one(ctx, x, sql, args, &is)
	return is, err
}
