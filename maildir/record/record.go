package record

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/query"
	"mailtree/maildir/summary"
)

// Entry is a decision or an unanswered question.
type Entry struct {
	Project string       `json:"project"` // slug
	Text    string       `json:"text"`    // the decision, or a question's subject without "Re:"
	ID      string       `json:"message_id"`
	Thread  string       `json:"thread_id"`
	Subject string       `json:"subject"` // the message's subject, without "Re:"
	From    string       `json:"from"`
	At      format.Stamp `json:"ts"`
}

// Decided lists decisions.
type Decided struct {
	Since     format.Stamp `json:"since_ts"`
	Decisions []Entry      `json:"decisions"`      // newest first, at most maxDecisions; never nil
	More      bool         `json:"more,omitempty"` // there may be more decisions
}

// Account reports what happened since a given time.
type Account struct {
	Decided
	Closed int     `json:"closed"` // number of threads that were closed
	Open   []Entry `json:"open"`   // the newest unanswered question of each thread, newest first; never nil
}

// These are the limits of an account.
const (
	maxRead      = 200                 // maximum number of a project's newest messages with decision marks that are read
	maxDecisions = 200                 // maximum number of decisions to list
	maxAsked     = 1000                // maximum number of a project's newest questions that are considered
	askedFor     = 14 * 24 * time.Hour // how long a question stays open without an answer
)

// DecidedSince returns the decisions in the projects since the given time. If a message was sent from one project to
// another, its decisions are listed only once. The same applies to a decision that is repeated in its thread.
func DecidedSince(ctx context.Context, projects []*core.Mail, since time.Time) (*Decided, error) {
	d := &Decided{Since: format.At(since)}
	for _, mail := range projects {
		found, more, err := decided(ctx, mail, since)
		if err != nil {
			return nil, fmt.Errorf("cannot find the decisions in project %s: %w", mail.Slug, err)
		}
		d.Decisions, d.More = append(d.Decisions, found...), d.More || more
	}
	if d.Decisions = once(d.Decisions); len(d.Decisions) > maxDecisions {
		d.Decisions, d.More = d.Decisions[:maxDecisions], true
	}
	return d, nil
}

// decided returns the decisions of one project. more reports whether some messages were not read.
func decided(ctx context.Context, mail *core.Mail, since time.Time) (all []Entry, more bool, err error) {
	var marks query.Or
	for _, mark := range summary.DecisionMarks {
		marks = append(marks, query.Term{Text: mark, In: query.Body})
	}
	x, q := mail.Store.Index, query.Query{Expr: marks, After: since}
	found, err := x.Search(ctx, index.SearchQuery{Query: q, Project: mail.Slug, Limit: maxRead + 1})
	if err != nil {
		return nil, false, err
	}
	hits := found.Hits[:min(len(found.Hits), maxRead)]
	for i := range hits {
		m := &hits[i].MessageRow
		body, err := x.Body(ctx, mail.Slug, m.ID, 0, summary.MaxBody)
		if err != nil {
			return nil, false, err
		}
		for _, text := range summary.Decisions(body) {
			all = append(all, Entry{
				mail.Slug, text, m.ID, cmp.Or(m.ThreadID, m.ID), index.WithoutRe(m.Subject), m.From, format.At(m.Created),
			})
		}
	}
	return all, len(found.Hits) > maxRead, nil
}

// once removes duplicates from the decisions, and sorts them newest first. If a decision is repeated in its thread,
// once keeps the first one. If a message was sent to another project, once keeps the decisions from the copy in the
// author's project.
func once(all []Entry) []Entry {
	slices.SortStableFunc(all, func(a, b Entry) int { return cmp.Or(a.At.Compare(b.At.Time), homeFirst(a.From, b.From)) })
	kept, seen := []Entry{}, map[[3]string]bool{}
	for _, d := range all {
		text := summary.Fold(d.Text)
		message, thread := [3]string{"message", d.ID, text}, [3]string{d.Project, d.Thread, text}
		if !seen[message] && !seen[thread] {
			kept = append(kept, d)
		}
		seen[message], seen[thread] = true, true
	}
	slices.Reverse(kept)
	return kept
}

