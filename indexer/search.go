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
	"time"

	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
)

// rankWindow is the number of newest matches that bm25 ranks. In a million messages, a common word has so many matches
// that it would take seconds to rank all of them. Each match takes about 15 µs, and a page view should not take more
// than 30 ms.
const rankWindow = 1000

// The parts of a query for hits. The subquery h lists the matching rows, with snippets of their subject and body.
// hitColumns selects the body snippet if it marks a term, otherwise the subject snippet if it marks a term, and
// otherwise the beginning of the body.
//
// FTS5 compares each occurrence of a term in a body with every other occurrence. If a body consists of one word
// repeated for 256 KiB, a snippet would take minutes. FTS5 also reads the whole body for a snippet of the subject.
// Therefore a message whose body is larger than 8 KiB gets no snippet.
const (
	hitColumns = messageColumns + withoutBody + ", " +
		"CASE WHEN instr(h.inBody, char(1)) THEN h.inBody WHEN instr(h.inSubject, char(1)) THEN h.inSubject " +
		"ELSE substr(m.body, 1, 1024) END"
	snippets = "CASE WHEN octet_length(b.body) <= 8192 THEN snippet(search, 0, char(1), char(2), '…', 24) END AS inSubject, " +
		"CASE WHEN octet_length(b.body) <= 8192 THEN snippet(search, 1, char(1), char(2), '…', 24) END AS inBody " +
		"FROM search CROSS JOIN messages b ON b.row = search.rowid "
	noSnippets = "NULL AS inSubject, NULL AS inBody FROM search "
)

// The queries for a search without ranking. FTS5 itself applies the ORDER BY and LIMIT of the inner query, so it
// reads only the newest matches.
const (
	newestText = "SELECT " + hitColumns + " FROM (SELECT search.rowid AS r, " + snippets + newestMatches
	listText   = "SELECT " + hitColumns + " FROM (SELECT search.rowid AS r, " + noSnippets + newestMatches

	newestMatches = "WHERE search MATCH ?1 AND search.rowid >= ?2 AND search.rowid < ?3 ORDER BY search.rowid DESC LIMIT ?4 + 0) h " +
		"CROSS JOIN messages m ON m.row = h.r WHERE m.created >= ?5 AND m.created < ?6 ORDER BY m.row DESC"
)

// The queries of a ranked search. rankText orders the newest matches: first the ranked matches, best first, and then
// the messages that match only by filters, newest first. pageText reads the rows of a page with their snippets.
const (
	rankText = "WITH w(r) AS MATERIALIZED (SELECT h.r FROM (SELECT rowid AS r FROM search WHERE search MATCH ?1 AND rowid >= ?2 " +
		"AND rowid < ?3 ORDER BY rowid DESC LIMIT ?4 + 0) h CROSS JOIN messages m ON m.row = h.r WHERE m.created >= ?5 " +
		"AND m.created < ?6) " +
		"SELECT w.r FROM w LEFT JOIN (SELECT rowid AS r, bm25(search, 4.0, 1.0, 0.0) AS score FROM search " +
		"WHERE search MATCH ?7 AND rowid BETWEEN (SELECT min(r) FROM w) AND (SELECT max(r) FROM w) AND +rowid IN (SELECT r FROM w) " +
		"LIMIT -1) s ON s.r = w.r ORDER BY s.score IS NULL, s.score, w.r DESC"
	pageText = "SELECT " + hitColumns + " FROM (SELECT search.rowid AS r, " + snippets +
		"WHERE search MATCH ?1 AND search.rowid BETWEEN ?2 AND ?3 AND +search.rowid IN (SELECT value FROM json_each(?4)) " +
		"LIMIT -1) h CROSS JOIN messages m ON m.row = h.r"
)

// patience is the time limit for a search by prefix. FTS5 has an index of three-letter prefixes. For other prefixes,
// it reads every word that begins with the prefix.
const patience = 300 * time.Millisecond

// Search implements index.Index. It finds messages.
func (x *Index) Search(ctx context.Context, q index.SearchQuery) (found index.Found, err error) {
	e := expression(x.pid(q.Project), q)
	found.Cut, err = x.patiently(ctx, e, func(ctx context.Context) (err error) {
		if q.Rank && e.user != "" {
			found, err = x.ranked(ctx, q, e)
		} else {
			found.Hits, err = x.newest(ctx, q, e)
		}
		return err
	})
	if err != nil {
		return index.Found{}, err
	}
	if found.Hits == nil {
		found.Hits = []index.Hit{}
	}
	return found, nil
}

// patiently runs a search. If e contains slow prefixes, patiently cancels the search after x.patience. It reports
// whether it canceled the search.
func (x *Index) patiently(ctx context.Context, e match, search func(context.Context) error) (cut bool, err error) {
	asked := ctx
	if e.prefix {
		var end context.CancelFunc
		ctx, end = context.WithTimeout(ctx, x.patience)
		defer end()
	}
	switch err = search(ctx); {
	case asked.Err() != nil:
		return false, context.Cause(asked)
	case ctx.Err() != nil && err != nil:
		return true, nil
	case err != nil:
		return false, fmt.Errorf("search: %w", err)
	}
	return false, nil
}

// unreadOnly is SQL that limits a search to the unread messages of an inbox.
const unreadOnly = " AND +search.rowid IN (SELECT row FROM deliveries INDEXED BY deliveries_unread WHERE box = ?%d AND read = 0)"

