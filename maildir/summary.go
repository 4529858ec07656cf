package maildir

import (
	"context"
	"slices"

	"mailtree/maildir/summary"
)

// Summarize condenses a thread; deterministic. Errors: ErrNotFound.
// See docs/tools.md, "Summaries".
func (p *Project) Summarize(ctx context.Context, thread string, examples bool) (*summary.Summary, error) {
	rows, err := p.Thread(ctx, thread, false)
	if err != nil {
		return nil, err
	}
	messages := make([]summary.Message, len(rows))
	for i, m := range rows {
		messages[i] = summary.Message{
			ID:        m.ID,
			From:      m.From,
			To:        slices.Concat(m.To, m.CC),
			InReplyTo: m.InReplyTo,
			Subject:   m.Subject,
			Created:   m.Created,
		}
	}
	body := func(id string) (string, error) { return p.store.index.Body(ctx, p.slug, id, 0, summary.MaxBody) }
	return summary.Of(ctx, messages, body, examples)
}
