package mcp

import (
	"context"
	"errors"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
)

// LogLine is one line of the response to POST /mailtree/log. It is a history entry or a report on the progress of the
// search.
type LogLine struct {
	*history.Entry
	Looked int          `json:"looked,omitempty"` // number of commits searched
	Back   format.Stamp `json:"back_to,omitzero"`
}

// logHistory sends the history's entries as they are found.
func (s *Server) logHistory(ctx context.Context, p *maildir.Project, q *maildir.LogQuery, say func(any) error) error {
	var gone error
	q.Progress = func(looked int, back time.Time) {
		gone = errors.Join(gone, say(LogLine{Looked: looked, Back: format.At(back)}))
	}
	return p.Log(ctx, *q, func(e *history.Entry) error { return errors.Join(gone, say(LogLine{Entry: e})) })
}
