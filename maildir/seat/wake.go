package seat

import "time"

// Wake is how an agent was to be woken last. The zero value is never.
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

// Succeeded reports whether the last wake came to something.
func (w *Wake) Succeeded() bool { return w.Outcome != "" && w.Outcome != Nobody }

// Ways to wake an agent that nobody waits to wake.
const (
	ByQueue  = "queue" // of its client
	InWindow = "tmux"
)

// Way is how the agent can be woken where nobody waits to do it; "" where there is no way.
func (s *Seat) Way() string {
	switch {
	case s.Client == "codex": // its hooks run in the environment of another window
		return ByQueue
	case s.IsWindow() || s.Pane.Tmux != "":
		return InWindow
	}
	return ""
}

// stuck is how long a turn may say nothing: clients do not tell of turns that a person interrupts.
const stuck = 5 * time.Minute

// Idle reports whether the session waits for a prompt.
func (s *Seat) Idle(now time.Time) bool { return !s.Working || now.Sub(s.Active) > stuck }
