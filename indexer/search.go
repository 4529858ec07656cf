package indexer

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"mailtree/maildir"
	"mailtree/maildir/refusal"
)

// rankWindow is how many of the newest matches bm25 puts into order: over a million messages a
// common word has so many that ranking them all takes seconds. Each takes some 15 µs, and a view of
// the page is to take 30 ms.
const rankWindow = 1000

// FTS5 marks terms with these bytes, which no body that people read has; oneLine writes ** for
// them.
const (
	markOpen  = "\x01"
	markClose = "\x02"
)

// The parts of a query for hits: h lists the rows found, with snippets of their subject and body,
// and hitColumns chooses the body's where it marks a term, else the subject's, else the beginning
// of the body.
//
// FTS5 compares each place of a term in a body with every other place: the snippet of a body that
// repeats one word for 256 KiB would take minutes. It also reads the whole body for a snippet of
// the subject. So a message whose body has more than 8 KiB gets no snippet.
const (
	hitColumns = messageColumns + withoutBody + ", " +
		"CASE WHEN instr(h.inBody, char(1)) THEN h.inBody WHEN instr(h.inSubject, char(1)) THEN h.inSubject " +
		"ELSE substr(m.body, 1, 1024) END"
	snippets = "CASE WHEN octet_length(b.body) <= 8192 THEN snippet(search, 0, char(1), char(2), '…', 24) END AS inSubject, " +
		"CASE WHEN octet_length(b.body) <= 8192 THEN snippet(search, 1, char(1), char(2), '…', 24) END AS inBody " +
		"FROM search CROSS JOIN messages b ON b.row = search.rowid "
	noSnippets = "NULL AS inSubject, NULL AS inBody FROM search "
)

// The queries of a search. FTS5 answers the inner one, with its ORDER BY and LIMIT: it then reads
// the newest matches and no others.
const (
	newestText = "SELECT " + hitColumns + " FROM (SELECT search.rowid AS r, " + snippets + newestMatches
	listText   = "SELECT " + hitColumns + " FROM (SELECT search.rowid AS r, " + noSnippets + newestMatches

	newestMatches = "WHERE search MATCH ?1 AND search.rowid >= ?2 AND search.rowid < ?3 ORDER BY search.rowid DESC LIMIT ?4 + 0) h " +
		"CROSS JOIN messages m ON m.row = h.r WHERE m.created >= ?5 AND m.created < ?6 ORDER BY m.row DESC"
	rootText = "SELECT row FROM messages WHERE pid = ? AND id = ? AND row >= ? AND row < ?"
)

// The queries of a ranked search: the newest matches, the order of the best of them, and these with
// their snippets.
const (
	windowText = "SELECT h.r FROM (SELECT rowid AS r FROM search WHERE search MATCH ?1 AND rowid >= ?2 AND rowid < ?3 " +
		"ORDER BY rowid DESC LIMIT ?4 + 0) h " +
		"CROSS JOIN messages m ON m.row = h.r WHERE m.created >= ?5 AND m.created < ?6"
	rankText = "SELECT rowid FROM search WHERE search MATCH ?1 AND rowid BETWEEN ?2 AND ?3 " +
		"AND +rowid IN (SELECT value FROM json_each(?4)) ORDER BY bm25(search, 4.0, 1.0, 0.0), rowid DESC LIMIT -1"
	rankedText = "SELECT " + hitColumns + " FROM (SELECT search.rowid AS r, " + snippets +
		"WHERE search MATCH ?1 AND search.rowid BETWEEN ?2 AND ?3 AND +search.rowid IN (SELECT value FROM json_each(?4)) " +
		"LIMIT -1) h CROSS JOIN messages m ON m.row = h.r"
)

// Search finds messages: see maildir.Index.
func (x *Index) Search(ctx context.Context, q maildir.SearchQuery) (found maildir.Found, err error) {
	e := expression(x.pid(q.Project), q)
	if q.Rank && e.user != "" {
		found, err = x.ranked(ctx, q, e)
	} else {
		found.Hits, err = x.newest(ctx, q, e)
	}
	switch {
	case ctx.Err() != nil:
		return maildir.Found{}, context.Cause(ctx)
	case err != nil:
		return maildir.Found{}, fmt.Errorf("search: %w", err)
	}
	return found, nil
}

func unknownCursor(cursor string) error {
	return &maildir.Error{What: refusal.CursorUnknown, Field: refusal.Cursor, Name: cursor}
}

// span is the part of time that a query is about, as rows and exactly.
type span struct{ from, before, after, until int64 }

func spanOf(q maildir.SearchQuery) span {
	s := span{
		from:   0,
		before: math.MaxInt64,
		after:  math.MinInt64,
		until:  math.MaxInt64,
	}
	if !q.After.IsZero() {
		s.after = ceilMicro(q.After)
		s.from = firstRow(s.after)
	}
	if !q.Before.IsZero() {
		s.until = ceilMicro(q.Before)
		s.before = firstRow(s.until)
	}
	return s
}

