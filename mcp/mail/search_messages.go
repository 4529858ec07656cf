package mail

import (
	"cmp"
	"context"

	"mailtree/maildir"
	"mailtree/maildir/index"
	"mailtree/mcp/tool"
)

// Hit is a message found by a search.
type Hit struct {
	ID         string   `json:"id"`
	ThreadID   string   `json:"thread_id,omitempty"`
	From       string   `json:"from"`
	To         []string `json:"to"`
	Subject    string   `json:"subject"`
	Created    string   `json:"created"`
	Importance string   `json:"importance"`
	Auth       string   `json:"auth"`    // how the sender was authenticated, or "self-asserted"
	Snippet    string   `json:"snippet"` // an excerpt in which ** encloses each match
	bodyShape
}

// Hits is the result of search_messages.
type Hits struct {
	Hits   []Hit  `json:"hits"`
	Next   string `json:"next_cursor,omitempty"`
	Ranked int    `json:"ranked_newest,omitempty"`
	Note   string `json:"note,omitempty"`
}

type searchRequest struct {
	Project string `json:"project_key" jsonschema:"path of the top of the working tree" example:"/abs/path/backend"`
	Text    string `json:"query" jsonschema:"words, \"phrases\", prefix*, AND OR NOT -word (), from: to: cc: subject: thread: importance: after: before: since:2d has:file is:unread" example:"plan users from:GreenCastle"`
	Agent   string `json:"agent_name,omitempty" jsonschema:"your name, for is:unread" example:"BlueLake"`
	Bodies  bool   `json:"include_bodies,omitempty" jsonschema:"return the bodies too"`
	Limit   int    `json:"limit,omitempty" jsonschema:"max messages to return" min:"1" max:"200" default:"20" as:"limit"`
	Cursor  string `json:"cursor,omitempty" jsonschema:"next_cursor of the previous page" example:"1234"`
	Order   string `json:"order,omitempty" jsonschema:"rank: best match first" enum:"newest,rank" default:"newest"`
}

func (t *Toolset) searchMessages() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "search_messages",
		Hints: tool.Reads(),
		About: "Use to find earlier messages. Searches subjects and bodies of all messages in a project, and returns " +
			"excerpts. Read one in full at resource://message/{id}.",
		Out: Hits{},
	}, func(ctx context.Context, r *searchRequest) (any, error) {
		p, note, err := t.project(ctx, r.Project)
		if err != nil {
			return nil, err
		}
		if err := tool.HoldOf(ctx).Reserve(ctx, searching); err != nil {
			return nil, err
		}
		agent, err := p.Agents.Named(ctx, cmp.Or(r.Agent, tool.CallerOf(ctx).Agent))
		if err != nil {
			return nil, err
		}
		page, err := p.Search(ctx, maildir.SearchRequest{
			Text: r.Text, Agent: agent, Limit: r.Limit, Cursor: r.Cursor, Rank: r.Order == "rank",
		})
		if err != nil {
			return nil, err
		}
		note = notes(note, t.Note(ctx, page.Note))
		if r.Bodies {
			return t.addBodies(ctx, p, page, note)
		}
		out := t.shapeHits(page, note)
		n, err := tool.Fit(ctx, t.budget, tool.InTool, Hits{Note: out.Note}, out.Hits)
		page.Cut(n)
		out.Hits, out.Next = out.Hits[:n], page.Next
		return out, err
	})
}

// searching is the number of bytes of memory that a search of the longest possible body needs.
const searching = 8 << 20

func (t *Toolset) shapeHits(page *maildir.SearchPage, note string) Hits {
	out := Hits{
		Hits:   make([]Hit, len(page.Hits)),
		Next:   page.Next,
		Ranked: page.Ranked,
		Note:   note,
	}
	for i := range page.Hits {
		h := &page.Hits[i]
		by, _ := t.store.VerifiedIn(&h.MessageRow)
		out.Hits[i] = Hit{
			ID:         h.ID,
			ThreadID:   h.ThreadID,
			From:       h.From,
			To:         tool.Listed(h.To),
			Subject:    h.Subject,
			Created:    tool.Stamp(h.Created),
			Importance: h.Importance,
			Auth:       by.String(),
			Snippet:    h.Snippet,
		}
	}
	return out
}

// addBodies returns the response, with the bodies of as many hits as fit.
func (t *Toolset) addBodies(ctx context.Context, p *maildir.Project, page *maildir.SearchPage, note string) (any, error) {
	out := t.shapeHits(page, note)
	heads := map[string]Hit{}
	for _, h := range out.Hits {
		heads[h.ID] = h
	}
	out.Hits = nil
	room := t.budget.Room(ctx, tool.InTool, out, func(m *index.MessageRow) any { return heads[m.ID] })
	if err := p.AddBodies(ctx, page, room); err != nil {
		return nil, err
	}
	out = t.shapeHits(page, note)
	for i := range out.Hits {
		out.Hits[i].addBody(&page.Hits[i].MessageRow)
	}
	return out, nil
}
