package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/maildir"
)

// Refusal is the structured part of a tool error. Spec: 8.
type Refusal struct {
	Error string   `json:"error"` // a sentence, or what the toolset's contract says word for word
	Code  string   `json:"code"`
	Near  []string `json:"near"` // never nil
}

const internalText = "internal error, see the server's log"

// Invalid refuses arguments.
func Invalid(format string, a ...any) error {
	return &maildir.Error{Kind: maildir.ErrInvalid, Text: fmt.Sprintf(format, a...)}
}

// Explain turns an error into what the caller may know of it, in the toolset's wording. Faults are logged and told as
// such, no more; what names the operation in the log.
func (s *Set) Explain(what string, err error) Refusal {
	r := Refusal{Error: err.Error(), Code: maildir.Code(err), Near: []string{}}
	var e *maildir.Error
	switch {
	case errors.As(err, &e):
		r.Error, r.Near = e.Text, append(r.Near, e.Near...)
	case r.Code != "internal":
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		r.Error, r.Code = "the call was cancelled before it was done: ask again", "unavailable"
	default:
		s.log.Error(s.name+": "+what+" failed", "err", err)
		r.Error = internalText
	}
	if s.wording != nil {
		s.wording(err, &r)
	}
	return r
}

// Refuse is the tool error for err.
func (s *Set) Refuse(what string, err error) *mcp.CallToolResult {
	r := s.Explain(what, err)
	return &mcp.CallToolResult{IsError: true, StructuredContent: json.RawMessage(Encode(r)), Content: []mcp.Content{&mcp.TextContent{Text: r.Error}}}
}

// Encode is JSON without HTML escapes, for readers who see it as text. v is a shape of a toolset: what cannot be
// encoded is a panic, which the handler's recover makes an internal error.
func Encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
