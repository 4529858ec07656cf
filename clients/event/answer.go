package event

import (
	"bytes"
	"encoding/json"
)

// Answer is the hook's answer. The zero value is an empty answer.
type Answer struct {
	Tell  string // for the model
	Deny  string // why the files of an Edit must not be changed, for the model
	Warn  string // for the model, about the files of an Edit that may be changed
	Agent string // the session's agent, for clients that copy variables from an answer into their shells
}

// Format returns what the hook prints, and its exit status, in the form that the event's client expects. For an empty
// answer it returns no bytes and 0, unless the client requires more.
func (a Answer) Format(e Event) (stdout, stderr []byte, exit int) {
	r := clients[e.Client].answer(a, e)
	if r == nil {
		return nil, nil, 0
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(r) // only strings: cannot fail
	return b.Bytes(), nil, 0
}

// reply is an answer in the form that Claude Code expects. Clients that copied its hooks expect the same form.
type reply struct {
	Decision string    `json:"decision,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	System   string    `json:"systemMessage,omitempty"` // for the user
	Specific *specific `json:"hookSpecificOutput,omitempty"`
}

type specific struct {
	Event    string `json:"hookEventName"`
	Decision string `json:"permissionDecision,omitempty"`
	Reason   string `json:"permissionDecisionReason,omitempty"`
	Context  string `json:"additionalContext,omitempty"`
}

// forModel returns everything that the answer tells the model, except a refusal.
func (a Answer) forModel() string {
	if a.Warn != "" && a.Tell != "" {
		return a.Warn + "\n" + a.Tell
	}
	return a.Warn + a.Tell
}
