// Package seat is what is known of where agents can be reached: which agent each session of a client
// is, in which tmux pane an agent without a session sits, what each was told of its mail and when, how
// it was woken last. It is run-time state in memory, and in .mailtree/sessions a file for each seat.
// It may be lost: then a session is another agent, and agents are told of their mail once more. See
// docs/hooks.md, and docs/agentmail.md, "Waking an agent in tmux".
//
//	seat.go     Seat, and Read, which needs no server
//	book.go     Book: the seats of a project
//	wake.go     how a seat can be woken, and was
//	news.go     what a session is told of its mail, in words
//	process.go  the process of a client, and whether it still runs
//	waiter.go   who waits to wake a session while no server runs
package seat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"maps"
	"slices"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

// Key names a seat: a session of a client, or the window of an agent (WindowOf).
type Key struct {
	Client string `json:"client"`  // as in `mailtree hook CLIENT`; "": a window
	ID     string `json:"session"` // of a window, the agent's name
}

// WindowOf names the seat of an agent that is told of its mail in a tmux window, without any session.
func WindowOf(agent string) Key { return Key{ID: agent} }

// Valid reports whether there can be a session of that key.
func (k Key) Valid() bool {
	return format.PlainName(k.Client) && len(k.Client) <= 32 && k.ID != "" && len(k.ID) <= 256
}

// IsWindow reports whether the key is of a window.
func (k Key) IsWindow() bool { return k.Client == "" }

// path is where the seat's file lies.
func (k Key) path() string {
	sum := sha256.Sum256([]byte(k.ID))
	return format.SessionsDir + "/" + k.Client + "-" + hex.EncodeToString(sum[:16])
}

// Pane is a tmux pane. The zero value is none.
type Pane struct {
	Tmux   string `json:"tmux"`             // its $TMUX: socket, pid of the tmux server, session
	Pane   string `json:"pane"`             // its $TMUX_PANE
	Window string `json:"window,omitempty"` // the window's name, where the agent goes by that; "" where it has a name of its own
}

// Seat is what is known of one session or window.
type Seat struct {
	Key
	Agent   string    `json:"agent"`
	Dir     string    `json:"dir"`              // that the client was started in
	Pane    Pane      `json:"seat,omitzero"`    // that the client runs in, or that the agent last called from
	Process Process   `json:"process,omitzero"` // of the client; "" where that is not known
	Began   time.Time `json:"began"`
	Active  time.Time `json:"active"`         // when the client was last heard of, to the minute
	Ended   time.Time `json:"ended,omitzero"` // zero: it lives
	Working bool      `json:"working"`        // a turn is under way
	Asks    bool      `json:"asks,omitempty"` // its client asks a person whether a tool may run
	Wake    Wake      `json:"wake,omitzero"`

	// What was told of before Since is told again: it has left the model's context, or the agent of a
	// window has worked or been away.
	Since      time.Time            `json:"since,omitzero"`
	Introduced bool                 `json:"introduced"`      // the model knows who it is
	Told       map[string]time.Time `json:"told,omitempty"`  // when it was last told of a message, by id
	Before     time.Time            `json:"before,omitzero"` // what was created earlier counts as told
}

// silentFor is how long a session lives that has no process of its own, or none that is known, and
// says nothing.
const silentFor = 24 * time.Hour

// Live reports whether the session goes on.
func (s *Seat) Live(now time.Time) bool {
	if !s.Ended.IsZero() || s.Process.Gone() {
		return false
	}
	known := s.Process != "" && !s.Process.Serves() // a server outlives its sessions
	return known || now.Sub(s.Active) < silentFor
}

// Cut notes that all of what is unread is to be told again.
func (s *Seat) Cut(now time.Time) { s.Since, s.Before = now, time.Time{} }

// Unread is an unread message of an agent.
type Unread struct {
	ID                    string
	From, Subject, Thread string
	Created               time.Time
}

// Untold returns those of an agent's unread messages that it was not told of here since the last cut.
func (s *Seat) Untold(unread []Unread) []Unread {
	return slices.DeleteFunc(slices.Clone(unread), func(m Unread) bool {
		at, told := s.Told[m.ID]
		return told && !at.Before(s.Since) || m.Created.Before(s.Before)
	})
}

// Most is how many unread messages one look considers. Those that are older count as told.
const Most = 200

// noteTold notes that the agent is told of the messages now. Of others it keeps the newest notes:
// their senders see when the agent was told.
func (s *Seat) noteTold(unread []Unread, now time.Time) {
	s.Told = maps.Clone(s.Told) // others may hold the old one
	if s.Told == nil {
		s.Told = map[string]time.Time{}
	}
	for _, m := range unread {
		s.Told[m.ID] = now
	}
	if len(s.Told) <= 2*Most {
		return
	}
	ids := slices.SortedFunc(maps.Keys(s.Told), func(a, b string) int { return s.Told[b].Compare(s.Told[a]) })
	for _, id := range ids[2*Most:] {
		delete(s.Told, id)
	}
}

// Read reads one session of a tree from its file, as of the last change; ok is false where there is
// none. It needs no server.
func Read(t *tree.Tree, k Key) (s Seat, ok bool) {
	if !k.Valid() {
		return Seat{}, false
	}
	s, ok = readFile(t, k.path())
	return s, ok && s.Key == k
}

// LastHeard returns when a client was last heard of in a tree, in any session: the zero time where it
// never was. It needs no server.
func LastHeard(t *tree.Tree, client string) (at time.Time) {
	for _, s := range readAll(t) {
		if s.Client == client && s.Active.After(at) {
			at = s.Active
		}
	}
	return at
}

// readAll reads the seats of a tree. What is damaged is as lost.
func readAll(t *tree.Tree) (all []Seat) {
	// No caller's context: a Book keeps what is read here, so it is read whole.
	_ = t.Walk(context.Background(), format.SessionsDir, func(file string, _ fs.DirEntry) error {
		if s, ok := readFile(t, file); ok && s.path() == file {
			all = append(all, s)
		}
		return nil
	})
	return all
}

func readFile(t *tree.Tree, file string) (s Seat, ok bool) {
	data, _, err := t.Read(file, format.MaxSmall)
	return s, err == nil && json.Unmarshal(data, &s) == nil && format.ValidName(s.Agent)
}