// homeFirst compares the authors of two copies of a message, so that the copy in the author's project comes first. In
// that project, the author's name is not an address.
func homeFirst(a, b string) int {
	away := func(from string) int { return map[bool]int{false: 1}[core.IsAgent(from)] }
	return cmp.Compare(away(a), away(b))
}

// Since returns what happened in the projects since the given time.
func Since(ctx context.Context, projects []*core.Mail, since, now time.Time) (*Account, error) {
	d, err := DecidedSince(ctx, projects, since)
	if err != nil {
		return nil, err
	}
	from := now.Add(-askedFor)
	if since.Before(from) {
		from = since
	}
	var all []asked
	for _, mail := range projects {
		found, err := mail.Store.Index.Asked(ctx, mail.Slug, from, maxAsked)
		if err != nil {
			return nil, fmt.Errorf("cannot find the questions in project %s: %w", mail.Slug, err)
		}
		for _, a := range found {
			if !format.ServerName(a.From) { // skip the server's own messages, because the server does not read answers
				all = append(all, asked{mail.Slug, a})
			}
		}
	}
	account := &Account{Decided: *d}
	account.Closed, account.Open = settle(all, since)
	return account, nil
}

// asked is a message in a project that asks for an answer.
type asked struct {
	project string
	index.Asked
}

// settle returns the number of threads that were closed since the given time, and the newest open question of each
// thread that has one. A message that was sent to another project is settled if one of its copies is settled.
func settle(all []asked, since time.Time) (closed int, open []Entry) {
	settled := map[string]time.Time{} // by message
	for _, a := range all {
		if first, is := settled[a.ID]; !a.Settled.IsZero() && (!is || a.Settled.Before(first)) {
			settled[a.ID] = a.Settled
		}
	}
	slices.SortStableFunc(all, func(a, b asked) int { return cmp.Or(b.Created.Compare(a.Created), homeFirst(a.From, b.From)) })
	open = []Entry{}
	seen, isOpen, last := map[string]bool{}, map[[2]string]bool{}, map[[2]string]time.Time{}
	for _, a := range all {
		if seen[a.ID] {
			continue
		}
		seen[a.ID] = true
		thread, subject := [2]string{a.project, a.Thread}, index.WithoutRe(a.Subject)
		at, is := settled[a.ID]
		switch {
		case is && at.After(last[thread]):
			last[thread] = at
		case !is && !isOpen[thread]:
			isOpen[thread] = true
			open = append(open, Entry{a.project, subject, a.ID, a.Thread, subject, a.From, format.At(a.Created)})
		}
	}
	for thread, at := range last {
		if !isOpen[thread] && !at.Before(since) {
			closed++
		}
	}
	return closed, open
}

const (
	// pause is the period of inactivity that ends a visit.
	pause = time.Hour
	// maxActs is the maximum number of an agent's newest actions in a project to consider.
	maxActs = 1000
	// unknownVisit is how long ago the previous visit is assumed to have ended if the actions do not show it.
	unknownVisit = 24 * time.Hour
)

// LastLooked returns when the agent's previous visit to the projects ended. It determines this from the agent's marks
// and messages. If an agent only reads its mail, its marks are the only record of its visits.
func LastLooked(ctx context.Context, projects []*core.Mail, agent string, now time.Time) (time.Time, error) {
	var acts []time.Time
	for _, mail := range projects {
		of, err := mail.Store.Index.Acts(ctx, mail.Slug, agent, maxActs)
		if err != nil {
			return time.Time{}, fmt.Errorf("cannot find the actions of %s in project %s: %w", agent, mail.Slug, err)
		}
		acts = append(acts, of...)
	}
	return visitBefore(acts, now), nil
}

// visitBefore returns the newest time in acts after which the agent was inactive for at least pause, until its next
// action or until now. If there is none, it returns the time unknownVisit before now.
func visitBefore(acts []time.Time, now time.Time) time.Time {
	slices.SortFunc(acts, func(a, b time.Time) int { return b.Compare(a) })
	next := now
	for _, at := range acts {
		if at.After(now) { // the clock was set back
			continue
		}
		if next.Sub(at) >= pause {
			return at
		}
		next = at
	}
	return now.Add(-unknownVisit)
}
