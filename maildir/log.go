package maildir

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
)

// LogQuery selects what Project.Log tells.
type LogQuery struct {
	// Of is an agent (what it did, and what others edited in its folder), a message, which may be
	// shortened, or a thread (what was done with it), or a path of the tree; "": everything.
	Of    string
	Limit int // entries; 0: all

	// Open leaves out what would tell who got a blind copy: of a message, for those who may not know
	// (Invariant I7).
	Open bool

	Progress func(looked int, back time.Time) // as of HistoryQuery
}

// LogEntry is one operation, or the edits that somebody made at once.
type LogEntry struct {
	Commit  string // "": it is still to be made, as a rule within a second
	At      time.Time
	Verb    string // of an operation; VerbEdit, VerbCommit
	Who     string // the agent; the author of a commit; "" for the server itself
	ID      string // of the message, where there is one
	Summary string // one line for people
	Door    string // that it came through: format.Door…, or DoorGit; "" for the server's own
	Files   []FileChange
}

// IsOperation reports whether somebody did it through the server, so that it may be undone.
func (e *LogEntry) IsOperation() bool { return e.Verb != VerbEdit && e.Verb != VerbCommit }

// What is no operation of the server's.
const (
	VerbEdit   = "edit"   // files were saved, and the server has committed them
	VerbCommit = "commit" // somebody has committed them

	DoorGit = "git"
)

