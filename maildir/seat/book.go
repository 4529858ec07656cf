package seat

import (
	"cmp"
	"context"
	"encoding/json"
	"io/fs"
	"log/slog"
	"path"
	"reflect"
	"slices"
	"sync"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

// These are limits for a book. A book keeps ended sessions so that a new session can take over their agents.
const (
	keepEnded   = 7 * 24 * time.Hour
	maxSessions = 1000
)

// Book contains a project's seats. It is safe for concurrent use. Write writes the book's changes to files. Begin and
// End write immediately, because `mailtree hook` reads session files without a server.
type Book struct {
	tree    *tree.Tree
	now     func() time.Time
	log     *slog.Logger
	changed func() // called when Write has something to write; must not block

	mu      sync.Mutex
	by      map[Key]Seat     // the seats, by key; nil if not read yet
	unsaved map[string]*Seat // changes not yet written to files, by path; nil means to remove the file

	writing sync.Mutex // held during Write, before mu
}

// NewBook returns a tree's book. The first method that needs the files reads them. If there are changes for Write, the
// book calls changed while holding its lock, so changed must not block.
func NewBook(t *tree.Tree, now func() time.Time, log *slog.Logger, changed func()) *Book {
	return &Book{tree: t, now: now, log: log, changed: changed, unsaved: map[string]*Seat{}}
}

// Of returns the seat with the given key. ok is false if the book does not contain it.
func (b *Book) Of(k Key) (s Seat, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok = b.load()[k]
	return s, ok
}

// Window returns the seat of an agent in a tmux window. If the book has none, Window creates one in memory.
func (b *Book) Window(agent string) Seat {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := WindowOf(agent)
	s, ok := b.load()[k]
	if !ok {
		s = Seat{Key: k, Agent: agent, Active: b.now()}
		b.by[k] = s
	}
	return s
}

// Sit records the pane from which an agent without a session calls the server. moved reports whether the pane has
// changed.
func (b *Book) Sit(agent string, at Pane) (moved bool) {
	if b.Window(agent).Pane == at {
		return false
	}
	b.Change(WindowOf(agent), func(s *Seat) { s.Pane = at })
	return true
}

// Vacate removes the pane from the seats of all windows, except the window of the agent named by but.
func (b *Book) Vacate(at Pane, but string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, s := range b.load() {
		if k.IsWindow() && s.Pane.Tmux == at.Tmux && s.Pane.Pane == at.Pane && s.Agent != but {
			s.Pane = Pane{}
			b.save(s)
		}
	}
}

// Sessions lists an agent's sessions. The live ones are sorted by start time, oldest first, and the ended ones by
// last activity, most recent first.
func (b *Book) Sessions(agent string) (live, ended []Seat) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sessions(func(s *Seat) bool { return s.Agent == agent })
}

// All lists the sessions of all agents, in the same order as Sessions.
func (b *Book) All() (live, ended []Seat) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sessions(everyone)
}

func everyone(*Seat) bool { return true }

func (b *Book) sessions(of func(*Seat) bool) (live, ended []Seat) {
	now := b.now()
	for k, s := range b.load() {
		switch {
		case k.IsWindow() || !of(&s):
		case s.Live(now):
			live = append(live, s)
		default:
			ended = append(ended, s)
		}
	}
	slices.SortFunc(live, func(x, y Seat) int { return cmp.Or(x.Began.Compare(y.Began), cmp.Compare(x.ID, y.ID)) })
	slices.SortFunc(ended, func(x, y Seat) int { return cmp.Or(y.Active.Compare(x.Active), cmp.Compare(x.ID, y.ID)) })
	return live, ended
}

// Names lists the agents that a session may act as, best first. The session's own earlier agent comes first, followed
// by the agents of ended sessions with the same client and folder, most recent first. It omits agents that have
// another live session.
func (b *Book) Names(k Key, dir string) (names []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	live, ended := b.sessions(everyone)
	if s, ok := b.by[k]; ok {
		names = []string{s.Agent}
	}
	for _, s := range ended {
		if s.Client == k.Client && s.Dir == dir && s.Key != k {
			names = append(names, s.Agent)
		}
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(live, func(s Seat) bool { return s.Agent == name && s.Key != k })
	})
}

