package event

import (
	"bytes"
	"encoding/json"
)

// Answer is a hook's response to an event. The zero value is an empty answer.
type Answer struct {
	Tell  string // text for the model
	Deny  string // tells the model why it must not change the files that an Edit names
	Warn  string // warns the model about files in an Edit that it may change
	Agent string // the session's agent, for clients that copy variables from the answer into their shells
}

// Format returns the text that the hook must print, and its exit status, in the form that the event's client expects.
// For an empty answer, it returns no bytes and 0, unless the client requires an answer.
func (a Answer) Format(e Event) (stdout, stderr []byte, exit int) {
	r := clients[e.Client].answer(a, e)
	if r == nil {
		return nil, nil, 0
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(r) // cannot fail: r contains only strings
	return b.Bytes(), nil, 0
}

// reply is an answer in the form used by Claude Code and by the clients that copied its hooks.
type reply struct {
	Decision string    `json:"decision,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	System   string    `json:"systemMessage,omitempty"` // text for the user
	Specific *specific `json:"hookSpecificOutput,omitempty"`
}

type specific struct {
	Event    string `json:"hookEventName"`
	Decision string `json:"permissionDecision,omitempty"`
	Reason   string `json:"permissionDecisionReason,omitempty"`
	Context  string `json:"additionalContext,omitempty"`
}

// forModel returns all text for the model except a refusal.
func (a Answer) forModel() string {
	if a.Warn != "" && a.Tell != "" {
		return a.Warn + "\n" + a.Tell
	}
	return a.Warn + a.Tell
}
