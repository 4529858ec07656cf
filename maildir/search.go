package maildir

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"mailtree/maildir/refusal"
)

// SearchRequest is a search as typed.
type SearchRequest struct {
	Text   string // words, "phrases", prefix*, AND OR NOT, from: to: thread: after: before:
	Rank   bool   // by bm25 among the newest matches, else newest first
	Limit  int    // default 20, at most 200
	Cursor string // of an earlier page; "" for the first
}

// SearchPage is one page of hits. Note says when the text was taken as plain words because it could not be parsed.
type SearchPage struct {
	Hits []Hit
	Next string // "" at the end
	Note string

	offset int // of the first hit, in a search by rank; -1 in one by time
}

// Cut leaves out all hits but the first n, and has Next go on behind those.
func (page *SearchPage) Cut(n int) {
	if n <= 0 || n >= len(page.Hits) {
		return
	}
	page.Hits = page.Hits[:n]
	page.Next = strconv.FormatInt(page.Hits[n-1].Cursor, 10)
	if page.offset >= 0 {
		page.Next = strconv.Itoa(page.offset + n)
	}
}

const maxQuery = 4096 // bytes

// Search finds messages. Errors: ErrInvalid (empty text, a time that cannot be read); never one of SQL.
// See docs/tools.md, "Search".
func (p *Project) Search(ctx context.Context, r SearchRequest) (*SearchPage, error) {
	if len(r.Text) > maxQuery {
		return nil, over(refusal.QueryTooLong, refusal.Query, len(r.Text), maxQuery)
	}
	q, err := parseQuery(r.Text)
	if err != nil {
		return nil, err
	}
	q.Project, q.Rank = p.slug, r.Rank
	if r.Cursor != "" {
		n, err := strconv.ParseInt(r.Cursor, 10, 64)
		if err != nil || n < 0 {
			return nil, &Error{What: refusal.CursorUnknown, Field: refusal.Cursor, Name: r.Cursor}
		}
		if r.Rank {
			q.Offset = int(n)
		} else {
			q.Cursor = n
		}
	}
	limit := pageSize(r.Limit)
	q.Limit = limit + 1
	page := &SearchPage{offset: -1}
	if r.Rank {
		page.offset = q.Offset
	}
	if page.Hits, err = p.store.index.Search(ctx, q); errors.Is(err, ErrInvalid) {
		q.Plain = true
		page.Note = "The query could not be read as FTS5 syntax, so every word of it was searched for as it stands. Quote words with punctuation: \"bug-17\"."
		page.Hits, err = p.store.index.Search(ctx, q)
	}
	if err != nil {
		return nil, err
	}
	if len(page.Hits) == 0 && page.Note == "" {
		page.Note = p.unknownIn(ctx, q)
	}
	page.Cut(limit)
	return page, nil
}

// unknownIn says which agent that from: or to: names does not exist; "" when all do.
func (p *Project) unknownIn(ctx context.Context, q SearchQuery) string {
	for _, name := range []string{q.From, q.To} {
		if name == "" {
			continue
		}
		if err := p.needAgent(ctx, refusal.Query, name); errors.Is(err, ErrNotFound) {
			return err.Error()
		}
	}
	return ""
}

// parseQuery takes the operators from:, to:, thread:, after: and before: out of the text; what is left is FTS5's.
// A value may be quoted; operators inside a phrase are words.
func parseQuery(text string) (SearchQuery, error) {
	var q SearchQuery
	var words []string
	for _, w := range splitQuery(text) {
		key, val, ok := strings.Cut(w, ":")
		val = strings.Trim(val, `"`)
		if !ok || val == "" {
			words = append(words, w)
			continue
		}
		var err error
		switch strings.ToLower(key) {
		case "from":
			q.From = val
		case "to":
			q.To = val
		case "thread":
			q.Thread = val
		case "after":
			q.After, err = queryTime(val)
		case "before":
			q.Before, err = queryTime(val)
		default:
			words = append(words, w)
		}
		if err != nil {
			return q, err
		}
	}
	q.Match = strings.Join(words, " ")
	if q.Match == "" && q.From == "" && q.To == "" && q.Thread == "" && q.After.IsZero() && q.Before.IsZero() {
		return q, &Error{What: refusal.QueryEmpty, Field: refusal.Query}
	}
	return q, nil
}

// splitQuery cuts at blanks outside double quotes.
func splitQuery(s string) []string {
	quoted := false
	return strings.FieldsFunc(s, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return !quoted && (r == ' ' || r == '\t' || r == '\n' || r == '\r')
	})
}

func queryTime(s string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02", "2006-01", "2006"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), nil
		}
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && n > 9999 && n < 1<<36 {
		return time.Unix(n, 0).UTC(), nil
	}
	return time.Time{}, &Error{What: refusal.QueryTime, Field: refusal.Query, Name: s}
}