// Continue records the pane and process of a session that has not ended, and returns the session. goesOn is false if
// the session is unknown or has ended. A session whose process has exited is still treated as live until another
// session begins, because the process may have been one of the client's helpers.
func (b *Book) Continue(k Key, at Pane, by Process) (s Seat, goesOn bool) {
	s, _ = b.Change(k, func(s *Seat) {
		if goesOn = s.Ended.IsZero(); goesOn && by != "" {
			s.Pane, s.Process = at, by
		}
	})
	return s, goesOn
}

// Begin adds a session that is beginning or continuing, and drops sessions that ended long ago. It returns the
// sessions whose clients had ended without reporting it (EndGone).
func (b *Book) Begin(s Seat) (gone []Seat) {
	defer b.Write()
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	gone = b.endGone(s.Key)
	s.Began = now
	if old, ok := b.by[s.Key]; ok && old.Agent == s.Agent {
		s.Told, s.Since, s.Before, s.Introduced = old.Told, old.Since, old.Before, old.Introduced
	}
	s.Active = now
	b.save(s)
	b.prune(now)
	return gone
}

// End ends a session and returns its agent. If the session is unknown or had already ended, ended is false.
func (b *Book) End(k Key) (agent string, ended bool) {
	defer b.Write()
	now := b.now()
	s, _ := b.Change(k, func(s *Seat) {
		if ended = s.Ended.IsZero(); ended {
			s.Ended, s.Active, s.Working, s.Asks = now, now, false, false
		}
	})
	return s.Agent, ended
}

// EndGone ends the sessions whose clients have ended without reporting it (see Live), and returns those sessions.
func (b *Book) EndGone() []Seat {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.endGone(Key{})
}

// endGone is like EndGone, but skips the session with the key but. The caller must hold b.mu.
func (b *Book) endGone(but Key) (gone []Seat) {
	_, ended := b.sessions(everyone)
	for _, s := range ended {
		if s.Ended.IsZero() && s.Key != but {
			s.Ended, s.Working = s.Active, false
			b.save(s)
			gone = append(gone, s)
		}
	}
	return gone
}

// Change changes a known seat and records that the client has just reported an event. ok is false if the seat is
// unknown. do must replace the map Told instead of writing to it.
func (b *Book) Change(k Key, do func(s *Seat)) (s Seat, ok bool) {
	return b.change(k, func(s *Seat) {
		do(s)
		if now := b.now(); now.Sub(s.Active) >= time.Minute { // avoids a write for most events
			s.Active = now
		}
	})
}

func (b *Book) change(k Key, do func(s *Seat)) (s Seat, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old, ok := b.load()[k]
	if !ok {
		return Seat{}, false
	}
	s = old
	do(&s)
	if !reflect.DeepEqual(s, old) {
		b.save(s)
	}
	return s, true
}

// Tell records that an agent is being notified at a seat. unread contains the agent's unread messages, newest first.
// seen is the seat's state when these messages were loaded. Tell returns the messages that have not been announced at
// the seat since its last Cut.
//
// If more is set, older unread messages exist. After the call, the older messages are treated as announced. In the
// first such call after a Cut, older is true. If the seat was removed or cut after seen was loaded, Tell records
// nothing and ok is false.
func (b *Book) Tell(seen *Seat, unread []Unread, more bool) (fresh []Unread, older, ok bool) {
	b.Change(seen.Key, func(s *Seat) {
		if ok = s.Since.Equal(seen.Since); !ok {
			return
		}
		if fresh = s.Untold(unread); len(fresh) == 0 {
			return
		}
		s.noteTold(fresh, b.now())
		if more {
			older, s.Before = s.Before.IsZero(), unread[len(unread)-1].Created
		}
	})
	return fresh, older, ok
}

// Rename gives an agent another name. It also clears Introduced, so that the models of the agent's sessions are told
// the new name.
func (b *Book) Rename(from, to string) {
	b.mu.Lock()
	for k, s := range b.load() {
		if s.Agent != from {
			continue
		}
		if s.Agent, s.Introduced = to, false; k.IsWindow() {
			b.drop(k)
			s.Key = WindowOf(to)
		}
		b.save(s)
	}
	b.mu.Unlock()
	b.Write()
}

