package maildir

import (
	"cmp"
	"context"

	"mailtree/maildir/index"
	"mailtree/maildir/markdown"
)

// ThreadsRequest selects threads.
type ThreadsRequest struct {
	Text   string // search text; selects the threads of all messages that match; empty means all threads
	Agent  string // agent whose unread messages are counted; the agent need not exist
	Limit  int    // default 20, maximum 200
	Cursor string // cursor from the previous page of the same request; "" for the first page
}

// ThreadsPage is one page of threads.
type ThreadsPage struct {
	Threads []ThreadListed
	Next    string // "" on the last page
	Note    error  // explains how the text was interpreted, if that may be unexpected; otherwise nil
}

// ThreadListed is a thread in a list.
type ThreadListed struct {
	index.ThreadRow
	Line string // the beginning of the newest message's text, on one line and without markup
}

// Threads lists threads. The thread with the newest message comes first or, in a search, the thread with the newest
// hit. A page never repeats a thread from an earlier page, even if mail arrives between pages. Any page, not just the
// last one, may contain fewer threads than the limit, or none at all. Threads returns any error from Search.
func (p *Project) Threads(ctx context.Context, r ThreadsRequest) (*ThreadsPage, error) {
	typed, err := p.readQuery(ctx, cmp.Or(r.Text, "*"), r.Agent)
	if err != nil {
		return nil, err
	}
	found, err := p.mail.Store.Index.Threads(ctx, index.ThreadsQuery{
		Query:   typed.Query,
		Project: p.mail.Slug,
		Agent:   r.Agent,
		Limit:   pageSize(r.Limit),
		Cursor:  r.Cursor,
	})
	if err != nil {
		return nil, err
	}
	page := &ThreadsPage{Next: found.Next}
	for _, t := range found.Threads {
		page.Threads = append(page.Threads, ThreadListed{t, markdown.PlainText(t.Body)})
	}
	page.Note, err = p.searchNote(ctx, typed, found.Cut, len(found.Threads) == 0)
	return page, err
}
