package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
)

// Refusal is the structured part of a tool error. See docs/reference/tools.md, "Refusals".
type Refusal struct {
	Error string   `json:"error"` // a sentence, or the text that the toolset's contract prescribes
	Code  string   `json:"code"`
	Near  []string `json:"near"` // never nil
}

// InternalText is the only information that a client gets about an internal error.
const InternalText = "Internal error: see the server's log."

// Invalid returns a refusal for invalid arguments.
func Invalid(format string, a ...any) error { return Refused(refusal.ErrInvalid, format, a...) }

// Refused returns a refusal with the given text, for a reason that exists only in this toolset.
func Refused(kind error, format string, a ...any) error {
	return &refusal.Own{Kind: kind, Text: fmt.Sprintf(format, a...)}
}

// Explain converts an error to text for the caller, using the toolset's wording. If the error is a fault, Explain logs
// it and gives the caller only InternalText. The parameter what names the operation in the log.
func (s *Set) Explain(what string, err error) Refusal {
	return s.explain(s.words.Explain, s.log, what, err)
}

// ExplainIn is like Explain, but uses the given wording, and takes the caller in ctx into account.
func (s *Set) ExplainIn(ctx context.Context, words *refusal.Words, what string, err error) Refusal {
	return s.explain(s.saying(ctx, words), s.log.With("project", CallerOf(ctx).ProjectKey()), what, err)
}

// Note converts err to a note in a response to the caller in ctx. It returns "" for nil.
func (s *Set) Note(ctx context.Context, err error) string {
	if err == nil {
		return ""
	}
	return s.saying(ctx, &s.words)(err)
}

// saying returns the function that converts an error to text for the caller in ctx. Users at a command line get a
// different text, because they do not know the tools.
func (s *Set) saying(ctx context.Context, words *refusal.Words) func(error) string {
	if s.people != nil && CallerOf(ctx).Door == format.DoorCLI {
		return s.people
	}
	return words.Explain
}

func (s *Set) explain(say func(error) string, log *slog.Logger, what string, err error) Refusal {
	r := Refusal{Error: say(err), Code: refusal.Code(err), Near: append([]string{}, refusal.Near(err)...)}
	switch {
	case r.Code != "internal":
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		r.Error, r.Code = "The call was canceled before it finished: try again.", "unavailable"
	default:
		log.Error(s.name+": "+what+" failed", "error", err)
		r.Error = InternalText
	}
	return r
}

// Refuse returns a tool error that reports err to the caller in ctx. If err has a hint, the result contains the hint as
// a second TextContent.
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

// Encode returns v as JSON without HTML escapes, because people and models see the JSON as text. It panics if v cannot
// be encoded. The handler recovers from the panic and reports an internal error.
func Encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
