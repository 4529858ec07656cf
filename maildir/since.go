package maildir

import (
	"cmp"
	"context"
	"slices"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/query"
)

// News counts what has happened in a project since a given time.
type News struct {
	Messages, Threads int  // among the newest maxNews messages
	More              bool // there were more than maxNews messages
	ClaimsEnded       int
	Edits             int // messages edited by hand, among the newest editsRead changes of the store
}

const (
	maxNews   = 100 // enough for an overview; the search takes half the time of the first view
	editsRead = 1000
)

// Since counts what has happened since a given time.
func (p *Project) Since(ctx context.Context, since time.Time) (*News, error) {
	hits, more, err := p.messagesSince(ctx, since, maxNews)
	if err != nil {
		return nil, err
	}
	n := &News{Messages: len(hits), More: more}
	threads := map[string]bool{}
	for i := range hits {
		m := &hits[i]
		threads[cmp.Or(m.ThreadID, m.ID)] = true
	}
	n.Threads = len(threads)
	const all = true
	claims, err := p.Claims.List(ctx, all)
	if err != nil {
		return nil, err
	}
	now := p.mail.Store.Now()
	for i := range claims {
		if end := claims[i].End(); end.After(since) && !end.After(now) {
			n.ClaimsEnded++
		}
	}
	n.Edits, err = p.editsSince(ctx, since)
	return n, err
}

// messagesSince returns the newest messages after a given time. Their number is limited by most, and more reports
// whether there are others.
func (p *Project) messagesSince(ctx context.Context, since time.Time, most int) (hits []index.Hit, more bool, err error) {
	found, err := p.mail.Store.Index.Search(ctx, index.SearchQuery{
		Query:   query.Query{After: since},
		Project: p.mail.Slug,
		Limit:   most + 1,
	})
	hits = found.Hits
	return hits[:min(len(hits), most)], len(hits) > most, err
}

func (p *Project) editsSince(ctx context.Context, since time.Time) (n int, err error) {
	changes, err := p.NewestChanges(ctx, 0, editsRead)
	for i := range changes {
		c := &changes[i]
		if c.Kind == format.KindCanonical && c.Op == index.Changed && c.At.After(since) {
			n++
		}
	}
	return n, err
}

// Day lists what has happened in a project since a given time.
type Day struct {
	Project  string       `json:"project"` // slug
	Since    format.Stamp `json:"since_ts"`
	Messages []DayMessage `json:"messages"`       // newest first, at most maxDay
	More     bool         `json:"more,omitempty"` // there were more messages
	Agents   []DayAgent   `json:"agents"`         // active agents, the most recently active first
	Claims   []DayClaim   `json:"claims"`         // claims that were made and are still live, oldest first
}

// DayMessage is a message that was sent.
type DayMessage struct {
	ID       string       `json:"id"`
	ThreadID string       `json:"thread_id,omitempty"`
	From     string       `json:"from"`
	To       []string     `json:"to"`
	Subject  string       `json:"subject"`
	Created  format.Stamp `json:"created"`
}

// DayAgent is an agent that was active.
type DayAgent struct {
	Name       string       `json:"name"`
	LastActive format.Stamp `json:"last_active_ts"`
	Unread     int          `json:"unread"`
}

// DayClaim is a claim that was made and is still live.
type DayClaim struct {
	Agent   string       `json:"agent"`
	Pattern string       `json:"path"`
	Reason  string       `json:"reason"`
	Expires format.Stamp `json:"expires_ts"`
}

// maxDay is the maximum number of messages that a Day lists.
const maxDay = 500

// Today lists what happened since a given time, such as the last midnight in the user's time zone. No list in the
// result is nil.
func (p *Project) Today(ctx context.Context, since time.Time) (*Day, error) {
	hits, more, err := p.messagesSince(ctx, since, maxDay)
	if err != nil {
		return nil, err
	}
	d := &Day{
		Project:  p.mail.Slug,
		Since:    format.At(since),
		Messages: []DayMessage{},
		More:     more,
		Agents:   []DayAgent{},
		Claims:   []DayClaim{},
	}
	for _, m := range hits {
		to := append([]string{}, m.To...)
		d.Messages = append(d.Messages, DayMessage{m.ID, m.ThreadID, m.From, to, m.Subject, format.At(m.Created)})
	}
	const active = true
	_, err = p.Agents.EachAgent(ctx, AgentsQuery{Active: active, Take: func(a *AgentInfo) bool {
		if !a.LastActive.Before(since) {
			d.Agents = append(d.Agents, DayAgent{a.Name, format.At(a.LastActive), a.Unread})
		}
		return true
	}})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(d.Agents, func(a, b DayAgent) int {
		return cmp.Or(b.LastActive.Compare(a.LastActive.Time), cmp.Compare(a.Name, b.Name))
	})
	const all = false
	live, err := p.Claims.List(ctx, all)
	for _, c := range live {
		if !c.Created.Before(since) {
			d.Claims = append(d.Claims, DayClaim{c.Agent, c.Pattern, c.Reason, format.At(c.Expires)})
		}
	}
	return d, err
}
