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
	"mailtree/maildir/format"
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
	noSnippets  = "NULL AS s, NULL AS b"
	remarkText  = "SELECT " + snippets + " FROM search WHERE search MATCH ?1 AND rowid = ?2"
	hitMessages = "SELECT " + messageColumns + withShortBody + ", h.s, h.b FROM "
)

// Bodies of longBody bytes and more are looked at no further than their beginning, where a line is shown of them.
const (
	longBody  = 262144
	beginning = 1024
)

// The queries of a ranked search.
const (
	windowText = "SELECT h.r FROM (SELECT rowid AS r FROM search WHERE search MATCH ?1 AND rowid >= ?2 AND rowid < ?3 ORDER BY rowid DESC LIMIT ?4 + 0) h CROSS JOIN messages m ON m.row = h.r WHERE m.created >= ?5 AND m.created < ?6"
	rootText   = "SELECT row FROM messages WHERE pid = ? AND id = ? AND row >= ? AND row < ?"
	rankText   = "SELECT rowid FROM search WHERE search MATCH ?1 AND rowid BETWEEN ?2 AND ?3 AND +rowid IN (SELECT value FROM json_each(?4)) ORDER BY bm25(search, 4.0, 1.0, 0.0), rowid DESC LIMIT ?5 + 0 OFFSET ?6 + 0"
)

