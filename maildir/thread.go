package maildir

import (
	"context"
	"strings"
)

// Message reads one message. Errors: ErrNotFound.
func (p *Project) Message(ctx context.Context, id string) (*MessageRow, error) {
	m, err := p.store.index.Message(ctx, p.slug, id)
	if err == nil && m == nil {
		err = p.needReadMessage(id)
	}
	if err == nil && m == nil {
		err = errorf(ErrNotFound, "No message %s in project %s. search_messages finds messages by their text.", quote(id), p.name())
	}
	return m, err
}

// Thread lists a thread oldest first: every message with that thread_id, and the message whose id it is.
// Errors: ErrNotFound. Spec: 3.
func (p *Project) Thread(ctx context.Context, id string, bodies bool) ([]MessageRow, error) {
	rows, err := p.store.index.Thread(ctx, p.slug, id, bodies)
	if err == nil && len(rows) == 0 {
		if err := p.needRead(messagesDir, agentsDir); err != nil {
			return nil, err
		}
		e := errorf(ErrNotFound, "No thread %s in project %s.", quote(id), p.name())
		names, nerr := p.store.index.Names(ctx, p.slug, KindOther, cut(id, 3), 100)
		if e.Near = Near(id, names); nerr == nil && len(e.Near) > 0 {
			e.Text += " Did you mean " + strings.Join(e.Near, " or ") + "?"
		} else {
			e.Text += " search_messages finds messages by their text, and each hit names its thread."
		}
		err = e
	}
	return rows, err
}
