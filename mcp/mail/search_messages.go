package mail

import (
	"context"

	"mailtree/maildir"
)

type hitShape struct {
	ID         string   `json:"id"`
	ThreadID   string   `json:"thread_id,omitempty"`
	From       string   `json:"from"`
	To         []string `json:"to"`
	Subject    string   `json:"subject"`
	Created    string   `json:"created"`
	Importance string   `json:"importance"`
	Snippet    string   `json:"snippet"`
}

type hitsShape struct {
	Hits []hitShape `json:"hits"`
	Next string     `json:"next_cursor,omitempty"`
	Note string     `json:"note,omitempty"`
}

func searchMessages() tool {
	return tool{
		name: "search_messages", title: "Search messages", hints: reads(),
		about: "Full-text search over subjects and bodies of all messages of a project, newest first.",
		in: []prop{
			projectKey(),
			need("query", str(`words, "phrases", prefix*, AND OR NOT, and from: to: thread: after: before:`, "plan users from:GreenCastle")),
			may("limit", num("", 1, maxPage, defaultPage)),
			may("cursor", str("next_cursor of the page before", "1234")),
			may("order", oneOf("newest first, or best match first", "newest", "newest", "rank")),
		},
		out: []prop{
			need("hits", arrayOf("", object("", need("id", text("message id")), may("thread_id", text("")), need("from", text("")), need("to", texts("")),
				need("subject", text("")), need("created", text("")), need("importance", text("")), need("snippet", text("matches stand between **"))))),
			may("next_cursor", text("pass as cursor for more; absent on the last page")),
			may("note", text("how the query was taken, when not as written")),
		},
		run: func(ctx context.Context, t *Toolset, a *args) (any, error) {
			r := maildir.SearchRequest{Text: a.text("query"), Limit: a.count("limit", 1, maxPage), Cursor: a.text("cursor"), Rank: a.choice("order") == "rank"}
			p, err := t.project(ctx, a)
			if err != nil {
				return nil, err
			}
			page, err := p.Search(ctx, r)
			if err != nil {
				return nil, err
			}
			return shapeHits(page), nil
		},
	}
}

func shapeHits(page *maildir.SearchPage) hitsShape {
	out := hitsShape{make([]hitShape, len(page.Hits)), page.Next, page.Note}
	for i, h := range page.Hits {
		out.Hits[i] = hitShape{h.ID, h.ThreadID, h.From, strs(h.To), h.Subject, stamp(h.Created), h.Importance, h.Snippet}
	}
	return out
}
