package maildir

import (
	"context"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
)

// LogQuery selects entries of Project.Log.
type LogQuery struct {
	// Of selects the entries. It can be an agent (the agent's operations, and edits by others in its folder), a message
	// id (may be shortened), a thread (the operations on its messages), or a path in the tree. "" selects everything.
	Of    string
	Since time.Time `json:",omitzero"` // omits older entries; the zero time omits none
	Limit int       // maximum number of entries; 0 means all
	Patch bool      // include the changed lines

	// Open omits everything that would reveal a message's bcc recipients. It is for callers who must not see these
	// recipients (Invariant I7).
	Open bool

	Progress func(looked int, back time.Time) `json:"-"` // reports progress, as in history.Query
}

// Log passes every selected entry of the history to each, newest first, until each returns an error or ctx ends. It
// returns ErrNotFound if the history has no entry for q.Of, and ErrInvalid for a path outside the tree.
func (p *Project) Log(ctx context.Context, q LogQuery, each func(*history.Entry) error) error {
	find := p.logged
	if q.Open {
		find = p.openLog
	}
	h, show, err := find(ctx, q)
	if err != nil {
		return err
	}
	h.Progress = q.Progress
	told := 0
	return p.mail.History.Walk(ctx, h, func(r *history.Revision) error {
		for _, e := range r.Entries() {
			if !show(&e) {
				continue
			}
			if e.At.Before(q.Since) {
				return fs.SkipAll
			}
			if err := p.tell(ctx, &q, &e, each); err != nil {
				return err
			}
			if told++; told == q.Limit {
				return fs.SkipAll
			}
		}
		return nil
	})
}

// tell adds the message's subject and the changed lines to an entry, if needed, and then passes the entry to each.
func (p *Project) tell(ctx context.Context, q *LogQuery, e *history.Entry, each func(*history.Entry) error) error {
	if e.ID != "" && e.Summary == e.Who+" "+e.ID { // the operation only changed marks
		m, err := p.mail.Store.Index.Message(ctx, p.mail.Slug, e.ID, index.WithoutBody, nil)
		if err != nil {
			return err
		}
		if m != nil {
			e.Subject = m.Subject
		}
	}
	for i := range e.Files {
		if f := &e.Files[i]; q.Patch {
			var err error
			if f.Lines, err = f.Patch(); err != nil {
				return err
			}
		}
	}
	return each(e)
}

// logged returns the history query for an agent, a message, a thread or a path, and a function that reports whether
// to show an entry.
func (p *Project) logged(ctx context.Context, q LogQuery) (h history.Query, show func(*history.Entry) bool, err error) {
	show = func(*history.Entry) bool { return true }
	of, clean := q.Of, path.Clean(q.Of)
	switch {
	case of == "":
		return history.Everything(), show, nil
	case path.IsAbs(of) || clean == ".." || strings.HasPrefix(clean, "../"):
		return h, nil, &Error{
			What: refusal.Invalid("{name} is not a path in the project's mail tree: use a path such as " +
				"agents/BlueLake or messages/2026."),
			Name: of,
		}
	case strings.Contains(of, "/"):
		return history.OfPath(clean), touches, nil
	}
	if h, err = p.namedLog(ctx, q); err != nil || h.File != nil {
		return h, show, err
	}
	folders := []string{format.AgentsDir, format.MessagesDir, format.ClaimsDir, format.AttachmentsDir}
	if strings.Contains(of, ".") || slices.Contains(folders, of) {
		return history.OfPath(clean), touches, nil
	}
	if day := history.DayOf(of); !day.IsZero() { // the message may no longer be in the tree
		return history.OfMessages([]string{of}, day), show, nil
	}
	switch q.Of, err = p.formerID(ctx, of); {
	case err != nil:
		return h, nil, err
	case q.Of == "" || q.Of == of:
		return h, nil, p.mail.NoMention(ctx, of)
	}
	return p.logged(ctx, q)
}

// touches reports whether the entry contains any of the requested files.
func touches(e *history.Entry) bool { return len(e.Files) > 0 }

// namedLog returns the query for an existing agent or message, or for a thread. It returns the zero value if none of
// these exists.
func (p *Project) namedLog(ctx context.Context, q LogQuery) (h history.Query, err error) {
	of := q.Of
	agent, err := p.mail.AgentNamed(ctx, of)
	if err != nil {
		return h, err
	}
	if is, err := p.mail.HasAgent(ctx, agent); err != nil || is {
		return history.OfAgent(agent), err
	}
	m, err := p.mail.Store.Index.Message(ctx, p.mail.Slug, of, index.WithoutBody, nil)
	if err != nil {
		return h, err
	}
	if m != nil {
		return history.OfMessages([]string{of}, history.DayOf(m.Path)), nil
	}
	return p.threadLog(ctx, of, q.Progress)
}

// threadLog returns the query for a thread: its messages in the tree, and its removed messages. It returns the zero
// value if no such thread ever existed.
func (p *Project) threadLog(ctx context.Context, thread string, progress func(int, time.Time)) (h history.Query, err error) {
	rows, err := p.mail.Store.Index.Thread(ctx, index.ThreadQuery{Project: p.mail.Slug, Thread: thread})
	if err != nil {
		return h, err
	}
	paths := make([]string, len(rows))
	for i := range rows {
		paths[i] = rows[i].Path
	}
	q := history.OfRemoved()
	q.Progress = progress
	err = p.mail.History.Walk(ctx, q, func(r *history.Revision) error {
		for _, f := range r.Files {
			if f.Op != history.Removed {
				continue
			}
			data, err := f.Content()
			if err != nil {
				return err
			}
			if m, err := format.ParseMessage(format.Locate(f.Path).ID, data); err == nil && m.ThreadID == thread {
				paths = append(paths, f.Path)
			}
		}
		return nil
	})
	if err != nil || len(paths) == 0 {
		return h, err
	}
	var days []time.Time
	ids := []string{thread} // the thread's id may also be the id of its first message
	if day := history.DayOf(thread); !day.IsZero() {
		days = append(days, day)
	}
	for _, path := range paths {
		ids, days = append(ids, format.Locate(path).ID), append(days, history.DayOf(path))
	}
	return history.OfMessages(ids, slices.MinFunc(days, time.Time.Compare)), nil
}

// openLog is like logged, but only for a message, and for readers who must not see the message's bcc recipients.
func (p *Project) openLog(ctx context.Context, q LogQuery) (h history.Query, show func(*history.Entry) bool, err error) {
	m, err := p.mail.HeadNamed(ctx, refusal.InReplyTo, q.Of)
	if err != nil {
		return h, nil, err
	}
	return history.OfMessages([]string{m.ID}, history.DayOf(m.Path)), openEntry(m), nil
}

// openEntry returns a function for the log of message m. The function removes everything from an entry that would
// reveal bcc recipients, and reports whether to show the entry. An agent's operation is shown if the agent is the
// sender or an open recipient. An operation by the server itself, or an edit, is shown if any of its files remain.
func openEntry(m *index.MessageRow) func(*history.Entry) bool {
	open := append([]string{m.From}, slices.Concat(m.To, m.CC)...)
	return func(e *history.Entry) bool {
		e.Files = slices.DeleteFunc(slices.Clone(e.Files), func(f history.FileChange) bool {
			at := format.Locate(f.Path)
			return at.Kind != format.KindCanonical && !slices.Contains(open, at.Agent)
		})
		if e.Who != "" && e.IsOperation() {
			return slices.Contains(open, e.Who)
		}
		e.Summary = ""
		return len(e.Files) > 0
	}
}