// Log calls each for what the history tells, newest first, until all is told, each returns an error
// or ctx ends. Errors: ErrNotFound for what is not in the history; ErrInvalid for a path outside of
// the tree.
func (p *Project) Log(ctx context.Context, q LogQuery, each func(*LogEntry) error) error {
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
	err = p.history.Walk(ctx, h, func(r *Revision) error {
		for _, e := range entriesOf(r) {
			if !show(&e) {
				continue
			}
			if err := each(&e); err != nil {
				return err
			}
			if told++; told == q.Limit {
				return errEnough
			}
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// logged is the query of the history for an agent, a message, a thread or a path, and which of the
// entries are shown.
func (p *Project) logged(ctx context.Context, q LogQuery) (h HistoryQuery, show func(*LogEntry) bool, err error) {
	show = func(*LogEntry) bool { return true }
	of, clean := q.Of, path.Clean(q.Of)
	switch {
	case of == "":
		return everythingLog(), show, nil
	case path.IsAbs(of) || clean == ".." || strings.HasPrefix(clean, "../"):
		return h, nil, &Error{What: refusal.OutsideTree, Name: of}
	case strings.Contains(of, "/"):
		return pathLog(clean), touches, nil
	}
	if h, err = p.namedLog(ctx, q); err != nil || h.File != nil {
		return h, show, err
	}
	folders := []string{format.AgentsDir, format.MessagesDir, format.ClaimsDir, format.AttachmentsDir}
	if strings.Contains(of, ".") || slices.Contains(folders, of) {
		return pathLog(clean), touches, nil
	}
	if day := dayOf(of); !day.IsZero() { // it may be gone from the tree
		return messagesLog([]string{of}, day), show, nil
	}
	if q.Of, err = p.formerID(ctx, of); err != nil || q.Of == of {
		return h, nil, cmp.Or(err, p.noMessage(ctx, refusal.Message, of))
	}
	return p.logged(ctx, q)
}

// touches reports whether the operation changed a file that is asked for.
func touches(e *LogEntry) bool { return len(e.Files) > 0 }

func everythingLog() HistoryQuery {
	return HistoryQuery{
		File:   func(string, bool) bool { return true },
		Folder: func(string) bool { return true },
	}
}

// namedLog is the query for an agent or message that is there, or for a thread; the zero value: there
// is none.
func (p *Project) namedLog(ctx context.Context, q LogQuery) (h HistoryQuery, err error) {
	of := q.Of
	a, err := p.store.index.Agent(ctx, p.slug, of)
	if err != nil {
		return h, err
	}
	if a != nil {
		h = everythingLog()
		h.Keys = []string{of}
		h.Op = func(op RecordedOp) bool { return op.Agent == of }
		h.File = func(path string, operations bool) bool { return operations || format.Locate(path).Agent == of }
		return h, nil
	}
	m, err := p.store.index.Message(ctx, p.slug, of, WithoutBody, nil)
	if err != nil {
		return h, err
	}
	if m != nil {
		return messagesLog([]string{of}, dayOf(m.Path)), nil
	}
	return p.threadLog(ctx, of, q.Progress)
}

// threadLog is the query for a thread: its messages in the tree, and those that were removed from it.
// The zero value: there was never one.
func (p *Project) threadLog(ctx context.Context, thread string, progress func(int, time.Time)) (h HistoryQuery, err error) {
	rows, err := p.store.index.Thread(ctx, ThreadQuery{Project: p.slug, Thread: thread})
	if err != nil {
		return h, err
	}
	paths := make([]string, len(rows))
	for i := range rows {
		paths[i] = rows[i].Path
	}
	q := everythingLog()
	q.Folder = func(path string) bool {
		return path == format.MessagesDir || strings.HasPrefix(path, format.MessagesDir+"/")
	}
	q.File = func(path string, _ bool) bool { return format.Locate(path).Kind == format.KindCanonical }
	q.Keys, q.Progress = []string{RemovedFrom(thread)}, progress
	err = p.history.Walk(ctx, q, func(r *Revision) error {
		for _, f := range r.Files {
			if f.Op != Removed {
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
	ids := []string{thread} // that of the message which began the thread, where it has no other name
	if day := dayOf(thread); !day.IsZero() {
		days = append(days, day)
	}
	for _, path := range paths {
		ids, days = append(ids, format.Locate(path).ID), append(days, dayOf(path))
	}
	return messagesLog(ids, slices.MinFunc(days, time.Time.Compare)), nil
}

// messagesLog asks for messages of those ids, their copies and marks.
func messagesLog(ids []string, since time.Time) HistoryQuery {
	of := make(map[string]bool, len(ids))
	for _, id := range ids {
		of[id] = true
	}
	return HistoryQuery{
		Op:    func(op RecordedOp) bool { return of[op.ID] },
		File:  func(path string, _ bool) bool { return of[format.Locate(path).ID] },
		Since: since,
		Keys:  ids,
		Folder: func(path string) bool {
			e := strings.SplitN(path, "/", 4)
			switch {
			case e[0] == format.MessagesDir:
				return true
			case e[0] == format.AgentsDir:
				return len(e) < 3 || e[2] == format.InboxDir || e[2] == format.OutboxDir
			}
			return false
		},
	}
}

// pathLog asks for a file, or all below a folder. Of a file of a message, the operations on that
// message are asked first: they need no look at the trees.
func pathLog(at string) HistoryQuery {
	q := HistoryQuery{
		File:   func(path string, _ bool) bool { return path == at || strings.HasPrefix(path, at+"/") },
		Folder: func(path string) bool { return strings.HasPrefix(at+"/", path+"/") || strings.HasPrefix(path, at+"/") },
		Since:  dayOf(at),
		Keys:   []string{at},
	}
	if id := format.Locate(at).ID; id != "" {
		q.Keys = append(q.Keys, id)
		q.Op = func(op RecordedOp) bool { return op.ID == id }
	}
	return q
}

// dayOf is the day in the path of a message, or else in an id that this server made: nothing is in
// the history of it before that. Zero: there is none.
func dayOf(name string) time.Time {
	e := strings.Split(name, "/")
	for i := 0; i+3 <= len(e); i++ {
		if t, err := time.Parse("2006/01/02", strings.Join(e[i:i+3], "/")); err == nil {
			return t
		}
	}
	if day, ok := strings.CutPrefix(e[len(e)-1], "msg_"); ok && len(day) >= 8 {
		if t, err := time.Parse("20060102", day[:8]); err == nil {
			return t
		}
	}
	return time.Time{}
}

// entriesOf are the entries of a commit, the last operation first.
func entriesOf(r *Revision) []LogEntry {
	base := LogEntry{Commit: r.Hash, At: r.At}
	if len(r.Ops) == 0 {
		base.Verb, base.Who, base.Door, base.Files = VerbCommit, r.Author, DoorGit, r.Files
		base.Summary = r.Subject
		if r.Edit {
			base.Verb, base.Door = VerbEdit, format.DoorFile
			base.Summary = strings.TrimPrefix(r.Subject, VerbEdit+": ")
		}
		return []LogEntry{base}
	}
	all := make([]LogEntry, len(r.Ops))
	last := -1 // the operation that files without a message belong to
	for i, op := range r.Ops {
		all[i] = base
		all[i].Verb, all[i].Who, all[i].ID, all[i].Door, all[i].Summary = op.Verb, op.Agent, op.ID, op.Door, op.Summary
		if op.ID == "" || last < 0 {
			last = i
		}
	}
	for _, f := range r.Files {
		to := last
		if id := format.Locate(f.Path).ID; id != "" {
			to = slices.IndexFunc(all, func(e LogEntry) bool { return e.ID == id })
		}
		if to >= 0 {
			all[to].Files = append(all[to].Files, f)
		}
	}
	slices.Reverse(all)
	return all
}

// openLog is logged for a message and those who may not know who got a blind copy of it.
func (p *Project) openLog(ctx context.Context, q LogQuery) (h HistoryQuery, show func(*LogEntry) bool, err error) {
	m, err := p.messageHead(ctx, q.Of)
	if err != nil {
		return h, nil, err
	}
	return messagesLog([]string{m.ID}, dayOf(m.Path)), openEntry(m), nil
}

// openEntry takes out of the entries of a message what tells of blind copies; false where nothing
// is left. What the server did by itself, and edits, are told by their files alone.
func openEntry(m *MessageRow) func(*LogEntry) bool {
	open := append([]string{m.From}, slices.Concat(m.To, m.CC)...)
	return func(e *LogEntry) bool {
		e.Files = slices.DeleteFunc(slices.Clone(e.Files), func(f FileChange) bool {
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

// errEnough ends a walk of the history that has told what was asked for.
var errEnough = errors.New("enough")
