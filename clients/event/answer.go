package event

import (
	"bytes"
	"encoding/json"
)

// Answer is what the hook has to say. The zero value says nothing.
type Answer struct {
	Tell  string // for the model
	Deny  string // why the files of an Edit must not be changed, for the model
	Warn  string // for the model, about the files of an Edit that may be changed
	Agent string // who the session is, for clients that give their shells the variables of an answer
}

// Format returns what the hook prints, and its exit status, in the words of the event's client. An
// answer that says nothing is no byte and 0, but where the client asks for more.
func (a Answer) Format(e Event) (stdout, stderr []byte, exit int) {
	r := clients[e.Client].answer(a, e)
	if r == nil {
		return nil, nil, 0
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(r) // strings alone
	return b.Bytes(), nil, 0
}

// reply is an answer as Claude Code reads it, and those who took over its hooks.
type reply struct {
	Decision string    `json:"decision,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	System   string    `json:"systemMessage,omitempty"` // for the person
	Specific *specific `json:"hookSpecificOutput,omitempty"`
}

type specific struct {
	Event    string `json:"hookEventName"`
	Decision string `json:"permissionDecision,omitempty"`
	Reason   string `json:"permissionDecisionReason,omitempty"`
	Context  string `json:"additionalContext,omitempty"`
}

// forModel is everything that the answer tells the model beside a refusal.
func (a Answer) forModel() string {
	if a.Warn != "" && a.Tell != "" {
		return a.Warn + "\n" + a.Tell
	}
	return a.Warn + a.Tell
}