// inUnread limits a search to messages that are unread in q.Agent's inbox, if q.Unread is set. It adds the condition
// unreadOnly after the first "search MATCH ?1" in text. The parameters in text must be numbered from 1, without gaps.
func (x *Index) inUnread(ctx context.Context, q index.SearchQuery, text string, args []any) (string, []any, error) {
	if !q.Unread {
		return text, args, nil
	}
	var box int64
	err := one(ctx, x, "SELECT coalesce("+agentID+", 0)", []any{x.pid(q.Project), q.Agent}, &box)
	const begins = "search MATCH ?1"
	return strings.Replace(text, begins, begins+fmt.Sprintf(unreadOnly, len(args)+1), 1), append(args, box), err
}

const countText = "SELECT count(*) FROM (SELECT 1 FROM search WHERE search MATCH ?1 AND rowid >= ?2 AND rowid < ?3 " +
	"ORDER BY rowid DESC LIMIT ?4 + 0)"

// CountMatches implements index.Index. It counts the messages that match a query.
func (x *Index) CountMatches(ctx context.Context, q index.SearchQuery, most int) (n int, err error) {
	e, s := expression(x.pid(q.Project), q), spanOf(q)
	text, args, err := x.inUnread(ctx, q, countText, []any{e.whole, s.from, s.before, most})
	if err != nil {
		return 0, err
	}
	_, err = x.patiently(ctx, e, func(ctx context.Context) error { return one(ctx, x, text, args, &n) })
	return n, err
}

func unknownCursor(cursor string) error {
	return &refusal.Error{
		What: refusal.Invalid("{field} {name} is not valid: pass the value exactly as the previous page returned it, or " +
			"omit {field}."),
		Field: refusal.Cursor,
		Name:  cursor,
	}
}

// span is the time range of a query, in row numbers and in exact microseconds.
type span struct{ from, before, after, until int64 }

func spanOf(q index.SearchQuery) span {
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

// newest lists matches, newest first. The cursor is the row number of the last match. Later mail has higher row
// numbers.
func (x *Index) newest(ctx context.Context, q index.SearchQuery, e match) ([]index.Hit, error) {
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
	text, args, err := x.inUnread(ctx, q, text, []any{e.whole, s.from, s.before, limit, s.after, s.until})
	if err != nil {
		return nil, err
	}
	found, err := hits(ctx, x, q.Project, text, args...)
	for i := range found {
		found[i].Next = strconv.FormatInt(found[i].Cursor, 10)
	}
	return found, err
}

// ranked orders the newest matches by their bm25 score over subject and body. The filters by project and people select
// messages but do not affect scores, because FTS5 would have to count every row of each filter. The cursor is the
// number of hits on earlier pages, so new mail between two pages shifts the hits.
func (x *Index) ranked(ctx context.Context, q index.SearchQuery, e match) (index.Found, error) {
	found, shown := index.Found{Hits: []index.Hit{}}, 0
	if q.Cursor != "" {
		var err error
		if shown, err = strconv.Atoi(q.Cursor); err != nil || shown < 1 || shown > rankWindow {
			return found, unknownCursor(q.Cursor)
		}
	}
	s := spanOf(q)
	text, args, err := x.inUnread(ctx, q, rankText, []any{e.whole, s.from, s.before, rankWindow, s.after, s.until, e.user})
	if err != nil {
		return found, err
	}
	// Both queries use the same view. Otherwise, the page would lack a message that is edited between the two
	// queries.
	v, err := x.view(ctx, text, pageText)
	if err != nil {
		return found, err
	}
	defer v.close()
	all, err := column[int64](ctx, v, text, args...)
	found.Ranked = len(all)
	page := all[min(shown, len(all)):min(shown+pageSize(q.Limit), len(all))]
	if err != nil || len(page) == 0 {
		return found, err
	}
	list, _ := json.Marshal(page) // encoding numbers cannot fail
	found.Hits, err = hits(ctx, v, q.Project, pageText, e.whole, slices.Min(page), slices.Max(page), string(list))
	slices.SortFunc(found.Hits, func(a, b index.Hit) int {
		return cmp.Compare(slices.Index(page, a.Cursor), slices.Index(page, b.Cursor))
	})
	for i := range found.Hits {
		found.Hits[i].Next = strconv.Itoa(shown + i + 1)
	}
	return found, err
}

// hits reads messages with their snippets.
func hits(ctx context.Context, from reader, slug, text string, args ...any) ([]index.Hit, error) {
	return list(ctx, from, text, args, func(scan scanner, h *index.Hit) error {
		err := scanMessage(slug, scan, &h.MessageRow, &h.Matched)
		h.Snippet = oneLine(h.Matched)
		return err
	})
}

// oneLine puts a snippet on one line and replaces its highlight marks with **. If there are no marks, it uses only
// the first line of the text.
func oneLine(s string) string {
	if !strings.Contains(s, index.MarkOpen) {
		s = firstLine(s)
	}
	s = strings.Join(strings.Fields(s), " ")
	return strings.ReplaceAll(strings.ReplaceAll(s, index.MarkOpen, "**"), index.MarkClose, "**")
}

// snippetRunes is the maximum length, in runes, of a snippet without highlight marks.
const snippetRunes = 160

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if r := []rune(line); len(r) > snippetRunes {
		return string(r[:snippetRunes]) + "…"
	}
	return line
}