// newest lists matches newest first. The cursor is the row of the last one: what comes later has a
// higher row.
func (x *Index) newest(ctx context.Context, q maildir.SearchQuery, e match) ([]maildir.Hit, error) {
	s, limit, text := spanOf(q), pageSize(q.Limit), newestText
	if q.Cursor != "" {
		last, err := strconv.ParseInt(q.Cursor, 10, 64)
		if err != nil || last < 0 {
			return nil, unknownCursor(q.Cursor)
		}
		s.before = min(s.before, last)
	}
	if e.user == "" {
		text = listText
	}
	found, err := hits(ctx, x, q.Project, text, e.whole, s.from, s.before, limit, s.after, s.until)
	if err == nil && q.Thread != "" {
		found, err = x.withRoot(ctx, q, e, s, text, found)
	}
	found = found[:min(limit, len(found))]
	for i := range found {
		found[i].Next = strconv.FormatInt(found[i].Cursor, 10)
	}
	return found, err
}

// withRoot adds the message whose id is the thread, where it matches.
func (x *Index) withRoot(
	ctx context.Context, q maildir.SearchQuery, e match, s span, text string, found []maildir.Hit,
) ([]maildir.Hit, error) {
	root, err := x.root(ctx, x, q, s)
	if err != nil || root == 0 {
		return found, err
	}
	first, err := hits(ctx, x, q.Project, text, e.rootless, root, root+1, 1, s.after, s.until)
	found = append(found, first...)
	slices.SortFunc(found, func(a, b maildir.Hit) int { return cmp.Compare(b.Cursor, a.Cursor) })
	return slices.CompactFunc(found, func(a, b maildir.Hit) bool { return a.Cursor == b.Cursor }), err
}

// root finds the row of the message whose id is the thread; 0 where it lies outside the span.
func (x *Index) root(ctx context.Context, from reader, q maildir.SearchQuery, s span) (row int64, err error) {
	err = from.each(ctx, rootText, []any{x.pid(q.Project), q.Thread, s.from, s.before},
		func(scan func(...any) error) error { return scan(&row) })
	return row, err
}

// ranked puts the newest matches into order by bm25 over subject and body. The filters on project
// and people decide which messages take part and not how they score: FTS5 would count every row of
// each.
func (x *Index) ranked(ctx context.Context, q maildir.SearchQuery, e match) (maildir.Found, error) {
	// All queries see one view: a message edited between two of them would be missing on the page.
	v, err := x.view(ctx, windowText, rootText, rankText, rankedText)
	if err != nil {
		return maildir.Found{}, err
	}
	defer v.close()
	of := fmt.Sprint(e.whole, spanOf(q))
	o, shown, ok := x.orders.resume(q.Cursor, of)
	switch {
	case !ok && q.Cursor != "":
		return maildir.Found{}, unknownCursor(q.Cursor)
	case !ok:
		rows, err := x.rank(ctx, v, q, e)
		if err != nil {
			return maildir.Found{}, err
		}
		o = x.orders.keep(x.cfg.Now().UnixNano(), of, rows)
	}
	found := maildir.Found{Hits: []maildir.Hit{}, Ranked: len(o.rows)}
	page := o.rows[shown:min(shown+pageSize(q.Limit), len(o.rows))]
	if len(page) == 0 {
		return found, nil
	}
	found.Hits, err = hits(ctx, v, q.Project, rankedText, among(e.rootless, page)...)
	slices.SortFunc(found.Hits, func(a, b maildir.Hit) int {
		return cmp.Compare(slices.Index(page, a.Cursor), slices.Index(page, b.Cursor))
	})
	for i := range found.Hits {
		found.Hits[i].Next = o.after(found.Hits[i].Cursor)
	}
	return found, err
}

// rank lists the newest matches, best first; behind them those that match by filters alone, newest
// first.
func (x *Index) rank(ctx context.Context, from reader, q maildir.SearchQuery, e match) ([]int64, error) {
	window, err := x.window(ctx, from, q, e, spanOf(q))
	if err != nil || len(window) == 0 {
		return nil, err
	}
	var rows []int64
	if err := from.each(ctx, rankText, among(e.user, window), scanRows(&rows)); err != nil {
		return nil, err
	}
	scored := make(map[int64]bool, len(rows))
	for _, row := range rows {
		scored[row] = true
	}
	slices.SortFunc(window, func(a, b int64) int { return cmp.Compare(b, a) })
	for _, row := range slices.Compact(window) {
		if !scored[row] {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// among are the first arguments of a query for matches among rows: the expression, the span of the
// rows, and all of them.
func among(expression string, rows []int64) []any {
	list, _ := json.Marshal(rows) // numbers alone
	return []any{expression, slices.Min(rows), slices.Max(rows), string(list)}
}

// window lists the newest matches, the root of the thread among them.
func (x *Index) window(ctx context.Context, from reader, q maildir.SearchQuery, e match, s span) ([]int64, error) {
	var rows []int64
	err := from.each(ctx, windowText, []any{e.whole, s.from, s.before, rankWindow, s.after, s.until}, scanRows(&rows))
	if err != nil || q.Thread == "" {
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

// hits reads messages with their snippets.
func hits(ctx context.Context, from reader, slug, text string, args ...any) ([]maildir.Hit, error) {
	all := []maildir.Hit{}
	err := from.each(ctx, text, args, func(scan func(...any) error) error {
		var h maildir.Hit
		err := scanMessage(slug, scan, &h.MessageRow, &h.Snippet)
		h.Snippet = oneLine(h.Snippet)
		all = append(all, h)
		return err
	})
	return all, err
}

// oneLine writes the marks of a snippet, or cuts the beginning of a body to its first line.
func oneLine(s string) string {
	if !strings.Contains(s, markOpen) {
		s = firstLine(s)
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
