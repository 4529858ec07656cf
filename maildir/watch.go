package maildir

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/holds"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
)

// Event describes one event in a project in human-readable form.
type Event struct {
	Seq     int64        `json:"seq"`               // the position in the feed after the event; see Watch
	Project string       `json:"project,omitempty"` // slug
	At      format.Stamp `json:"at,omitzero"`
	What    string       `json:"what,omitempty"`  // one of the Happened constants below
	Agent   string       `json:"agent,omitempty"` // the agent that caused the event; "" if unknown
	ID      string       `json:"id,omitempty"`    // the message's id; "" if there is none
	Thread  string       `json:"thread_id,omitempty"`
	Text    string       `json:"text,omitempty"` // recipients and subject, a path, a status, or a sentence about a hold
}

// Values of Event.What.
const (
	HappenedMail     = "mail"
	HappenedRead     = "read"
	HappenedAck      = "ack"
	HappenedClaim    = "claim"
	HappenedRelease  = "release"
	HappenedStatus   = "status"
	HappenedRegister = "register"
	HappenedHold     = "hold"
	HappenedGo       = "go"   // a hold has ended
	HappenedEdit     = "edit" // a message was changed or removed
)

// scanChanges is the number of changes that Watch reads at a time.
const scanChanges = 1000

// Watch calls told for every event after the given position in the feed, in order, until ctx ends or told returns an
// error. If of is nil, Watch reports the events of all projects. Otherwise, it reports only the events of that project.
// If the feed no longer contains the changes after that position, Watch reports only new events. It returns any error
// from told or ctx, and faults.
func (s *Store) Watch(ctx context.Context, of *Project, after int64, told func(*Event) error) error {
	changes, err := s.core.Index.Changes(ctx, after, 1)
	if err != nil {
		return err
	}
	gap, err := s.isGap(ctx, after, changes)
	if gap && err == nil {
		after, err = s.core.Index.LastChange(ctx)
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
			if after = c.Seq; of != nil && c.Project != of.mail.Slug {
				continue
			}
			p, err := s.knownSoon(ctx, c.Project)
			if err != nil {
				return err
			}
			if p == nil { // the project's folder was removed
				continue
			}
			h, err := p.event(ctx, c)
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

// event returns the event for a change to a file. It returns nil if another change already reports the same event.
func (p *Project) event(ctx context.Context, c index.Change) (*Event, error) {
	h := &Event{
		Project: p.mail.Slug,
		Seq:     c.Seq,
		At:      format.At(c.At),
		Agent:   c.Agent,
		ID:      c.ID,
		Thread:  c.Thread,
	}
	switch {
	case c.Kind == format.KindCanonical && c.Op == index.Added:
		m, err := p.mail.HeadNamed(ctx, refusal.InReplyTo, c.ID)
		if errors.Is(err, ErrNotFound) { // the message has been removed since then
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
	case c.Kind == format.KindHold:
		return p.eventOfHold(ctx, c, h)
	case c.Kind == format.KindStatus, c.Kind == format.KindClaim, c.Kind == format.KindReleased:
		return p.eventOf(ctx, c, h)
	default:
		return nil, nil
	}
	return h, nil
}

// eventOf completes the event for a change to an agent's status or to a claim.
func (p *Project) eventOf(ctx context.Context, c index.Change, h *Event) (*Event, error) {
	if c.Kind == format.KindStatus {
		row, err := p.mail.Store.Index.Agent(ctx, p.mail.Slug, c.Agent)
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
	rows, err := p.mail.Store.Index.ClaimsAt(ctx, p.mail.Slug, []string{path})
	if err != nil {
		return nil, err
	}
	h.What, h.Text = HappenedClaim, c.Path
	if len(rows) > 0 {
		h.Agent, h.Text = rows[0].Agent, rows[0].Pattern
	}
	if c.Kind == format.KindReleased && c.Op == index.Removed {
		if len(rows) > 0 && rows[0].Created.Add(reclaimed).Before(c.At) { // the claim is live again
			return h, nil
		}
		return nil, nil // this is a new claim on the path; the change to the claim's file reports it
	}
	if len(rows) == 0 || rows[0].Released || c.Kind == format.KindReleased {
		h.What = HappenedRelease
	}
	if c.Kind == format.KindReleased {
		h.Agent = cmp.Or(p.Claims.ReleasedBy(c.Path), h.Agent)
	}
	return h, nil
}

// eventOfHold completes the event for an agent's hold. It returns nil if the hold no longer exists.
func (p *Project) eventOfHold(ctx context.Context, c index.Change, h *Event) (*Event, error) {
	if c.Op == index.Removed {
		h.What, h.Agent, h.Text = HappenedGo, "", holds.Ended(c.Agent)
		return h, nil
	}
	row, err := p.mail.Store.Index.Agent(ctx, p.mail.Slug, c.Agent)
	if err != nil || row == nil || row.Hold == nil {
		return nil, err
	}
	held := Held{Agent: row.Name, Hold: *row.Hold}
	h.What, h.Agent, h.Text = HappenedHold, held.By, held.Sentence()
	return h, nil
}

// reclaimed is an upper bound on the time between a claim's creation and the time its change appears in the feed.
const reclaimed = 2 * time.Second

// isGap reports whether the feed may have lost changes between the position after and the changes that follow. Within
// one index, positions increase by one. A new index starts at a much higher position.
func (s *Store) isGap(ctx context.Context, after int64, changes []index.Change) (bool, error) {
	if after == 0 { // the feed was still empty when the caller got this position
		return false, nil
	}
	if len(changes) > 0 {
		return changes[0].Seq != after+1, nil
	}
	last, err := s.core.Index.LastChange(ctx)
	return last < after, err
}
