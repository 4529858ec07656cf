package maildir

import (
	"cmp"
	"context"
	"slices"
	"time"

	"mailtree/maildir/claim"
	"mailtree/maildir/query"
)

// Day is what happened in a project since a moment.
type Day struct {
	Since    time.Time
	Messages []MessageRow // newest first, without bodies, at most maxDay
	More     bool         // there were more messages
	Agents   []AgentRow   // who did something, the last one first
	Claims   []claim.Row  // that were made and hold still, by creation
}

// maxDay is how many messages of a day are told.
const maxDay = 500

// Today tells what happened since a moment, such as the last midnight of the one who asks.
func (p *Project) Today(ctx context.Context, since time.Time) (*Day, error) {
	d := &Day{Since: since}
	found, err := p.store.index.Search(ctx, SearchQuery{
		Query:   query.Query{After: since},
		Project: p.slug,
		Limit:   maxDay + 1,
	})
	if err != nil {
		return nil, err
	}
	if d.More = len(found.Hits) > maxDay; d.More {
		found.Hits = found.Hits[:maxDay]
	}
	for _, h := range found.Hits {
		d.Messages = append(d.Messages, h.MessageRow)
	}
	const active = true
	_, err = p.EachAgent(ctx, AgentsQuery{Active: active, Take: func(a *AgentInfo) bool {
		if !a.LastActive.Before(since) {
			d.Agents = append(d.Agents, a.AgentRow)
		}
		return true
	}})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(d.Agents, func(a, b AgentRow) int {
		return cmp.Or(b.LastActive.Compare(a.LastActive), cmp.Compare(a.Name, b.Name))
	})
	const all = false
	live, err := p.Claims(ctx, all)
	for _, c := range live {
		if !c.Created.Before(since) {
			d.Claims = append(d.Claims, c)
		}
	}
	return d, err
}