// Search finds messages: see maildir.Index.
func (x *Index) Search(ctx context.Context, q maildir.SearchQuery) ([]maildir.Hit, error) {
	e, err := expression(x.pid(q.Project), q)
	if err != nil || e.none() {
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
	if e.cut != "" && q.Thread == "" {
		if hits, ok, err := x.sift(ctx, q, e); ok || err != nil {
			return hits, err
		}
	}
	s, limit := spanOf(q), pageSize(q.Limit)
	text := hitMessages + "(SELECT rowid AS r, " + e.snippets() + " FROM search WHERE search MATCH ?1 AND rowid >= ?2 AND rowid < ?3 ORDER BY rowid DESC LIMIT ?4 + 0) h CROSS JOIN messages m ON m.row = h.r WHERE m.created >= ?5 AND m.created < ?6 ORDER BY m.row DESC"
	hits, err := hitsOf(ctx, x, q, e, text, e.whole, s.from, s.before, limit, s.after, s.until)
	if err != nil || q.Thread == "" {
		return hits, err
	}
	root, err := x.root(ctx, x, q, s)
	if err != nil || root == 0 {
		return hits, err
	}
	more, err := hitsOf(ctx, x, q, e, text, e.rootless, root, root+1, 1, s.after, s.until)
	hits = append(hits, more...)
	slices.SortFunc(hits, func(a, b maildir.Hit) int { return int(min(max(b.Cursor-a.Cursor, -1), 1)) })
	hits = slices.CompactFunc(hits, func(a, b maildir.Hit) bool { return a.Cursor == b.Cursor })
	return hits[:min(limit, len(hits))], err
}

// root is the row of the message whose id is the thread, where it lies in the span; 0 where not.
func (x *Index) root(ctx context.Context, from reader, q maildir.SearchQuery, s span) (row int64, err error) {
	err = from.each(ctx, rootText, []any{x.pid(q.Project), q.Thread, s.from, s.before},
		func(scan func(...any) error) error { return scan(&row) })
	return row, err
}

// ranked puts the newest matches into order by bm25 over subject and body. The words of project and people decide who
// is in it and take no part in the score: FTS5 would count every row of each.
func (x *Index) ranked(ctx context.Context, q maildir.SearchQuery, e match) ([]maildir.Hit, error) {
	q.Cursor = 0
	s := spanOf(q)
	one := hitMessages + "(SELECT rowid AS r, " + e.snippets() + " FROM search WHERE search MATCH ?1 AND rowid = ?2) h CROSS JOIN messages m ON m.row = h.r"
	v, err := x.view(ctx, windowText, rootText, rankText, one, remarkText, bodyPiece) // a row of the window that is gone later would be missing on the page
	if err != nil {
		return nil, err
	}
	defer v.close()
	window, err := x.window(ctx, v, q, e, s)
	if err != nil || len(window) == 0 {
		return []maildir.Hit{}, err
	}
	list, err := json.Marshal(window)
	if err != nil {
		return nil, err
	}
	var rows []int64
	err = v.each(ctx, rankText,
		[]any{e.user, slices.Min(window), slices.Max(window), string(list), pageSize(q.Limit), max(q.Offset, 0)}, scanRows(&rows))
	if err != nil {
		return nil, err
	}
	hits := []maildir.Hit{}
	for _, row := range rows {
		h, err := hitsOf(ctx, v, q, e, one, e.user, row)
		if err != nil {
			return nil, err
		}
		hits = append(hits, h...)
	}
	return hits, nil
}

// window lists the newest matches, the root of the thread among them.
func (x *Index) window(ctx context.Context, from reader, q maildir.SearchQuery, e match, s span) ([]int64, error) {
	var rows []int64
	if err := from.each(ctx, windowText, []any{e.whole, s.from, s.before, rankWindow, s.after, s.until}, scanRows(&rows)); err != nil || q.Thread == "" {
		return rows, err
	}
	root, err := x.root(ctx, from, q, s)
	if err == nil && root != 0 {
		err = from.each(ctx, windowText, []any{e.rootless, root, root + 1, 1, s.after, s.until}, scanRows(&rows))
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

// hitsOf reads messages with their snippets: FTS5's, or where it was not asked for them those made here.
func hitsOf(ctx context.Context, from reader, q maildir.SearchQuery, e match, text string, args ...any) ([]maildir.Hit, error) {
	type marks struct{ subject, body sql.NullString }
	hits, marked := []maildir.Hit{}, []marks{}
	err := from.each(ctx, text, args, func(scan func(...any) error) error {
		var h maildir.Hit
		var m marks
		err := scanMessage(q.Project, scan, &h.MessageRow, &m.subject, &m.body)
		hits, marked = append(hits, h), append(marked, m)
		return err
	})
	if err != nil {
		return hits, err
	}
	var unmarked []int
	for i := range hits { // a body at a time: SQLite would put a page of them into order
		h, subject, body := &hits[i], marked[i].subject, marked[i].body
		if err := searchedBody(ctx, from, &h.MessageRow); err != nil {
			return hits, err
		}
		if e.terms.plain {
			body.String = e.terms.marked(h.Body)
			if body.String == "" {
				subject.String = e.terms.marked(h.Subject)
			}
			if subject.String == "" && body.String == "" {
				unmarked = append(unmarked, i)
			}
		}
		h.Snippet = snippet(subject.String, body.String, h.Body)
		h.Body = ""
	}
	return hits, remark(ctx, from, e, hits, unmarked)
}

// searchedBody reads as much of a body that did not come with its row as a search looks at.
func searchedBody(ctx context.Context, from reader, m *maildir.MessageRow) (err error) {
	if int64(len(m.Body)) == m.BodyBytes {
		return nil
	}
	n := m.BodyBytes
	if n >= longBody {
		n = beginning
	}
	m.Body, err = readBody(ctx, from, m.Cursor, 0, n)
	return err
}

// remark has FTS5 mark those hits in which only it finds the words, for it knows of accents. Not of prefixes: it would find
// all of their words again for each hit.
func remark(ctx context.Context, from reader, e match, hits []maildir.Hit, unmarked []int) error {
	for _, m := range e.terms.list {
		if m.prefix {
			return nil
		}
	}
	for _, i := range unmarked {
		err := from.each(ctx, remarkText, []any{e.user, hits[i].Cursor}, func(scan func(...any) error) error {
			var subject, body sql.NullString
			err := scan(&subject, &body)
			if marked := snippet(subject.String, body.String, ""); marked != "" {
				hits[i].Snippet = marked
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// snippets is what to ask FTS5 for: its snippets where none can be made here, and there is something to mark.
func (m match) snippets() string {
	if m.user == "" || m.terms.plain {
		return noSnippets
	}
	return snippets
}

// Of a sift: messages read at first and at once, after how many it may give up, and how many it would read for a page.
const (
	siftFirst = 32
	siftMost  = 256
	siftTrial = 128
	siftLimit = 2048
)

// sift answers a query with long prefixes newest first: it reads what matches the cut prefixes and keeps what has the whole
// ones. ok is false where it would read too much, because few messages have the word but many its beginning: then FTS5 has
// little to merge and is fast; and where only FTS5 knows, because of accents.
func (x *Index) sift(ctx context.Context, q maildir.SearchQuery, e match) (hits []maildir.Hit, ok bool, err error) {
	const text = "SELECT " + messageColumns + withShortBody + " FROM (SELECT rowid AS r FROM search WHERE search MATCH ?1 AND rowid >= ?2 AND rowid < ?3 ORDER BY rowid DESC LIMIT ?4 + 0) h CROSS JOIN messages m ON m.row = h.r ORDER BY m.row DESC"
	s, limit, read := spanOf(q), pageSize(q.Limit), 0
	hits = []maildir.Hit{}
	for n := siftFirst; ; n = min(2*n, siftMost) {
		page, err := messages(ctx, x, q.Project, text, e.cut, s.from, s.before, n)
		if err != nil {
			return nil, false, err
		}
		for i := range page {
			m := page[i]
			if int64(len(m.Body)) < m.BodyBytes { // a body at a time
				if m.Body, err = readBody(ctx, x, m.Cursor, 0, m.BodyBytes); err != nil {
					return nil, false, err
				}
			}
			has, sure := e.terms.in(&m.Message)
			if !sure {
				return nil, false, nil
			}
			if us := m.Created.UnixMicro(); !has || us < s.after || us >= s.until {
				continue
			}
			h := maildir.Hit{MessageRow: m, Snippet: e.terms.snippet(&m.Message)}
			h.Body = ""
			if hits = append(hits, h); len(hits) == limit {
				return hits, true, nil
			}
		}
		if read += len(page); len(page) < n {
			return hits, true, nil
		}
		if read >= siftTrial && len(hits)*siftLimit < read*limit {
			return nil, false, nil
		}
		s.before = page[len(page)-1].Cursor
	}
}

// in reports whether a message that has the cut prefixes has the whole ones.
func (t *terms) in(m *format.Message) (has, sure bool) {
	for _, term := range t.list {
		if keptPrefix(term) == 0 {
			continue
		}
		has, sure := hasPrefix(m.Body, term.words[0])
		if !has {
			body := sure
			has, sure = hasPrefix(m.Subject, term.words[0])
			sure = has || sure && body
		}
		if !has || !sure {
			return has, sure
		}
	}
	return true, true
}

// snippet is that of a message with all of the terms.
func (t *terms) snippet(m *format.Message) string {
	body, subject := t.marked(m.Body), ""
	if body == "" {
		subject = t.marked(m.Subject)
	}
	return snippet(subject, body, m.Body)
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
	s = strings.Join(strings.Fields(s), " ")
	return strings.ReplaceAll(strings.ReplaceAll(s, markOpen, "**"), markClose, "**")
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
