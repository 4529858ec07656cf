package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
)

// Refusal is the structured part of a tool error.
// See docs/tools.md, "Refusals".
type Refusal struct {
	Error string   `json:"error"` // a sentence, or what the toolset's contract says word for word
	Code  string   `json:"code"`
	Near  []string `json:"near"` // never nil
}

// InternalText is all that a client is told of a fault.
const InternalText = "Internal error: see the server's log."

// Invalid refuses arguments.
func Invalid(format string, a ...any) error { return Refused(refusal.ErrInvalid, format, a...) }

// Refused refuses a call for a reason that the toolset alone knows, in a sentence of its own.
func Refused(kind error, format string, a ...any) error {
	return &refusal.Own{Kind: kind, Text: fmt.Sprintf(format, a...)}
}

// Explain turns an error into what the caller may know of it, in the toolset's words. Faults are
// logged and told as such, no more; what names the operation in the log.
func (s *Set) Explain(what string, err error) Refusal { return s.explain(s.words.Explain, what, err) }

// ExplainIn is Explain in other words than the toolset's, to the caller of ctx.
func (s *Set) ExplainIn(ctx context.Context, words *refusal.Words, what string, err error) Refusal {
	return s.explain(s.saying(ctx, words), what, err)
}

// Note is what an answer to the caller of ctx says of err, which is no refusal; "" for nil.
func (s *Set) Note(ctx context.Context, err error) string {
	if err == nil {
		return ""
	}
	return s.saying(ctx, &s.words)(err)
}

// saying is how refusals are worded for the caller of ctx: a person at a command line knows no
// tools.
func (s *Set) saying(ctx context.Context, words *refusal.Words) func(error) string {
	if s.people != nil && CallerOf(ctx).Door == format.DoorCLI {
		return s.people
	}
	return words.Explain
}

func (s *Set) explain(say func(error) string, what string, err error) Refusal {
	r := Refusal{Error: say(err), Code: refusal.Code(err), Near: append([]string{}, refusal.Near(err)...)}
	switch {
	case r.Code != "internal":
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		r.Error, r.Code = "The call was cancelled before it was done: ask again.", "unavailable"
	default:
		s.log.Error(s.name+": "+what+" failed", "err", err)
		r.Error = InternalText
	}
	return r
}

// Refuse is the tool error for err, to the caller of ctx. What the error hints at is a second text.
func (s *Set) Refuse(ctx context.Context, what string, err error) *mcp.CallToolResult {
	r := s.ExplainIn(ctx, &s.words, what, err)
	res := &mcp.CallToolResult{
		IsError:           true,
		StructuredContent: json.RawMessage(Encode(r)),
		Content:           []mcp.Content{&mcp.TextContent{Text: r.Error}},
	}
	if hint := refusal.Hint(err); hint != "" {
		res.Content = append(res.Content, &mcp.TextContent{Text: hint})
	}
	return res
}

// Encode is JSON without HTML escapes, for readers who see it as text. v is a shape of a toolset:
// what cannot be encoded is a panic, which the handler's recover makes an internal error.
func Encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
