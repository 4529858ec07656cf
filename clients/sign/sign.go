// Package sign reads a session's state from a client's own files. Clients report to their hooks when a turn starts and
// when it ends normally. A turn also ends if the user interrupts it, if it fails, or if the user refuses a tool call.
// Clients record such an end only in their files. The process that waits for mail for a session reads these files. The
// server never does.
//
//	sign.go   Session, and what a line or a file means, for each client
//	file.go   how a file is opened and read
//
// The model controls much of the text in these files, because it chooses what its tools print. For this reason, this
// package checks only which kind of entry the client has written, never the text inside an entry. See
// docs/reference/hooks.md, "How a turn ends".
package sign

import (
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"

	"mailtree/maildir/seat"
)

// client contains the functions that find and parse a client's files.
type client struct {
	// transcript returns the path of a session's transcript, a file with one line for each event.
	transcript func(s Session) string
	line       func(line []byte) seat.State // returns the state that a line shows, or "" if it shows none
	// prompt reports whether a line is a prompt. It is nil if the client never runs a tool's hook after the turn with
	// the tool call has ended.
	prompt func(line []byte) bool
	// status returns the path of the file with a session's current state. statusIs parses the file and returns the
	// state, along with a string that changes whenever the state does. Both are nil for a client with a transcript.
	status   func(s Session) string
	statusIs func(data []byte, session string) (is seat.State, said string)
}

var clients = map[string]client{
	"claude":  {status: claudeStatus, statusIs: claudeStatusIs},
	"codex":   {transcript: reported, line: codexLine},
	"gemini":  {transcript: reported, line: geminiLine, prompt: geminiPrompt},
	"copilot": {transcript: copilotTranscript, line: copilotLine},
}

// Session describes a session as reported by its client to a hook.
type Session struct {
	Client     string
	ID         string
	PID        int                      // the client's process; 0 means unknown
	Transcript string                   // the path that the client reports; "" if it reports none
	Home       string                   // the user's home folder
	Env        func(name string) string // looks up a variable in the hook's environment
}

// reported returns the transcript's path as reported by the client.
func reported(s Session) string {
	if !filepath.IsAbs(s.Transcript) {
		return ""
	}
	return s.Transcript
}

// claudeStatus returns the path of the status file that Claude Code writes for each of its processes.
func claudeStatus(s Session) string {
	dir := s.Env("CLAUDE_CONFIG_DIR")
	if dir == "" {
		dir = filepath.Join(s.Home, ".claude")
	}
	if s.PID <= 0 || !filepath.IsAbs(dir) {
		return ""
	}
	return filepath.Join(dir, "sessions", strconv.Itoa(s.PID)+".json")
}

// claudeStatusIs parses a status file. If the process is now running another session, the file contains nothing about
// the given session.
func claudeStatusIs(data []byte, session string) (is seat.State, said string) {
	var file struct {
		Session string      `json:"sessionId"`
		Status  string      `json:"status"`
		Since   json.Number `json:"statusUpdatedAt"`
	}
	if json.Unmarshal(data, &file) != nil || file.Session != session {
		return "", ""
	}
	is = map[string]seat.State{"busy": seat.Works, "idle": seat.Idles, "waiting": seat.Asks}[file.Status]
	return is, file.Status + " " + file.Since.String()
}

// codexLine parses a line of a rollout file. If an API error ends a turn, Codex records this in the file, but does not
// report it to any hook.
func codexLine(line []byte) seat.State {
	var entry struct {
		Type    string `json:"type"`
		Payload struct {
			Type string `json:"type"`
		} `json:"payload"`
	}
	if json.Unmarshal(line, &entry) != nil || entry.Type != "event_msg" {
		return ""
	}
	switch entry.Payload.Type {
	case "task_complete", "turn_aborted":
		return seat.Idles
	}
	return ""
}

// geminiLine parses a line of a chat file. If the user presses Esc or answers "No", Gemini CLI records a canceled
// request.
func geminiLine(line []byte) seat.State {
	var entry struct {
		Type    string          `json:"type"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(line, &entry) == nil && entry.Type == "info" && string(entry.Content) == `"Request cancelled."` {
		return seat.Idles
	}
	return ""
}

// geminiPrompt reports whether a line is the user's prompt. Gemini CLI also records the results of tools as user
// entries.
func geminiPrompt(line []byte) bool {
	var entry struct {
		Type    string `json:"type"`
		Content []struct {
			Text *string `json:"text"`
		} `json:"content"`
	}
	return json.Unmarshal(line, &entry) == nil && entry.Type == "user" && len(entry.Content) > 0 && entry.Content[0].Text != nil
}

// copilotTranscript returns the path of a session's transcript. Copilot CLI itself reports the path only at the end of
// a turn.
func copilotTranscript(s Session) string {
	dir := s.Env("COPILOT_HOME")
	if dir == "" {
		dir = filepath.Join(s.Home, ".copilot")
	}
	if !filepath.IsAbs(dir) || s.ID == "" || strings.ContainsAny(s.ID, `/\`) || s.ID[0] == '.' {
		return ""
	}
	return filepath.Join(dir, "session-state", s.ID, "events.jsonl")
}

func copilotLine(line []byte) seat.State {
	var entry struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(line, &entry) != nil {
		return ""
	}
	switch entry.Type {
	case "abort", "session.error":
		return seat.Idles
	case "permission.completed":
		return seat.Works
	}
	return ""
}
