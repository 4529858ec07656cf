package session

import (
	"cmp"
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	"mailtree/maildir/tree"
)

// Bounds of a book. A session that ended is remembered for its name, which the next one takes.
const (
	keepEnded = 7 * 24 * time.Hour
	maxStates = 1000
)

// Book holds the sessions of a project. Safe for concurrent use.
type Book struct {
	tree *tree.Tree
	now  func() time.Time
	log  *slog.Logger

	mu sync.Mutex
	by map[Key]State // nil: not read yet
}

// NewBook returns the book of a tree; it is read when somebody asks.
func NewBook(t *tree.Tree, now func() time.Time, log *slog.Logger) *Book {
	return &Book{tree: t, now: now, log: log}
}

// Of returns a session's state; ok is false where it is not known.
func (b *Book) Of(k Key) (s State, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok = b.load()[k]
	return s, ok
}

// Live lists the sessions that go on, by when they began.
func (b *Book) Live() (all []State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	for _, s := range b.load() {
		if s.Live(now) {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(x, y State) int { return cmp.Or(x.Began.Compare(y.Began), cmp.Compare(x.ID, y.ID)) })
	return all
}

// Names lists the agents that a session may be, the best first: the one that it was before, then
// those of ended sessions of the same client and folder, the last one first. None of them is held
// by another session that lives.
func (b *Book) Names(k Key, dir string) (names []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	held := map[string]bool{}
	var ended []State
	for _, s := range b.load() {
		switch {
		case s.Key == k:
			names = []string{s.Agent}
		case s.Live(now):
			held[s.Agent] = true
		case s.Client == k.Client && s.Dir == dir:
			ended = append(ended, s)
		}
	}
	slices.SortFunc(ended, func(x, y State) int { return cmp.Or(y.Active.Compare(x.Active), cmp.Compare(x.ID, y.ID)) })
	for _, s := range ended {
		names = append(names, s.Agent)
	}
	return slices.DeleteFunc(names, func(name string) bool { return held[name] })
}

// Continue notes where a session that goes on runs now; false where it is not known or has ended:
// then it begins anew. One whose process is gone goes on while no other session has begun since:
// the process may have been a helper of the client.
func (b *Book) Continue(k Key, seat Seat, by Process) (goesOn bool) {
	b.Change(k, func(s *State) {
		if goesOn = s.Ended.IsZero(); goesOn && by != "" {
			s.Seat, s.Process = seat, by
		}
	})
	return goesOn
}

// Begin puts a session into the book that begins or goes on, and drops those that ended long ago.
// It returns the sessions that ended unnoticed: their processes are gone.
func (b *Book) Begin(s State) (gone []State) {
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

// EndGone ends the sessions that have ended unnoticed, because their processes are gone, and returns
// them.
func (b *Book) EndGone() []State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.endGone(Key{})
}

// endGone is EndGone for all sessions but one.
func (b *Book) endGone(but Key) (gone []State) {
	now := b.now()
	for k, s := range b.load() {
		if s.Ended.IsZero() && k != but && !s.Live(now) {
			s.Ended, s.Working = s.Active, false
			b.save(s)
			gone = append(gone, s)
		}
	}
	return gone
}

// Change changes a session that is known, and notes that its client was heard of; ok is false where
// none is. do must not keep what Told holds.
func (b *Book) Change(k Key, do func(s *State)) (s State, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old, ok := b.load()[k]
	if !ok {
		return State{}, false
	}
	s = old
	do(&s)
	if now := b.now(); now.Sub(s.Active) >= time.Minute { // not each event is worth a file
		s.Active = now
	}
	if !reflect.DeepEqual(s, old) {
		b.save(s)
	}
	return s, true
}

// Unread is an unread message of an agent.
type Unread struct {
	ID           string
	From, Thread string
	Created      time.Time
}

// Tell notes that a session is told now of the unread messages, newest first, and returns the ids of
// those that its model does not know of in its present context. more says that there are older ones
// than these: from now on they count as told; older is true where they did not before.
func (b *Book) Tell(k Key, unread []Unread, more bool) (fresh []string, older bool) {
	b.Change(k, func(s *State) {
		untold := slices.DeleteFunc(slices.Clone(unread), func(m Unread) bool { return s.knows(&m) })
		if len(untold) == 0 {
			return
		}
		for _, m := range untold {
			fresh = append(fresh, m.ID)
		}
		s.noteTold(untold, b.now())
		if more {
			older, s.Before = s.Before.IsZero(), unread[len(unread)-1].Created
		}
	})
	return fresh, older
}

// Announced returns when a session of the agent was told of the message, the first of them; zero
// where none was, or that is forgotten.
func (b *Book) Announced(agent, id string) (at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.load() {
		if told, ok := s.Told[id]; ok && s.Agent == agent && (at.IsZero() || told.Before(at)) {
			at = told
		}
	}
	return at
}

// prune drops the sessions that ended long ago, and the oldest where there are too many.
func (b *Book) prune(now time.Time) {
	var all []State
	for _, s := range b.by {
		if !s.Ended.IsZero() && now.Sub(s.Ended) > keepEnded {
			b.drop(s.Key)
			continue
		}
		all = append(all, s)
	}
	if len(all) <= maxStates {
		return
	}
	slices.SortFunc(all, func(x, y State) int { return y.Active.Compare(x.Active) })
	for _, s := range all[maxStates:] {
		b.drop(s.Key)
	}
}

func (b *Book) drop(k Key) {
	delete(b.by, k)
	if err := errors.Join(b.tree.RemoveRun(k.path()), b.tree.RemoveRun(k.waiterPath())); err != nil {
		b.log.Debug("an old session's file was not removed", "client", k.Client, "error", err)
	}
}

// load returns what is known, reading it once. What is damaged is as lost.
func (b *Book) load() map[Key]State {
	if b.by != nil {
		return b.by
	}
	b.by = map[Key]State{}
	for _, s := range readAll(b.tree) {
		b.by[s.Key] = s
	}
	return b.by
}

func (b *Book) save(s State) {
	b.by[s.Key] = s
	data, err := json.Marshal(s)
	if err == nil {
		err = b.tree.WriteRun(s.path(), data)
	}
	if err != nil {
		b.log.Warn("a session is not on disk: after the next start it may be another agent, and be told again",
			"client", s.Client, "agent", s.Agent, "error", err)
	}
}
