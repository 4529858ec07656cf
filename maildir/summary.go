package maildir

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/refusal"
	"mailtree/maildir/summary"
)

// Summarize summarizes a thread. The result is deterministic, except for Text and Note if Config.Refine is set. It
// returns ErrNotFound if there is no such thread. See docs/reference/tools.md, "Summaries".
func (p *Project) Summarize(ctx context.Context, thread string, examples bool) (*summary.Summary, error) {
	s, messages, body, err := p.condense(ctx, thread, examples)
	if err != nil || p.mail.Store.Refine == nil {
		return s, err
	}
	text, err := threadText(messages, body)
	if err != nil {
		return nil, err
	}
	if s.Text, err = p.mail.Store.Refine(ctx, text); err != nil {
		p.mail.Store.Log.Warn("the command that summarizes threads failed", "thread", s.Thread, "error", err)
		s.Note = errors.Join(s.Note, &Error{
			What: refusal.Note("The command that summarizes threads failed ({why}), so this summary is based only on " +
				"the structure of the messages."),
			Why: err.Error(),
		})
	}
	return s, nil
}

// Condense is like Summarize, but does not run Config.Refine, which may take a long time.
func (p *Project) Condense(ctx context.Context, thread string) (*summary.Summary, error) {
	const examples = false
	s, _, _, err := p.condense(ctx, thread, examples)
	return s, err
}

// condense summarizes a thread without Config.Refine. It also returns the thread's messages, and a function that reads
// their bodies.
func (p *Project) condense(ctx context.Context, thread string, examples bool) (
	s *summary.Summary, messages []summary.Message, body func(id string) (string, error), err error,
) {
	thread, note, err := p.threadNamed(ctx, thread)
	if err != nil {
		return nil, nil, nil, err
	}
	rows, err := p.Thread(ctx, thread, false)
	if err != nil {
		return nil, nil, nil, err
	}
	messages = make([]summary.Message, len(rows))
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
	// One query reads all short bodies, because separate queries for the bodies took a quarter of the total time.
	var after int64
	if older := len(rows) - summary.MaxMessages; older > 0 {
		after = rows[older-1].Cursor
	}
	short, err := p.mail.Store.Index.ShortBodies(ctx, p.mail.Slug, thread, after)
	if err != nil {
		return nil, nil, nil, err
	}
	body = func(id string) (string, error) {
		if text, ok := short[id]; ok {
			return text, nil
		}
		return p.mail.Store.Index.Body(ctx, p.mail.Slug, id, 0, summary.MaxBody)
	}
	if s, err = summary.Of(ctx, messages, body, examples); err != nil {
		return nil, nil, nil, err
	}
	s.Thread = thread
	if note != nil {
		s.Note = note
	}
	return s, messages, body, nil
}

// mostRefined is the maximum total size, in bytes, of the bodies that Refine receives.
const mostRefined = 1 << 20

// threadText returns the newest messages of a thread as text, oldest first.
func threadText(messages []summary.Message, body func(id string) (string, error)) ([]byte, error) {
	var parts []string
	for left, i := mostRefined, len(messages)-1; i >= 0; i-- {
		m := messages[i]
		text, err := body(m.ID)
		if err != nil {
			return nil, err
		}
		if left -= len(text); left < 0 {
			break
		}
		parts = append(parts, fmt.Sprintf("From: %s\nTo: %s\nDate: %s\nId: %s\nSubject: %s\n\n%s\n\n", m.From, strings.Join(m.To, ", "),
			m.Created.UTC().Format(time.RFC3339), m.ID, m.Subject, strings.TrimSpace(text)))
	}
	slices.Reverse(parts)
	return []byte(strings.Join(parts, "")), nil
}
