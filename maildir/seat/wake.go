package seat

import "time"

// Wake is the last attempt to wake an agent. The zero value means that there was no attempt.
type Wake struct {
	Outcome string    `json:"outcome"`
	At      time.Time `json:"at"`
	For     string    `json:"for"`           // id of the newest message that the attempt was about
	Why     string    `json:"why,omitempty"` // why the agent could not be woken
}

// These are the possible outcomes of an attempt to wake an agent.
const (
	Woken  = "woken"  // the client was notified, which starts a turn
	Queued = "queued" // the notice is in the client's queue
	Typed  = "typed"  // the notice was typed into the client's prompt and submitted
	Nobody = "nobody to wake"
)

// Succeeded reports whether the last attempt reached the agent.
func (w *Wake) Succeeded() bool { return w.Outcome != "" && w.Outcome != Nobody }

// These are the ways to wake an agent if no process is waiting to wake it.
const (
	ByQueue  = "queue" // the client's queue
	InWindow = "tmux"
)

// Way returns how to wake the agent if no process is waiting to wake it. It returns "" if there is no way.
func (s *Seat) Way() string {
	switch {
	case s.Client == "codex": // its hooks run in the environment of another window
		return ByQueue
	case s.IsWindow() || s.Pane.Tmux != "":
		return InWindow
	}
	return ""
}

// State is a session's state, as reported by its client.
type State string

// These are the possible states of a session.
const (
	Works State = "works" // a turn is in progress
	Asks  State = "asks"  // a turn is in progress, and the client is asking the user whether a tool may run
	Idles State = "idle"  // the client is waiting for a prompt
)

// Be records the state of a session that has not ended.
func (s *Seat) Be(is State) {
	if s.Ended.IsZero() {
		if s.Asks = is == Asks; !s.Asks {
			s.Tool = ""
		}
		s.Working = is != Idles
	}
}

// stuck is how long a turn without events is still considered to be in progress. This is only a fallback. If a turn
// does not end normally, the client usually reports that in one of the ways listed in docs/reference/hooks.md.
const stuck = 5 * time.Minute

// Idle reports whether the session is waiting for a prompt.
func (s *Seat) Idle(now time.Time) bool { return !s.Working || now.Sub(s.Active) > stuck }
