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

// Entry is a decision, or a question without an answer.
type Entry struct {
	Project string       `json:"project"` // slug
	Text    string       `json:"text"`    // what was decided; of a question its subject, without "Re:"
	ID      string       `json:"message_id"`
	Thread  string       `json:"thread_id"`
	Subject string       `json:"subject"` // of the message, without "Re:"
	From    string       `json:"from"`
	At      format.Stamp `json:"ts"`
}

// Decided lists decisions.
type Decided struct {
	Since     format.Stamp `json:"since_ts"`
	Decisions []Entry      `json:"decisions"`      // newest first, at most maxDecisions; never nil
	More      bool         `json:"more,omitempty"` // there may be others
}

// Account says what happened since a time.
type Account struct {
	Decided
	Closed int     `json:"closed"` // number of threads that were closed
	Open   []Entry `json:"open"`   // questions without an answer, the newest of each thread, newest first; never nil
}

// These are the limits of an account.
const (
	maxRead      = 200                 // messages of a project that are searched for decisions, the newest
	maxDecisions = 200                 // decisions that are listed
	maxAsked     = 1000                // questions of a project that are considered, the newest
	askedFor     = 14 * 24 * time.Hour // how long a question stays open without an answer
)

// DecidedSince returns what was decided in the projects since a time. A message that was sent from one project to another
// counts once, and so does a decision that is repeated in its thread.
func DecidedSince(ctx context.Context, projects []*core.Mail, since time.Time) (*Decided, error) {
	d := &Decided{Since: format.At(since)}
	for _, mail := range projects {
		found, more, err := decided(ctx, mail, since)
		if err != nil {
			return nil, fmt.Errorf("find what was decided in project %s: %w", mail.Slug, err)
		}
		d.Decisions, d.More = append(d.Decisions, found...), d.More || more
	}
	if d.Decisions = once(d.Decisions); len(d.Decisions) > maxDecisions {
		d.Decisions, d.More = d.Decisions[:maxDecisions], true
	}
	return d, nil
}

// decided returns the decisions of one project. The result more reports that it has not read all messages.
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

// once returns the decisions, newest first. Of a decision that is repeated in its thread, it returns the first, and of
// the copies of a message that was sent to another project, the one in its author's project.
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

// homeFirst compares the authors of two copies of a message. In the author's project, the author has no address.
func homeFirst(a, b string) int {
	away := func(from string) int { return map[bool]int{false: 1}[core.IsAgent(from)] }
	return cmp.Compare(away(a), away(b))
}

// Since returns what happened in the projects since a time.
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
			return nil, fmt.Errorf("find the questions in project %s: %w", mail.Slug, err)
		}
		for _, a := range found {
			if !format.ServerName(a.From) { // nobody reads answers to the server
				all = append(all, asked{mail.Slug, a})
			}
		}
	}
	account := &Account{Decided: *d}
	account.Closed, account.Open = settle(all, since)
	return account, nil
}

// asked is a message of a project that asks for an answer.
type asked struct {
	project string
	index.Asked
}

// settle returns how many threads were closed since a time, and the newest open question of each other thread. A message
// that was sent to another project is settled if one of its copies is.
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
	// pause is how long an agent must do nothing for a visit to end.
	pause = time.Hour
	// maxActs is how many of an agent's newest actions in a project are considered.
	maxActs = 1000
	// unknownVisit is how long ago the last visit was if nothing shows when it was.
	unknownVisit = 24 * time.Hour
)

// LastLooked returns when the agent's last visit to the projects ended, before the present one. The marks and the
// messages of the agent show that, because nothing else is written when somebody only looks.
func LastLooked(ctx context.Context, projects []*core.Mail, agent string, now time.Time) (time.Time, error) {
	var acts []time.Time
	for _, mail := range projects {
		of, err := mail.Store.Index.Acts(ctx, mail.Slug, agent, maxActs)
		if err != nil {
			return time.Time{}, fmt.Errorf("find what %s did in project %s: %w", agent, mail.Slug, err)
		}
		acts = append(acts, of...)
	}
	return visitBefore(acts, now), nil
}

// visitBefore returns the newest of the times that is followed by a pause before the next one or, for the newest of all,
// before now. If there is none, it returns the time unknownVisit before now.
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
