package maildir

import (
	"context"
	"time"

	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
)

// Event is a change of the feed that means something to those who follow a project: an agent has
// got mail, a claim was made, renewed, released or removed, an agent's status was set. A claim that
// ends because its time is over changes no file, so it makes no event: Claim.Expires tells.
type Event struct {
	Change
	Mail   *Delivery  // of KindInbox, without its body
	Claim  *claim.Row // of KindClaim and KindReleased, as it is now; nil where its file is gone, and Agent is not known
	Status string     // of KindStatus, as it is now; "" where no status file says one
}

// EventQuery selects events of one project.
type EventQuery struct {
	What  format.Kind // KindInbox, KindClaim (with the releases) or KindStatus
	Agent string      // whose; "": everybody's, but not of KindInbox: who got a blind copy is the holder's to know
	After int64       // the mark up to which events are known; FromNow for what happens from now on
	Since time.Time   // nothing that was recorded before; zero: no matter when
	Limit int         // default 50, at most 200
}

// FromNow is the EventQuery.After of those who know nothing yet and want nothing of the past.
const FromNow = -1

// EventPage is what Events finds, oldest first.
type EventPage struct {
	Events []Event
	From   int64 // the mark that it begins at: q.After, or now
	Mark   int64 // what there is up to here is known now
	More   bool  // there may be more at once
	Missed bool  // there may have been events after q.After that are not here
}

// Bounds of a page of events, and how many changes a call looks at for them.
const (
	defaultEvents = 50
	maxEvents     = 200
	scanEvents    = 1000
)

// Events returns the events after a mark. Where the feed does not go back that far (the index was
// built anew, or keeps no changes that old) it begins now, and the page says Missed. Errors:
// ErrNotFound for the agent.
func (p *Project) Events(ctx context.Context, q EventQuery) (*EventPage, error) {
	if q.Agent != "" || q.What == format.KindInbox {
		if err := p.needAgent(ctx, refusal.Agent, q.Agent); err != nil {
			return nil, err
		}
	}
	if q.After < 0 {
		return p.eventsFromNow(ctx)
	}
	changes, err := p.store.index.Changes(ctx, q.After, scanEvents)
	if err != nil {
		return nil, err
	}
	if gap, err := p.store.isGap(ctx, q.After, changes); gap || err != nil {
		if err != nil {
			return nil, err
		}
		page, err := p.eventsFromNow(ctx)
		if page != nil {
			page.Missed = true
		}
		return page, err
	}
	return p.eventsOf(ctx, &q, changes)
}

func (p *Project) eventsFromNow(ctx context.Context) (*EventPage, error) {
	last, err := p.store.index.LastChange(ctx)
	return &EventPage{From: last, Mark: last}, err
}

// isGap reports whether the feed may have lost changes between a mark and what it has after it.
// Marks count up by one within an index, and a new index begins far above.
func (s *Store) isGap(ctx context.Context, after int64, changes []Change) (bool, error) {
	if after == 0 { // of a feed that was empty
		return false, nil
	}
	if len(changes) > 0 {
		return changes[0].Seq != after+1, nil
	}
	last, err := s.index.LastChange(ctx)
	return last < after, err
}

// eventsOf makes the page of those changes that the query wants.
func (p *Project) eventsOf(ctx context.Context, q *EventQuery, changes []Change) (*EventPage, error) {
	limit := q.Limit
	if limit <= 0 {
		limit = defaultEvents
	}
	limit = min(limit, maxEvents)
	page := &EventPage{From: q.After, Mark: q.After, More: len(changes) == scanEvents}
	for _, c := range changes {
		if len(page.Events) == limit {
			page.More = true
			break
		}
		page.Mark = c.Seq
		if c.Project != p.slug || !q.concerns(&c) {
			continue
		}
		e, err := p.eventOf(ctx, c)
		switch {
		case err != nil:
			return nil, err
		case e == nil || q.Agent != "" && e.Agent != q.Agent:
		case c.At.Before(q.Since):
			page.Missed = true
		default:
			page.Events = append(page.Events, *e)
		}
	}
	return page, nil
}

// concerns reports whether a change is of the kind that is asked for.
func (q *EventQuery) concerns(c *Change) bool {
	switch q.What {
	case format.KindInbox:
		return c.Kind == format.KindInbox && c.Op == Added && c.Agent == q.Agent
	case format.KindClaim:
		return c.Kind == format.KindClaim || c.Kind == format.KindReleased
	}
	return c.Kind == q.What
}

// eventOf adds to a change what it is about, and whose claim it is; nil for mail that is gone
// again.
func (p *Project) eventOf(ctx context.Context, c Change) (*Event, error) {
	e := &Event{Change: c}
	switch c.Kind {
	case format.KindInbox:
		d, err := p.store.index.Delivery(ctx, p.slug, c.Agent, c.ID, WithoutBody, nil)
		if err != nil || d == nil {
			return nil, err
		}
		e.Mail = d
	case format.KindClaim, format.KindReleased:
		path := c.Path
		if c.Kind == format.KindReleased {
			path = format.ClaimOfMark(path)
		}
		rows, err := p.store.index.ClaimsAt(ctx, p.slug, []string{path})
		if err != nil {
			return nil, err
		}
		if len(rows) > 0 {
			e.Claim, e.Agent = &rows[0], rows[0].Agent
		}
	case format.KindStatus:
		row, err := p.store.index.Agent(ctx, p.slug, c.Agent)
		if err != nil {
			return nil, err
		}
		if row != nil {
			e.Status = row.Status
		}
	}
	return e, nil
}

// WaitEvents is Events that waits for one where there is none, or for events that were missed. It
// returns the page as it is after that long or when w ends the wait: nothing, and how far it has
// looked. Errors: those of Events, ctx's, w.Admit's; ErrNotFound where the project's folder is
// removed.
func (p *Project) WaitEvents(ctx context.Context, q EventQuery, w Waiting, most time.Duration) (*EventPage, error) {
	over := time.NewTimer(most)
	defer over.Stop()
	for {
		bell := p.store.feed.any()
		if q.What == format.KindInbox {
			bell = p.store.feed.agent(p.slug, q.Agent)
		}
		page, err := p.Events(ctx, q)
		if err != nil || len(page.Events) > 0 || page.Missed {
			return page, err
		}
		if q.After = page.Mark; page.More {
			continue
		}
		if again, err := p.awaitBell(ctx, &w, bell, over.C); !again || err != nil {
			return page, err
		}
	}
}