// NoteWake records the last attempt to wake a seat's agent.
func (b *Book) NoteWake(k Key, w Wake) {
	w.At = b.now()
	b.change(k, func(s *Seat) {
		if s.Wake.Outcome != w.Outcome || s.Wake.For != w.For || s.Wake.Why != w.Why {
			s.Wake = w
		}
	})
}

// Announced returns the time at which one of the agent's sessions first got a notice about the message. It returns the
// zero time if no session got such a notice, or if the book no longer has a record of the notice.
func (b *Book) Announced(agent, id string) (at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, s := range b.load() {
		told, ok := s.Told[id]
		if ok && s.Agent == agent && !k.IsWindow() && (at.IsZero() || told.Before(at)) {
			at = told
		}
	}
	return at
}

// prune drops the sessions that ended long ago, and the oldest sessions beyond maxSessions. Windows need no limit,
// because each agent has at most one.
func (b *Book) prune(now time.Time) {
	var all []Seat
	for k, s := range b.by {
		if k.IsWindow() {
			continue
		}
		if !s.Ended.IsZero() && now.Sub(s.Ended) > keepEnded {
			b.drop(k)
			continue
		}
		all = append(all, s)
	}
	if len(all) <= maxSessions {
		return
	}
	slices.SortFunc(all, func(x, y Seat) int { return y.Active.Compare(x.Active) })
	for _, s := range all[maxSessions:] {
		b.drop(s.Key)
	}
}

func (b *Book) drop(k Key) {
	delete(b.by, k)
	b.unsaved[k.path()], b.unsaved[k.waiterPath()] = nil, nil
	b.changed()
}

// load returns the seats. The first call reads them from the files. A damaged file is treated as missing.
func (b *Book) load() map[Key]Seat {
	if b.by != nil {
		return b.by
	}
	b.by = map[Key]Seat{}
	for _, s := range readAll(b.tree) {
		b.by[s.Key] = s
	}
	b.takeOver()
	return b.by
}

// takeOver converts earlier versions' records about agents in tmux windows into seats, and schedules the records' files
// for removal. There is one such file for each agent.
func (b *Book) takeOver() {
	// Do not use a caller's context here: the book keeps the result, so it must be complete.
	_ = b.tree.Walk(context.Background(), format.NotifiedDir, func(file string, _ fs.DirEntry) error {
		var old struct {
			Pane
			Told   []string  `json:"told"`
			Before time.Time `json:"before"`
		}
		agent, now := path.Base(file), b.now()
		data, _, err := b.tree.Read(file, format.MaxSmall)
		if err == nil && json.Unmarshal(data, &old) == nil && format.ValidName(agent) {
			s := Seat{Key: WindowOf(agent), Agent: agent, Pane: old.Pane, Before: old.Before, Active: now}
			s.Told = map[string]time.Time{}
			for _, id := range old.Told {
				s.Told[id] = now
			}
			b.save(s)
		}
		b.unsaved[file] = nil
		return nil
	})
}

// save stores a seat, and schedules it to be written by Write. The caller must hold b.mu.
func (b *Book) save(s Seat) {
	b.by[s.Key] = s
	b.unsaved[s.path()] = &s
	b.changed()
}

// Write writes the changes made since the last call. It logs errors. Changes that were not written are lost when the
// process exits.
func (b *Book) Write() {
	b.writing.Lock()
	defer b.writing.Unlock()
	b.mu.Lock()
	unsaved := b.unsaved
	b.unsaved = map[string]*Seat{}
	b.mu.Unlock()
	for file, s := range unsaved {
		if s == nil {
			if err := b.tree.RemoveRun(file); err != nil {
				b.log.Debug("failed to remove an old session's file", "file", file, "error", err)
			}
			continue
		}
		data, err := json.Marshal(s)
		if err == nil {
			err = b.tree.WriteRun(file, data)
		}
		if err != nil {
			b.log.Warn("failed to save a session; after the server restarts, the session may act as a different agent "+
				"and get its notices again",
				"client", s.Client, "agent", s.Agent, "error", err)
		}
	}
}
