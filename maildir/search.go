package maildir

import (
	"context"
	"errors"
	"strings"

	"mailtree/maildir/index"
	"mailtree/maildir/query"
	"mailtree/maildir/refusal"
)

// SearchRequest is a search as the caller typed it.
type SearchRequest struct {
	Text   string // see package query for the syntax
	Agent  string // the agent that is searching, needed for is:unread; "" if unknown
	Rank   bool   // rank the newest matches by bm25; otherwise newest first
	Limit  int    // default 20, maximum 200
	Cursor string // cursor from the previous page of the same search; "" for the first page
}

// SearchPage is one page of hits.
type SearchPage struct {
	Hits   []index.Hit
	Next   string // "" on the last page
	Ranked int    // in a ranked search, how many of the newest matches were ranked; otherwise 0
	Note   error  // explains how the text was interpreted, if that may be unexpected; otherwise nil
}

// Cut removes all hits but the first n, and sets Next to continue after them.
func (page *SearchPage) Cut(n int) {
	if n <= 0 || n >= len(page.Hits) {
		return
	}
	page.Hits = page.Hits[:n]
	page.Next = page.Hits[n-1].Next
}

const maxQuery = 4096 // bytes

// Search finds messages. If pages are sorted by time, they neither skip nor repeat a message that existed when the
// first page was read, even if mail arrives between pages. In a ranked search, new mail may shift the hits on later
// pages. Search returns ErrInvalid for empty or invalid text, for is:unread without an agent, and for a cursor that no
// page returned. It returns ErrTooLarge for text that is longer than maxQuery, ErrNotFound for is:unread with an
// unknown agent, and any error from FullID for a thread's id. No text can cause an SQL error. See
// docs/reference/tools.md, "Search".
func (p *Project) Search(ctx context.Context, r SearchRequest) (*SearchPage, error) {
	typed, err := p.readQuery(ctx, r.Text, r.Agent)
	if err != nil {
		return nil, err
	}
	limit := pageSize(r.Limit)
	found, err := p.mail.Store.Index.Search(ctx, index.SearchQuery{
		Query:   typed.Query,
		Project: p.mail.Slug,
		Agent:   r.Agent,
		Rank:    r.Rank,
		Limit:   limit + 1,
		Cursor:  r.Cursor,
	})
	if err != nil {
		return nil, err
	}
	page := &SearchPage{Hits: found.Hits, Ranked: found.Ranked}
	if page.Note, err = p.searchNote(ctx, typed, found.Cut, len(found.Hits) == 0); err != nil {
		return nil, err
	}
	page.Cut(limit)
	return page, nil
}

// CountMatches returns the number of messages that a search finds, or most if there are more. It returns any error from
// Search.
func (p *Project) CountMatches(ctx context.Context, r SearchRequest, most int) (int, error) {
	typed, err := p.readQuery(ctx, r.Text, r.Agent)
	if err != nil {
		return 0, err
	}
	q := index.SearchQuery{Query: typed.Query, Project: p.mail.Slug, Agent: r.Agent}
	return p.mail.Store.Index.CountMatches(ctx, q, most)
}

// typedQuery is a query with the text that it was parsed from.
type typedQuery struct {
	query.Query
	text    string
	unknown error // the error about an unknown agent's name; nil if all names are known
}

// readQuery parses the text of a search. The argument agent is the searching agent, or "" if the agent is unknown.
func (p *Project) readQuery(ctx context.Context, text, agent string) (*typedQuery, error) {
	if len(text) > maxQuery {
		return nil, refusal.Over(refusal.TooLarge("{field} is {count} bytes long, over the limit of {limit}: keep it to a few words."),
			refusal.Query, len(text), maxQuery)
	}
	read, err := query.Parse(text, p.mail.Store.Now())
	if err != nil {
		return nil, err
	}
	if read.Unread && agent == "" {
		return nil, &Error{
			What: refusal.Invalid("{name} finds unread mail in an agent's inbox, but the search does not specify an " +
				"agent. {name the reader}"),
			Field: refusal.Query,
			Name:  "is:unread",
		}
	}
	if read.Unread {
		if err := p.mail.NeedAgent(ctx, refusal.Agent, agent); err != nil {
			return nil, err
		}
	}
	typed := &typedQuery{Query: read, text: text}
	if read.Thread != "" {
		if typed.Thread, err = p.mail.Store.FullID(ctx, p.mail.Slug, refusal.Query, read.Thread); err != nil {
			return nil, err
		}
	}
	typed.Expr, typed.unknown = p.nameAgents(ctx, read.Expr)
	return typed, nil
}

