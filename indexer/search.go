package indexer

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"

	"mailtree/maildir"
)

// rankWindow is how many of the newest matches are put into order by bm25: over a million messages a common word has
// so many that ranking them all takes seconds (LIMITS.md).
const rankWindow = 2000

// Marks that FTS5 puts around terms before they become **; no body that people read has them.
const (
	markOpen  = "\x01"
	markClose = "\x02"
)

// The parts of every search: the rows found, with their snippets, and then the messages. Bodies of 256 KiB and more get
// no marked snippet: FTS5 would tokenize all of it for a line.
const (
	snippets = `snippet(search, 0, char(1), char(2), '…', 24) AS s,
		CASE WHEN (SELECT octet_length(b.body) FROM messages b WHERE b.row = search.rowid) < 262144 THEN snippet(search, 1, char(1), char(2), '…', 24) ELSE '' END AS b`
	hitMessages = "SELECT " + messageColumns + ", substr(m.body, 1, 512), h.s, h.b FROM "
)

// Search finds messages: see maildir.Index.
func (x *Index) Search(ctx context.Context, q maildir.SearchQuery) ([]maildir.Hit, error) {
	e, err := expression(x.pid(q.Project), q)
	if err != nil || e == nothing {
		return []maildir.Hit{}, err
	}
	var hits []maildir.Hit
	if q.Rank && strings.TrimSpace(q.Match) != "" {
		hits, err = x.ranked(ctx, q, e)
	} else {
		hits, err = x.newest(ctx, q, e)
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case isCode(err, sqlite3.SQLITE_ERROR):
		return nil, invalidQuery
	case err != nil:
		return nil, fmt.Errorf("search: %w", err)
	}
	return hits, nil
}

// span is the part of time that a query is about, as rows and exactly.
type span struct{ from, before, after, until int64 }

func spanOf(q maildir.SearchQuery) span {
	s := span{from: 0, before: math.MaxInt64, after: math.MinInt64, until: math.MaxInt64}
	if !q.After.IsZero() {
		s.after = ceilMicro(q.After)
		s.from = firstRow(s.after)
	}
	if !q.Before.IsZero() {
		s.until = ceilMicro(q.Before)
		s.before = firstRow(s.until)
	}
	if q.Cursor > 0 {
		s.before = min(s.before, q.Cursor)
	}
	return s
}

// newest lists matches newest first.
func (x *Index) newest(ctx context.Context, q maildir.SearchQuery, e match) ([]maildir.Hit, error) {
	s, limit := spanOf(q), pageSize(q.Limit)
	marked := snippets
	if e.user == "" { // nothing to mark: FTS5 would tokenize whole bodies for nothing
		marked = "NULL AS s, NULL AS b"
	}
	text := hitMessages + "(SELECT rowid AS r, " + marked + " FROM search WHERE search MATCH ?1 AND rowid >= ?2 AND rowid < ?3 ORDER BY rowid DESC LIMIT ?4 + 0) h CROSS JOIN messages m ON m.row = h.r WHERE m.created >= ?5 AND m.created < ?6 ORDER BY m.row DESC"
	hits, err := x.hits(ctx, q, text, e.whole, s.from, s.before, limit, s.after, s.until)
	if err != nil || q.Thread == "" {
		return hits, err
	}
	root, err := x.root(ctx, q, s)
	if err != nil || root == 0 {
		return hits, err
	}
	more, err := x.hits(ctx, q, text, e.rootless, root, root+1, 1, s.after, s.until)
	hits = append(hits, more...)
	slices.SortFunc(hits, func(a, b maildir.Hit) int { return int(min(max(b.Cursor-a.Cursor, -1), 1)) })
	hits = slices.CompactFunc(hits, func(a, b maildir.Hit) bool { return a.Cursor == b.Cursor })
	return hits[:min(limit, len(hits))], err
}

// root is the row of the message whose id is the thread, where it lies in the span; 0 where not.
func (x *Index) root(ctx context.Context, q maildir.SearchQuery, s span) (row int64, err error) {
	err = x.each(ctx, "SELECT row FROM messages WHERE pid = ? AND id = ? AND row >= ? AND row < ?", []any{x.pid(q.Project), q.Thread, s.from, s.before},
		func(scan func(...any) error) error { return scan(&row) })
	return row, err
}

