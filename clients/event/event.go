// Package event is what a client tells its hook (`mailtree hook CLIENT`, which it runs at its
// events), and what it understands in answer. It reads and writes nothing but bytes in memory.
//
//	event.go    Event, which is what all clients tell, and Parse
//	answer.go   Answer, which is what all clients can be told, and Format
//	table.go    the clients: their events' names, and how each is answered
//	plain.go    answers that are not as Claude Code's
//
// fixtures/hooks holds what each client sends, the Event that is read in it, and the bytes that it
// gets in answer.
package event

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Kind is what has happened in a session. The zero value is something that concerns nobody here.
type Kind string

// The kinds of events.
const (
	Start   Kind = "start"   // a session begins, or goes on: see Event.Source
	Prompt  Kind = "prompt"  // a person's prompt goes to the model
	Edit    Kind = "edit"    // a tool is about to change files
	Tool    Kind = "tool"    // tools have run, and the model goes on
	Ask     Kind = "ask"     // the client asks a person whether a tool may run
	Stop    Kind = "stop"    // a turn ends
	End     Kind = "end"     // the session ends
	Compact Kind = "compact" // the model's context has been cut
)

// Event is what a client tells its hook.
type Event struct {
	Client  string // as in `mailtree hook CLIENT`
	Name    string // of the event, as the client says it
	Kind    Kind
	Source  string // of a Start: startup, resume, clear, compact, fork; of a Stop: how the turn ended; "" where the client does not say
	Session string // the client's id of the conversation
	Dir     string // the session's working directory, which may change
	Root    string // the folder that the client was started in; Dir where it does not say
	Model   string // "" where the client does not say

	Deaf     bool // the client keeps the answer from the model
	Subagent bool // it happened to an agent that the session's own agent started

	Paths []string // the files that a tool changes, absolute or relative to Dir; an Edit has some
}

// ErrClient means that there is no client of that name.
var ErrClient = errors.New("no such client")

// Parse reads what a client wrote to its hook's standard input. env returns a variable of the
// hook's environment, "" for none. An event that concerns nobody here has no Kind. Errors: ErrClient;
// those of encoding/json for what is no JSON object.
func Parse(client string, stdin []byte, env func(name string) string) (Event, error) {
	c, ok := clients[client]
	if !ok {
		return Event{}, fmt.Errorf("%q: %w", client, ErrClient)
	}
	var p payload
	var mistyped *json.UnmarshalTypeError // a field of another type counts as absent
	if err := json.Unmarshal(stdin, &p); err != nil && (!errors.As(err, &mistyped) || mistyped.Field == "") {
		return Event{}, err
	}
	e := Event{
		Client:   client,
		Name:     cmp.Or(p.Event, p.unnamed()),
		Source:   cmp.Or(p.Source, p.Status),
		Session:  cmp.Or(p.Session, p.Conversation, p.ConversationID),
		Dir:      cmp.Or(p.Dir, first(p.Roots), first(p.WorkspacePaths)),
		Model:    p.Model,
		Subagent: p.AgentID != "",
	}
	e.Kind = c.kinds[e.Name]
	e.Root = cmp.Or(env(c.rootVar), first(p.Roots), e.Dir)
	e.Deaf = slices.Contains(c.deaf, e.Name) || slices.Contains(c.deaf, e.Name+" "+e.Source)
	for _, t := range append(p.Calls, p.call) {
		c.addFiles(&e, t)
	}
	if e.Kind == Edit && len(e.Paths) == 0 {
		e.Kind = ""
	}
	return e, nil
}

// payload holds the fields that clients send.
type payload struct {
	Event          string   `json:"hook_event_name"`
	Session        string   `json:"session_id"`
	Conversation   string   `json:"conversation_id"` // Cursor's
	ConversationID string   `json:"conversationId"`  // Antigravity's
	Dir            string   `json:"cwd"`
	Roots          []string `json:"workspace_roots"` // Cursor's
	WorkspacePaths []string `json:"workspacePaths"`  // Antigravity's
	Source         string   `json:"source"`
	Status         string   `json:"status"`
	Model          string   `json:"model"`
	AgentID        string   `json:"agent_id"`
	Calls          []call   `json:"tool_calls"`
	Invocation     *int     `json:"invocationNum"` // Antigravity's
	call
}

// unnamed is the name of an event of a client that leaves the name out.
func (p *payload) unnamed() string {
	if p.Invocation != nil {
		return "PreInvocation"
	}
	return ""
}

func first(l []string) string {
	if len(l) == 0 {
		return ""
	}
	return l[0]
}

// call is one call of a tool.
type call struct {
	Tool  string `json:"tool_name"`
	Input input  `json:"tool_input"`
}

// addFiles adds the files that a tool changes. Of tools that change no file, nobody needs to know
// beforehand.
func (c client) addFiles(e *Event, t call) {
	paths := shellPatched(t.Input.text("command"))
	if slices.Contains(c.editors, t.Tool) {
		paths = t.Input.files()
	}
	e.Paths = distinct(append(e.Paths, paths...))
}
