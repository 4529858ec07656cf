// Package seat records where agents can be reached: the agent of each client session, and the tmux pane of each agent
// without a session. For each of these seats, it also records which messages were announced and when, and the last
// attempt to wake the agent. This is run-time state, kept in memory and in .mailtree/sessions, with one file for each
// seat. If it is lost, a session may become another agent, and agents get notices about their mail again. See
// docs/reference/hooks.md, and docs/reference/agentmail.md, "Waking an agent in tmux".
//
//	seat.go     Seat, and Read, which needs no server
//	book.go     Book: the seats of a project
//	wake.go     how to wake a seat, and how the last attempt ended
//	news.go     the text of a notice about mail
//	process.go  the process of a client, and whether it is still running
//	waiter.go   the process that is waiting to wake a session if no server is running
package seat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/lazy"
	"mailtree/maildir/tree"
)

// Key identifies a seat: a client's session, or an agent's window (WindowOf).
type Key struct {
	Client string `json:"client"`  // name of the client, as in `mailtree hook CLIENT`; empty for a window
	ID     string `json:"session"` // the session's id or, for a window, the agent's name
}

// WindowOf returns the key of the seat for an agent that has no session and gets notices about its mail in a tmux
// window.
func WindowOf(agent string) Key { return Key{ID: agent} }

// Valid reports whether a session may have this key.
func (k Key) Valid() bool {
	return format.PlainName(k.Client) && len(k.Client) <= 32 && k.ID != "" && len(k.ID) <= 256
}

// IsWindow reports whether the key is a window's key.
func (k Key) IsWindow() bool { return k.Client == "" }

// path returns the path of the seat's file.
func (k Key) path() string {
	sum := sha256.Sum256([]byte(k.ID))
	return format.SessionsDir + "/" + k.Client + "-" + hex.EncodeToString(sum[:16])
}

// Pane is a tmux pane. The zero value means no pane.
type Pane struct {
	Tmux   string `json:"tmux"`             // value of $TMUX in the pane: socket, pid of the tmux server, session
	Pane   string `json:"pane"`             // value of $TMUX_PANE in the pane
	Window string `json:"window,omitempty"` // the window's name if the agent is named after it, otherwise empty
}

// Socket returns the path of the tmux server's socket.
func (p Pane) Socket() string {
	socket, _, _ := strings.Cut(p.Tmux, ",")
	return socket
}

// These patterns limit what Attach's command may contain, because agents report their own panes, and users paste the
// command into a shell.
var (
	plainSocket = lazy.Regexp(`^/[\w./@+-]+$`)
	plainPane   = lazy.Regexp(`^%[0-9]+$`)
)

// Attach returns the command that shows the pane in a terminal outside tmux. It returns "" if there is no pane, or if
// the command would contain characters that are special in a shell.
func (p Pane) Attach() string {
	switch socket := p.Socket(); {
	case !plainPane().MatchString(p.Pane) || !plainSocket().MatchString(socket):
		return ""
	case filepath.Base(socket) == "default":
		return "tmux attach -t " + p.Pane
	default:
		return "tmux -S " + socket + " attach -t " + p.Pane
	}
}

// Seat is the recorded state of a session or a window.
type Seat struct {
	Key
	Agent   string    `json:"agent"`
	Dir     string    `json:"dir"`              // the folder in which the client was started
	Pane    Pane      `json:"seat,omitzero"`    // the client's pane, or the pane from which the agent last called
	Process Process   `json:"process,omitzero"` // the client's process; empty if unknown
	Began   time.Time `json:"began"`
	Active  time.Time `json:"active"`         // when the client last reported an event; accurate to the minute
	Ended   time.Time `json:"ended,omitzero"` // zero while the session is live
	Working bool      `json:"working"`        // a turn is in progress
	Turn    int       `json:"turn,omitempty"` // number of prompts reported so far, which is also the last turn's number
	Asks    bool      `json:"asks,omitempty"` // the client is asking the user whether a tool may run
	Tool    string    `json:"tool,omitempty"` // the tool that the client asks about; empty if Asks is false or the tool is unknown
	Wake    Wake      `json:"wake,omitzero"`

	// Messages announced before Since are announced again, because since then the model has lost its context, or the
	// window's agent has worked or been offline.
	Since      time.Time            `json:"since,omitzero"`
	Introduced bool                 `json:"introduced"`      // the model has been told its agent's name
	Told       map[string]time.Time `json:"told,omitempty"`  // when a message was last announced, by message id
	Before     time.Time            `json:"before,omitzero"` // messages before this time are treated as announced
}

// silentFor is how long a session without events is treated as live if it has no process of its own, or if its process
// is unknown.
const silentFor = 24 * time.Hour

// Live reports whether the session is still running at the time now.
func (s *Seat) Live(now time.Time) bool {
	if !s.Ended.IsZero() || s.Process.Gone() {
		return false
	}
	known := s.Process != "" && !s.Process.Serves() // a process that serves several sessions outlives them
	return known || now.Sub(s.Active) < silentFor
}

// Cut records that the model's context was reset. Every unread message is then treated as not yet announced.
func (s *Seat) Cut(now time.Time) { s.Since, s.Before = now, time.Time{} }

// Unread is one of an agent's unread messages.
type Unread struct {
	ID                    string
	From, Subject, Thread string
	Created               time.Time
}

// Untold returns the unread messages that have not been announced at this seat since the last Cut.
func (s *Seat) Untold(unread []Unread) []Unread {
	return slices.DeleteFunc(slices.Clone(unread), func(m Unread) bool {
		at, told := s.Told[m.ID]
		return told && !at.Before(s.Since) || m.Created.Before(s.Before)
	})
}

// Most is the maximum number of unread messages that a notice considers. Older messages are treated as announced.
const Most = 200

// noteTold records that the agent is getting a notice about the messages. It also keeps the newest records about other
// messages, because those messages' senders can see when the agent got the notice.
func (s *Seat) noteTold(unread []Unread, now time.Time) {
	s.Told = maps.Clone(s.Told) // a copy, because callers may hold the old map
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

// Read reads a session's seat from its file, as last written. ok is false if there is no such file. Read does not
// need a server.
func Read(t *tree.Tree, k Key) (s Seat, ok bool) {
	if !k.Valid() {
		return Seat{}, false
	}
	s, ok = readFile(t, k.path())
	return s, ok && s.Key == k
}

// LastHeard returns the last time at which any of a client's sessions in a tree reported an event, or the zero time if
// there is none. It does not need a server.
func LastHeard(t *tree.Tree, client string) (at time.Time) {
	for _, s := range readAll(t) {
		if s.Client == client && s.Active.After(at) {
			at = s.Active
		}
	}
	return at
}

// Sits reports whether one of the given processes runs one of the tree's sessions, or whether one of the tree's agents
// is using the tmux pane. It does not need a server.
func Sits(t *tree.Tree, above []Process, at Pane) bool {
	return slices.ContainsFunc(readAll(t), func(s Seat) bool {
		inPane := at.Pane != "" && s.Pane.Tmux == at.Tmux && s.Pane.Pane == at.Pane && s.Ended.IsZero() && !s.Process.Gone()
		return inPane || slices.Contains(above, s.Process)
	})
}

// readAll reads a tree's seats. A damaged file is treated as missing.
func readAll(t *tree.Tree) (all []Seat) {
	// Do not use a caller's context here: a Book keeps the result, so it must be complete.
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
