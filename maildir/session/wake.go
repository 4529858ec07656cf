package session

import (
	"slices"
	"time"
)

// Wake is how a session was to be woken last. The zero value is never.
type Wake struct {
	Outcome string    `json:"outcome"`
	At      time.Time `json:"at"`
	For     string    `json:"for"`           // the newest message that it was for
	Why     string    `json:"why,omitempty"` // there was nobody to wake
}

// Outcomes of a wake.
const (
	Woken  = "woken"  // its client was told, which begins a turn
	Queued = "queued" // its client has the notice in its queue
	Typed  = "typed"  // the notice was typed into its prompt, and submitted
	Nobody = "nobody to wake"
)

// Ways to wake a session of which nobody waits for mail.
const (
	ByQueue  = "queue" // of its client
	InWindow = "tmux"
)

// Way is how the session can be woken where nobody waits to do it; "" where there is no way.
func (s *State) Way() string {
	switch {
	case s.Client == "codex": // its hooks run in the environment of another window
		return ByQueue
	case s.Seat.Tmux != "":
		return InWindow
	}
	return ""
}

// stuck is how long a turn may say nothing: clients do not tell of turns that a person interrupts.
const stuck = 5 * time.Minute

// Idle reports whether the session waits for a prompt.
func (s *State) Idle(now time.Time) bool { return !s.Working || now.Sub(s.Active) > stuck }

// Untold returns those of an agent's unread messages that the model was not told of in its present
// context.
func (s *State) Untold(unread []Unread) []Unread {
	return slices.DeleteFunc(slices.Clone(unread), func(m Unread) bool { return s.knows(&m) })
}

// All lists the sessions that are known.
func (b *Book) All() (all []State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.load() {
		all = append(all, s)
	}
	return all
}

// NoteWake notes how a session was to be woken.
func (b *Book) NoteWake(k Key, w Wake) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok := b.load()[k]
	if !ok || s.Wake.Outcome == w.Outcome && s.Wake.For == w.For && s.Wake.Why == w.Why {
		return
	}
	s.Wake = w
	b.save(s)
}
