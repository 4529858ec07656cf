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

// Bounds of a book. A session that ended is remembered for its name, which the next one takes.
const (
	keepEnded   = 7 * 24 * time.Hour
	maxSessions = 1000
)

// Book holds the seats of a project. Safe for concurrent use. Its files are written behind, by Write,
// but a session's begin and end at once: `mailtree hook` reads those without a server.
type Book struct {
	tree    *tree.Tree
	now     func() time.Time
	log     *slog.Logger
	changed func() // called when there is something to write

	mu      sync.Mutex
	by      map[Key]Seat     // nil: not read yet
	unsaved map[string]*Seat // what is to be in files, by path; nil: no file

	writing sync.Mutex // held during Write, before mu
}

// NewBook returns the book of a tree; it is read when somebody asks. changed is called when there is
// something for Write to do; it does not wait.
func NewBook(t *tree.Tree, now func() time.Time, log *slog.Logger, changed func()) *Book {
	return &Book{tree: t, now: now, log: log, changed: changed, unsaved: map[string]*Seat{}}
}

// Of returns a seat; ok is false where it is not known.
func (b *Book) Of(k Key) (s Seat, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok = b.load()[k]
	return s, ok
}

// Window returns the seat of an agent in a tmux window. Where none is known it makes one, in memory.
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

// Sit notes from which pane an agent without a session calls; moved says that it was another.
func (b *Book) Sit(agent string, at Pane) (moved bool) {
	if b.Window(agent).Pane == at {
		return false
	}
	b.Change(WindowOf(agent), func(s *Seat) { s.Pane = at })
	return true
}

// Vacate takes the pane from the window of everybody but one agent, "" for everybody.
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

// Sessions lists the sessions of an agent: those that go on, by when they began, and those that have
// ended, the last one first.
func (b *Book) Sessions(agent string) (live, ended []Seat) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sessions(func(s *Seat) bool { return s.Agent == agent })
}

// All is Sessions of all agents.
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

// Names lists the agents that a session may be, the best first: the one that it was before, then
// those of ended sessions of the same client and folder, the last one first. None of them is held
// by another session that lives.
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

// Continue notes where a session that goes on runs now, and returns it; false where it is not known or
// has ended: then it begins anew. One whose process is gone goes on while no other session has begun since:
// the process may have been a helper of the client.
func (b *Book) Continue(k Key, at Pane, by Process) (s Seat, goesOn bool) {
	s, _ = b.Change(k, func(s *Seat) {
		if goesOn = s.Ended.IsZero(); goesOn && by != "" {
			s.Pane, s.Process = at, by
		}
	})
	return s, goesOn
}

// Begin puts a session into the book that begins or goes on, and drops those that ended long ago.
// It returns the sessions that ended unnoticed: their processes are gone.
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

// End ends a session; ended is false where it is not known, or had ended.
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

// EndGone ends the sessions that have ended unnoticed, because their processes are gone, and returns
// them.
func (b *Book) EndGone() []Seat {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.endGone(Key{})
}

// endGone is EndGone for all sessions but one.
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

// Change changes a seat that is known, and notes that its client was heard of; ok is false where
// none is. do must not keep what Told holds.
func (b *Book) Change(k Key, do func(s *Seat)) (s Seat, ok bool) {
	return b.change(k, func(s *Seat) {
		do(s)
		if now := b.now(); now.Sub(s.Active) >= time.Minute { // not each event is worth a file
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

// Tell notes that an agent is told now of the unread messages, newest first, at a seat that was as seen
// when they were read. It returns those that were not told of there since the last cut. more says that
// there are older ones than these: from now on they count as told; older is true where they did not
// before. ok is false, and nothing is noted, where the seat is gone or was cut meanwhile.
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

// NoteWake notes how the agent of a seat was to be woken.
func (b *Book) NoteWake(k Key, w Wake) {
	w.At = b.now()
	b.change(k, func(s *Seat) {
		if s.Wake.Outcome != w.Outcome || s.Wake.For != w.For || s.Wake.Why != w.Why {
			s.Wake = w
		}
	})
}

// Announced returns when a session of the agent was told of the message, the first of them; zero
// where none was, or that is forgotten.
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

// prune drops the sessions that ended long ago, and the oldest where there are too many. Of windows there
// are no more than agents.
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

// load returns what is known, reading it once. What is damaged is as lost.
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

// takeOver makes seats of the notes that earlier versions kept of agents in tmux windows, a file for
// each agent, and has the files removed.
func (b *Book) takeOver() {
	// No caller's context: what is read here is kept, so it is read whole.
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

// save notes a seat, and that it is to be written.
func (b *Book) save(s Seat) {
	b.by[s.Key] = s
	b.unsaved[s.path()] = &s
	b.changed()
}

// Write writes what has changed since the last call.
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
				b.log.Debug("an old seat's file was not removed", "file", file, "error", err)
			}
			continue
		}
		data, err := json.Marshal(s)
		if err == nil {
			err = b.tree.WriteRun(file, data)
		}
		if err != nil {
			b.log.Warn("a seat is not on disk: after the next start a session may be another agent, and be told again",
				"client", s.Client, "agent", s.Agent, "error", err)
		}
	}
}