// searchNote explains how the text of a search was interpreted, if that may be unexpected. The cut argument reports
// whether the search ended early because it took too long. The none argument reports whether it found nothing.
func (p *Project) searchNote(ctx context.Context, read *typedQuery, cut, none bool) (note, err error) {
	about := func(part string, what refusal.What) error {
		return &Error{What: what, Field: refusal.Query, Name: part}
	}
	switch {
	case cut:
		return about("", refusal.Note("The search took too long, so the results are incomplete: use whole words, "+
			"or prefixes of at least three letters, as in dep*.")), nil
	case read.Plain:
		return about(read.text, refusal.Note("{field} has unbalanced quotes or parentheses, or an operator without "+
			"a word on each side, so the search took every word literally. Close each quote and parenthesis, and put a word on both "+
			"sides of AND and OR.")), nil
	case read.Mistaken != "":
		return &Error{
			What: refusal.Note("{=name} is not a filter, so the search took it literally: to filter, write " +
				"{=other}. To search for the text itself, put it in quotes."),
			Field: refusal.Query,
			Name:  read.Mistaken,
			Other: read.Meant,
		}, nil
	case read.Wild != "":
		return about(read.Wild, refusal.Note("The search treated {name} {arg} as plain words: only a * at the end of "+
			"a word is a wildcard, as in dep*.")), nil
	case none && read.Lower != "":
		return about(read.Lower, refusal.Note("Nothing was found. The search treated {name} {arg} as a word: write "+
			"the operators AND, OR and NOT in capitals.")), nil
	case none && read.Foreign != "":
		return about(read.Foreign, refusal.Note("Nothing was found. The search treated {name} {arg} as plain words, "+
			"because that syntax has no meaning here. Use words, \"phrases\", prefix*, AND OR NOT -word ( ), and "+
			"from: to: cc: subject: body: thread: importance: after: before: has:file is:unread.")), nil
	case none && read.unknown != nil:
		return read.unknown, nil
	case none && read.Unspaced != "":
		return about(read.Unspaced, refusal.Note("Nothing was found. In text without spaces between words, "+
			"such as Chinese or Japanese, only the beginning of each passage can be found. Search for the first characters of "+
			"{name} {arg}, followed by *.")), nil
	case none && read.Thread != "":
		return p.threadNote(ctx, read.Thread)
	}
	return nil, nil
}

// threadNote returns a note if a filter names a thread that does not exist, and nil otherwise.
func (p *Project) threadNote(ctx context.Context, thread string) (note, err error) {
	_, err = p.ThreadPage(ctx, index.ThreadQuery{Thread: thread, Limit: 1})
	var e *Error
	if errors.As(err, &e) && e.What == refusal.UnknownThread {
		said := *e
		said.Field = refusal.Query
		return &said, nil
	}
	return nil, err
}

// AddBodies reads the bodies of the hits. The page ends before the first hit that does not fit. It returns any error
// from Room.Reserve.
func (p *Project) AddBodies(ctx context.Context, page *SearchPage, room *index.Room) error {
	n := 0
	err := room.Attempt(ctx, func() error {
		for n = 0; n < len(page.Hits); n++ {
			m := &page.Hits[n].MessageRow
			ok, err := room.Take(m, func(offset, size int64) (string, error) {
				return p.mail.Store.Index.Body(ctx, p.mail.Slug, m.ID, offset, size)
			})
			if !ok {
				return err
			}
		}
		return nil
	})
	page.Cut(n)
	return err
}

// nameAgents replaces each name in a filter with the exact spelling of the agent's name. No two agents' names differ
// only in case. For an agent of another project, nameAgents uses the form of the address that the project's files
// contain. If this project has no agent with the name and exactly one other project does, the name refers to that
// project's agent. The returned error describes an unknown name. It is nil if all names are known.
func (p *Project) nameAgents(ctx context.Context, e query.Expr) (named query.Expr, unknown error) {
	named = query.Map(e, func(f query.Filter) query.Expr {
		if f.Key != query.From && f.Key != query.To && f.Key != query.CC {
			return f
		}
		if address, err := p.mail.Addressed(ctx, f.Value); err == nil {
			f.Value = address
		}
		if p.mail.Store.PartyOf(f.Value).Project != "" {
			return f
		}
		err := p.mail.NeedAgent(ctx, refusal.Query, f.Value)
		if !errors.Is(err, ErrNotFound) {
			return f
		}
		for _, near := range refusal.Near(err) {
			if strings.EqualFold(near, f.Value) {
				f.Value = near
				return f
			}
		}
		if address, _, aerr := p.mail.OnlyNamesake(ctx, refusal.Query, f.Value); aerr == nil && address != "" {
			f.Value = address
			return f
		}
		unknown = err
		return f
	})
	return named, unknown
}
