package mail

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/maildir"
)

// refusal is the structured part of a tool error. Spec: 8.
type refusal struct {
	Error string   `json:"error"`
	Code  string   `json:"code"`
	Near  []string `json:"near"`
}

const internalText = "internal error, see the server's log"

// invalid refuses arguments.
func invalid(format string, a ...any) error {
	return &maildir.Error{Kind: maildir.ErrInvalid, Text: fmt.Sprintf(format, a...)}
}

// explain turns an error into what the caller may know of it. Faults are logged and told as such, no more.
func (t *Toolset) explain(what string, err error) refusal {
	r := refusal{Error: err.Error(), Code: maildir.Code(err), Near: []string{}}
	var e *maildir.Error
	switch {
	case errors.As(err, &e):
		r.Error, r.Near = e.Text, append(r.Near, e.Near...)
	case r.Code != "internal":
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		r.Error, r.Code = "the call was cancelled before it was done: ask again", "unavailable"
	default:
		t.log.Error("mail: "+what+" failed", "err", err)
		r.Error = internalText
	}
	return r
}

// refuse is the tool error for err.
func (t *Toolset) refuse(what string, err error) *mcp.CallToolResult {
	r := t.explain(what, err)
	return &mcp.CallToolResult{IsError: true, StructuredContent: json.RawMessage(encode(r)), Content: []mcp.Content{&mcp.TextContent{Text: r.Error}}}
}

// encode is JSON without HTML escapes, for readers who see it as text. v is one of this package's own types.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // the handler's recover makes it an internal error
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
