package mail

import (
	"context"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/mcp/tool"
)

// maxHistory is how many entries resource://history has, before the room of the answer ends it.
const maxHistory = 200

type (
	historyResource struct {
		Project string         `json:"project"`
		ID      string         `json:"id"`
		History []historyShape `json:"history"`
		Note    string         `json:"note,omitempty"`
	}
	historyShape struct {
		At      format.Stamp         `json:"at"`
		Verb    string               `json:"verb"`
		Who     string               `json:"who,omitempty"`
		Door    string               `json:"door,omitempty"`
		Summary string               `json:"summary,omitempty"`
		Commit  string               `json:"commit"`
		Files   []history.FileChange `json:"files"`
	}
)

// olderNote is the note of a history that is cut.
const olderNote = "there is more, which is older: `mailtree log ID` shows it"

// readHistory reads the newest of what was done with a message. It tells of no blind copy (Invariant
// I7): any agent may ask.
func (t *Toolset) readHistory(ctx context.Context, p *maildir.Project, r ref) (any, error) {
	out := historyResource{Project: p.Slug, ID: r.name, History: []historyShape{}}
	q := maildir.LogQuery{Of: r.name, Limit: maxHistory + 1, Open: true}
	err := p.Log(ctx, q, func(e *history.Entry) error {
		out.History = append(out.History, historyShape{
			At:      e.At,
			Verb:    e.Verb,
			Who:     e.Who,
			Door:    e.Door,
			Summary: e.Summary,
			Commit:  e.Commit,
			Files:   tool.Listed(e.Files),
		})
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
