// Package event parses the events that a client reports to its hook (`mailtree hook CLIENT`), and formats the hook's
// answers in the client's own form. It works only on bytes in memory.
//
//	event.go    Event, the common form of the clients' events, and Parse
//	answer.go   Answer, the common form of answers, and Format
//	table.go    the clients: their event names, and the form of their answers
//	plain.go    answers in forms other than Claude Code's
//
// fixtures/hooks contains, for each client, the input, the Event parsed from it, and the bytes of the answer.
package event

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Kind is a kind of event. The zero value means that mailtree ignores the event.
type Kind string

// These are the kinds of events.
const (
	Start   Kind = "start"   // a session begins or continues; see Event.Source
	Prompt  Kind = "prompt"  // the user's prompt is sent to the model
	Edit    Kind = "edit"    // a tool is about to change files
	Tool    Kind = "tool"    // tools have run, and the model continues
	Ask     Kind = "ask"     // the client asks the user whether a tool may run
	Stop    Kind = "stop"    // a turn ends
	End     Kind = "end"     // the session ends
	Compact Kind = "compact" // the client has shortened the model's context
)

// Event is an event that a client reports to its hook.
type Event struct {
	Client  string // the client's name, as in `mailtree hook CLIENT`
	Name    string // the client's name for the event
	Kind    Kind
	Source  string // for a Start: startup, resume, clear, compact, fork; for a Stop: how the turn ended; "" if the client does not say
	Session string // the client's id for the conversation
	Dir     string // the session's working directory, which may change
	Root    string // the folder in which the client was started; Dir if the client does not say
	Model   string // "" if the client does not say

	Transcript string // the file in which the client records the session; "" if the client does not say

	Deaf     bool // the client will not show the answer to the model
	Subagent bool // the event happened in a subagent of the session's agent

	Paths []string // the files that a tool changes, absolute or relative to Dir; an Edit has at least one

	Asks string // for an Ask: the tool and its file, or the first line of its command; "" if the client does not say
}

// Edited returns the absolute paths of the files that tools have changed. For an event before a change, or after a tool
// has failed, it returns nil.
func (e *Event) Edited() (paths []string) {
	if e.Kind != Tool || strings.HasSuffix(e.Name, "Failure") {
		return nil
	}
	for _, path := range e.Paths {
		if !filepath.IsAbs(path) {
			path = filepath.Join(e.Dir, path)
		}
		paths = append(paths, path)
	}
	return paths
}

// ErrClient means that the client is unknown.
var ErrClient = errors.New("no such client")

// Parse parses the standard input that a client passes to its hook. To read the hook's environment, it calls env, which
// returns "" for a variable that is not set. If mailtree ignores the event, Kind is "". Parse returns ErrClient, and
// errors from encoding/json if stdin is not a JSON object.
func Parse(client string, stdin []byte, env func(name string) string) (Event, error) {
	c, ok := clients[client]
	if !ok {
		return Event{}, fmt.Errorf("%q: %w", client, ErrClient)
	}
	var p payload
	var mistyped *json.UnmarshalTypeError // a field with an unexpected type is treated as absent
	if err := json.Unmarshal(stdin, &p); err != nil && (!errors.As(err, &mistyped) || mistyped.Field == "") {
		return Event{}, err
	}
	if client == "claude" && p.Timestamp != nil && env("COPILOT_PROJECT_DIR") != "" {
		return Event{Client: client}, nil // Copilot CLI also runs a code base's hooks for Claude Code
	}
	e := Event{
		Client:     client,
		Name:       cmp.Or(p.Event, p.unnamed()),
		Source:     cmp.Or(p.Source, p.Status),
		Session:    cmp.Or(p.Session, p.Conversation, p.ConversationID, p.SessionID),
		Dir:        cmp.Or(p.Dir, first(p.Roots), first(p.WorkspacePaths)),
		Model:      p.Model,
		Transcript: p.Transcript,
		Subagent:   p.AgentID != "",
	}
	e.Kind = cmp.Or(c.kinds[e.Name], c.kinds[e.Name+" "+p.Notification])
	e.Root = cmp.Or(env(c.rootVar), first(p.Roots), e.Dir)
	e.Deaf = slices.Contains(c.deaf, e.Name) || slices.Contains(c.deaf, e.Name+" "+e.Source)
	for _, t := range append(p.Calls, p.call, call{p.ToolName, p.ToolArgs}) {
		c.addFiles(&e, t)
	}
	if e.Kind == Ask {
		e.Asks = p.asks(e.Dir)
	}
	if e.Kind == Edit && len(e.Paths) == 0 {
		e.Kind = ""
	}
	return e, nil
}

// payload contains the fields that clients send in an event.
type payload struct {
	Event          string   `json:"hook_event_name"`
	Session        string   `json:"session_id"`
	Conversation   string   `json:"conversation_id"` // sent by Cursor
	ConversationID string   `json:"conversationId"`  // sent by Antigravity
	Dir            string   `json:"cwd"`
	Roots          []string `json:"workspace_roots"` // sent by Cursor
	WorkspacePaths []string `json:"workspacePaths"`  // sent by Antigravity
	Source         string   `json:"source"`
	Status         string   `json:"status"`
	Model          string   `json:"model"`
	AgentID        string   `json:"agent_id"`
	Calls          []call   `json:"tool_calls"`
	Invocation     *int     `json:"invocationNum"` // sent by Antigravity
	Notification   string   `json:"notification_type"`
	Message        string   `json:"message"`
	Transcript     string   `json:"transcript_path"`
	call

	Timestamp json.RawMessage `json:"timestamp"` // Claude Code does not send a timestamp

	// These are the fields that Copilot sends for events with a camelCase name.
	SessionID  string          `json:"sessionId"`
	ToolName   string          `json:"toolName"`
	ToolArgs   input           `json:"toolArgs"`
	ToolResult json.RawMessage `json:"toolResult"`
}

// unnamed infers the event's name if the client does not send it.
func (p *payload) unnamed() string {
	switch {
	case p.Invocation != nil:
		return "PreInvocation"
	case p.ToolName != "" && p.ToolResult == nil:
		return "PreToolUse"
	}
	return ""
}

// asks describes the action for which the client asks the user's permission. The path of a file in dir is relative to
// dir.
func (p *payload) asks(dir string) string {
	text := p.Message
	if p.Tool != "" {
		file := strings.TrimPrefix(first(p.Input.files()), dir+"/")
		text = strings.TrimSuffix(p.Tool+": "+cmp.Or(file, p.Input.text("command")), ": ")
	}
	text, _, _ = strings.Cut(text, "\n")
	return text
}

func first(l []string) string {
	if len(l) == 0 {
		return ""
	}
	return l[0]
}

// call is one tool call.
type call struct {
	Tool  string `json:"tool_name"`
	Input input  `json:"tool_input"`
}

// addFiles adds the files that a tool call changes to the event's paths. If the call changes no files, the event's
// paths stay empty, and there is nothing to check before the call.
func (c client) addFiles(e *Event, t call) {
	paths := shellPatched(t.Input.text("command"))
	if slices.Contains(c.editors, t.Tool) && t.Input.text("command") != "view" { // str_replace_editor also reads files
		paths = t.Input.files()
	}
	e.Paths = distinct(append(e.Paths, paths...))
}
