package mail

import (
	"context"

	"mailtree/maildir"
	"mailtree/maildir/history"
	"mailtree/mcp/tool"
)

// maxHistory is the maximum number of entries in resource://history. The response's size limit may allow fewer.
const maxHistory = 200

type historyResource struct {
	Project string          `json:"project"`
	ID      string          `json:"id"`
	History []history.Entry `json:"history"`
	Note    string          `json:"note,omitempty"`
}

// olderNote is the note in a response that omits older entries.
const olderNote = "older entries are omitted; to see them, run `mailtree log ID`"

// readHistory returns the newest operations on a message. The response does not name bcc recipients (Invariant I7),
// because any agent may read the history.
func (t *Toolset) readHistory(ctx context.Context, p *maildir.Project, r ref) (any, error) {
	out := historyResource{Project: p.Slug, ID: r.name, History: []history.Entry{}}
	q := maildir.LogQuery{Of: r.name, Limit: maxHistory + 1, Open: true}
	err := p.Log(ctx, q, func(e *history.Entry) error {
		e.ID, e.Files = "", tool.Listed(e.Files) // the resource contains the message's id only once
		out.History = append(out.History, *e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	rest := historyResource{Project: p.Slug, ID: r.name, Note: olderNote}
	n, err := tool.Fit(ctx, t.budget, tool.InResource, rest, out.History[:min(maxHistory, len(out.History))])
	if n < len(out.History) {
		out.History, out.Note = out.History[:n], olderNote
	}
	return out, err
}
