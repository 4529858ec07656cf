// Package notice is what the agents of a project were told of, and where they sit: run-time state
// in memory, and written behind into .mailtree/notified, a file for each agent. It may be lost; then an
// agent is told once more. See docs/agentmail.md, "Waking an agent in tmux".
package notice

import (
	"context"
	"encoding/json"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

// Seat is the tmux pane that an agent last called from. The zero value is none.
type Seat struct {
	Tmux   string `json:"tmux"`             // its $TMUX: socket, pid of the tmux server, session
	Pane   string `json:"pane"`             // its $TMUX_PANE
	Window string `json:"window,omitempty"` // the window's name, where the agent goes by that; "" where it has a name of its own
}

// Most is how many messages an agent's state names. Where there are more, those older than the last
// of them count as told.
const Most = 200

// State is what is known of one agent.
type State struct {
	Seat
	Told   []string  `json:"told"`   // ids of messages that it was told of
	Before time.Time `json:"before"` // what was created earlier counts as told too

	Away int `json:"-"` // how often its status was set to another than ready, in this process
}

// Book holds the states of a project's agents. Safe for concurrent use.
type Book struct {
	tree *tree.Tree
	log  *slog.Logger

	changed func() // called when there is something to write

	mu      sync.Mutex
	by      map[string]State // nil: not read yet
	unsaved map[string]bool  // agents whose file does not say what by does
}

// NewBook returns the book of a tree; it is read when somebody asks. changed is called when there is
// something for Write to do; it does not wait.
func NewBook(t *tree.Tree, log *slog.Logger, changed func()) *Book {
	return &Book{tree: t, log: log, changed: changed, unsaved: map[string]bool{}}
}

// Of returns an agent's state.
func (b *Book) Of(agent string) State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.load()[agent]
}

// Sit notes where an agent sits; moved says that it sat elsewhere.
func (b *Book) Sit(agent string, at Seat) (moved bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.load()[agent]
	if s.Seat == at {
		return false
	}
	s.Seat = at
	b.save(agent, s)
	return true
}

// Vacate takes the pane from everybody but one agent, "" for everybody.
func (b *Book) Vacate(at Seat, but string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, s := range b.load() {
		if s.Tmux == at.Tmux && s.Pane == at.Pane && name != but {
			s.Seat = Seat{}
			b.save(name, s)
		}
	}
}

// Tell notes that an agent, whose State.Away was away, is told of the messages unread, newest
// first; before is when the last of them was created where there are older ones too. It returns
// false, and notes nothing, where its status has been another than ready since.
func (b *Book) Tell(agent string, away int, unread []string, before time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.load()[agent]
	if s.Away != away {
		return false
	}
	for _, id := range s.Told { // what was read meanwhile may be marked unread again
		if len(unread) < Most && !slices.Contains(unread, id) {
			unread = append(unread, id)
		}
	}
	s.Told, s.Before = unread, before
	b.save(agent, s)
	return true
}

// Forget starts the notices of an agent anew, which is not ready any more.
func (b *Book) Forget(agent string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.load()[agent]
	s.Away++
	b.by[agent] = s
	if s.Told != nil {
		s.Told, s.Before = nil, time.Time{}
		b.save(agent, s)
	}
}

// load returns what is known, reading it once. What is damaged is as lost.
func (b *Book) load() map[string]State {
	if b.by != nil {
		return b.by
	}
	b.by = map[string]State{}
	// No caller's context: what is read here is kept, so it is read whole.
	_ = b.tree.Walk(context.Background(), format.NotifiedDir, func(file string, d fs.DirEntry) error {
		var s State
		if data, _, err := b.tree.Read(file, format.MaxSmall); err == nil && json.Unmarshal(data, &s) == nil && format.ValidName(d.Name()) {
			b.by[d.Name()] = s
		}
		return nil
	})
	return b.by
}

// save notes an agent's state, and that it is to be written.
func (b *Book) save(agent string, s State) {
	if format.ValidName(agent) {
		b.by[agent], b.unsaved[agent] = s, true
		b.changed()
	}
}

// Write writes what has changed since the last call.
func (b *Book) Write() {
	b.mu.Lock()
	states := map[string]State{}
	for agent := range b.unsaved {
		states[agent] = b.by[agent]
	}
	clear(b.unsaved)
	b.mu.Unlock()
	for agent, s := range states {
		data, err := json.Marshal(s)
		if err == nil {
			err = b.tree.WriteRun(format.NotifiedDir+"/"+agent, data)
		}
		if err != nil {
			b.log.Warn("what an agent was told of is not on disk: it may be told again after the next start", "agent", agent, "error", err)
		}
	}
}
