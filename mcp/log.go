package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/history"
	"mailtree/mcp/tool"
)

// LogAsk is the body of POST /mailtree/log: whose history.
type LogAsk struct {
	Project string `json:"project"`      // its key
	Of      string `json:"of,omitempty"` // as of maildir.LogQuery
	Patch   bool   `json:"patch,omitempty"`
	Limit   int    `json:"limit,omitempty"`
}

// LogLine is one line of the answer: an entry of the history, how far back the search is, or why it
// ends.
type LogLine struct {
	*LogEntry
	Looked int    `json:"looked,omitempty"` // commits
	Back   string `json:"back_to,omitempty"`
	Error  string `json:"error,omitempty"`
}

// LogEntry is a history.Entry on the wire.
type LogEntry struct {
	At      string    `json:"at"`
	Commit  string    `json:"commit"`
	Verb    string    `json:"verb"`
	Who     string    `json:"who,omitempty"`
	ID      string    `json:"id,omitempty"`
	Summary string    `json:"summary,omitempty"`
	Door    string    `json:"door,omitempty"`
	Files   []LogFile `json:"files,omitempty"`
}

// LogFile is a file that an entry changed.
type LogFile struct {
	Path   string `json:"path"`
	Change string `json:"change"`
	Patch  string `json:"patch,omitempty"`
}

// logHistory answers lines of JSON as they are found.
func (s *Server) logHistory(w http.ResponseWriter, r *http.Request) {
	var ask LogAsk
	if !s.readVerb(w, r, &ask) {
		return
	}
	s.lasting(w, r, func(ctx context.Context, a *answer) {
		begun := false
		write := func(line LogLine) error {
			if !begun {
				begun = true
				a.Header().Set("Content-Type", "application/x-ndjson")
			}
			if _, err := fmt.Fprintf(a, "%s\n", tool.Encode(line)); err != nil {
				return err
			}
			return a.FlushError()
		}
		err := ask.tell(ctx, s.cfg.Store, write)
		switch {
		case err == nil && !begun:
			a.Header().Set("Content-Type", "application/x-ndjson")
			a.WriteHeader(http.StatusOK)
		case err == nil || ctx.Err() != nil:
		case begun:
			_ = write(LogLine{Error: s.cfg.Explain(err)})
		default:
			s.answerVerb(a, r, nil, err)
		}
	})
}

// tell calls write for each line. Errors: those of maildir.Project.Log; write's.
func (ask *LogAsk) tell(ctx context.Context, store *maildir.Store, write func(LogLine) error) error {
	p, err := store.Project(ctx, ask.Project)
	if err != nil {
		return err
	}
	var gone error
	q := maildir.LogQuery{
		Of:    ask.Of,
		Limit: ask.Limit,
		Progress: func(looked int, back time.Time) {
			gone = errors.Join(gone, write(LogLine{Looked: looked, Back: tool.Stamp(back)}))
		},
	}
	return p.Log(ctx, q, func(e *history.Entry) error {
		line := LogEntry{
			At:      tool.Stamp(e.At),
			Commit:  e.Commit,
			Verb:    e.Verb,
			Who:     e.Who,
			ID:      e.ID,
			Summary: e.Summary,
			Door:    e.Door,
		}
		for _, f := range e.Files {
			shown := LogFile{Path: f.Path, Change: f.Op}
			if ask.Patch {
				if shown.Patch, err = f.Patch(); err != nil {
					return err
				}
			}
			line.Files = append(line.Files, shown)
		}
		return errors.Join(gone, write(LogLine{LogEntry: &line}))
	})
}