// ranked puts the newest matches into order by bm25 over subject and body. The words of project and people decide who
// is in it and take no part in the score: FTS5 would count every row of each.
func (x *Index) ranked(ctx context.Context, q maildir.SearchQuery, e match) ([]maildir.Hit, error) {
	q.Cursor = 0
	s := spanOf(q)
	window, err := x.window(ctx, q, e, s)
	if err != nil || len(window) == 0 {
		return []maildir.Hit{}, err
	}
	list, err := json.Marshal(window)
	if err != nil {
		return nil, err
	}
	var rows []int64
	err = x.each(ctx, "SELECT rowid FROM search WHERE search MATCH ?1 AND rowid BETWEEN ?2 AND ?3 AND +rowid IN (SELECT value FROM json_each(?4)) ORDER BY bm25(search, 4.0, 1.0, 0.0), rowid DESC LIMIT ?5 + 0 OFFSET ?6 + 0",
		[]any{e.user, slices.Min(window), slices.Max(window), string(list), pageSize(q.Limit), max(q.Offset, 0)}, scanRows(&rows))
	if err != nil {
		return nil, err
	}
	const one = hitMessages + "(SELECT rowid AS r, " + snippets + " FROM search WHERE search MATCH ?1 AND rowid = ?2) h CROSS JOIN messages m ON m.row = h.r"
	hits := []maildir.Hit{}
	for _, row := range rows {
		h, err := x.hits(ctx, q, one, e.user, row)
		if err != nil {
			return nil, err
		}
		hits = append(hits, h...)
	}
	return hits, nil
}

// window lists the newest matches, the root of the thread among them.
func (x *Index) window(ctx context.Context, q maildir.SearchQuery, e match, s span) ([]int64, error) {
	const text = "SELECT h.r FROM (SELECT rowid AS r FROM search WHERE search MATCH ?1 AND rowid >= ?2 AND rowid < ?3 ORDER BY rowid DESC LIMIT ?4 + 0) h CROSS JOIN messages m ON m.row = h.r WHERE m.created >= ?5 AND m.created < ?6"
	var rows []int64
	if err := x.each(ctx, text, []any{e.whole, s.from, s.before, rankWindow, s.after, s.until}, scanRows(&rows)); err != nil || q.Thread == "" {
		return rows, err
	}
	root, err := x.root(ctx, q, s)
	if err == nil && root != 0 {
		err = x.each(ctx, text, []any{e.rootless, root, root + 1, 1, s.after, s.until}, scanRows(&rows))
	}
	return rows, err
}

func scanRows(rows *[]int64) func(func(...any) error) error {
	return func(scan func(...any) error) error {
		var row int64
		err := scan(&row)
		*rows = append(*rows, row)
		return err
	}
}

func (x *Index) hits(ctx context.Context, q maildir.SearchQuery, text string, args ...any) ([]maildir.Hit, error) {
	hits := []maildir.Hit{}
	err := x.each(ctx, text, args, func(scan func(...any) error) error {
		var h maildir.Hit
		var subject, body sql.NullString
		err := scanMessage(q.Project, scan, &h.MessageRow, &subject, &body)
		h.Snippet = snippet(subject.String, body.String, h.Body)
		h.Body = ""
		hits = append(hits, h)
		return err
	})
	return hits, err
}

// snippet chooses the body's where a term is in it, else the subject's, else the first line of the body.
func snippet(subject, body, text string) string {
	s := firstLine(text)
	switch {
	case strings.Contains(body, markOpen):
		s = body
	case strings.Contains(subject, markOpen):
		s = subject
	}
	return strings.NewReplacer(markOpen, "**", markClose, "**").Replace(strings.Join(strings.Fields(s), " "))
}

// snippetRunes bounds a snippet without marks.
const snippetRunes = 160

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if r := []rune(line); len(r) > snippetRunes {
		return string(r[:snippetRunes]) + "…"
	}
	return line
}
