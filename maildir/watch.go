package maildir

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// Happening is one thing that happened in a project, as people follow it.
type Happening struct {
	Seq     int64        `json:"seq"`               // the mark behind it: see Watch
	Project string       `json:"project,omitempty"` // slug
	At      format.Stamp `json:"at,omitzero"`
	What    string       `json:"what,omitempty"`  // HappenedMail and its like
	Agent   string       `json:"agent,omitempty"` // who did it; "" where that is not known
	ID      string       `json:"id,omitempty"`    // of the message that it is about; "" for none
	Thread  string       `json:"thread_id,omitempty"`
	Text    string       `json:"text,omitempty"` // a line that says the rest: recipients and subject, a path, a status
}

// What happens.
const (
	HappenedMail     = "mail"
	HappenedRead     = "read"
	HappenedAck      = "ack"
	HappenedClaim    = "claim"
	HappenedRelease  = "release"
	HappenedStatus   = "status"
	HappenedRegister = "register"
	HappenedEdit     = "edit" // a message was changed or removed
)

// scanChanges is how many changes Watch reads at a time.
const scanChanges = 1000

// Watch tells of what happens in a project after a mark, in order, until ctx ends or told returns an
// error; nil: in every project. Of a mark that the feed no longer knows, it tells what happens from
// now on. Errors: told's; ctx's; faults.
func (s *Store) Watch(ctx context.Context, of *Project, after int64, told func(*Happening) error) error {
	changes, err := s.index.Changes(ctx, after, 1)
	if err != nil {
		return err
	}
	gap, err := s.isGap(ctx, after, changes)
	if gap && err == nil {
		after, err = s.index.LastChange(ctx)
	}
	if err != nil {
		return err
	}
	for {
		changes, err := s.WaitChanges(ctx, after, scanChanges)
		if err != nil {
			return err
		}
		for _, c := range changes {
			if after = c.Seq; of != nil && c.Project != of.Slug {
				continue
			}
			p, err := s.knownSoon(ctx, c.Project)
			if err != nil {
				return err
			}
			if p == nil { // its folder is gone
				continue
			}
			h, err := p.happening(ctx, c)
			if err != nil {
				return err
			}
			if h == nil {
				continue
			}
			if err := told(h); err != nil {
				return err
			}
		}
	}
}

// happening is what a change of a file means to people; nil for what only repeats another change.
func (p *Project) happening(ctx context.Context, c index.Change) (*Happening, error) {
	h := &Happening{
		Project: p.Slug,
		Seq:     c.Seq,
		At:      format.At(c.At),
		Agent:   c.Agent,
		ID:      c.ID,
		Thread:  c.Thread,
	}
	switch {
	case c.Kind == format.KindCanonical && c.Op == index.Added:
		m, err := p.messageHead(ctx, c.ID)
		if errors.Is(err, ErrNotFound) { // it is gone again
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		h.What, h.Agent, h.Text = HappenedMail, m.From, "to "+strings.Join(slices.Concat(m.To, m.CC), ", ")+": "+m.Subject
	case c.Kind == format.KindCanonical:
		h.What, h.Agent, h.Text = HappenedEdit, "", c.Path+" was "+c.Op
	case c.Kind == format.KindRead && c.Op == index.Added:
		h.What = HappenedRead
	case c.Kind == format.KindAck && c.Op == index.Added:
		h.What = HappenedAck
	case c.Kind == format.KindProfile && c.Op == index.Added:
		h.What = HappenedRegister
	case c.Kind == format.KindStatus, c.Kind == format.KindClaim, c.Kind == format.KindReleased:
		return p.happeningOf(ctx, c, h)
	default:
		return nil, nil
	}
	return h, nil
}

// happeningOf fills in what is told of a status, or of a claim as it is now.
func (p *Project) happeningOf(ctx context.Context, c index.Change, h *Happening) (*Happening, error) {
	if c.Kind == format.KindStatus {
		row, err := p.store.index.Agent(ctx, p.Slug, c.Agent)
		if row != nil {
			h.Text = row.Status
		}
		h.What = HappenedStatus
		return h, err
	}
	path := c.Path
	if c.Kind == format.KindReleased {
		path = format.ClaimOfMark(path)
	}
	rows, err := p.store.index.ClaimsAt(ctx, p.Slug, []string{path})
	if err != nil {
		return nil, err
	}
	h.What, h.Text = HappenedClaim, c.Path
	if len(rows) > 0 {
		h.Agent, h.Text = rows[0].Agent, rows[0].Pattern
	}
	if c.Kind == format.KindReleased && c.Op == index.Removed {
		if len(rows) > 0 && rows[0].Created.Add(reclaimed).Before(c.At) { // it holds again
			return h, nil
		}
		return nil, nil // a new claim of the path, which the change of its file tells
	}
	if len(rows) == 0 || rows[0].Released || c.Kind == format.KindReleased {
		h.What = HappenedRelease
	}
	if c.Kind == format.KindReleased {
		h.Agent = cmp.Or(p.ReleasedBy(c.Path), h.Agent)
	}
	return h, nil
}

// reclaimed is more than a claim takes from its time to its change in the feed.
const reclaimed = 2 * time.Second

// isGap reports whether the feed may have lost changes between a mark and what it has after it.
// Marks count up by one within an index, and a new index begins far above.
func (s *Store) isGap(ctx context.Context, after int64, changes []index.Change) (bool, error) {
	if after == 0 { // of a feed that was empty
		return false, nil
	}
	if len(changes) > 0 {
		return changes[0].Seq != after+1, nil
	}
	last, err := s.index.LastChange(ctx)
	return last < after, err
}
