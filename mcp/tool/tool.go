package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"runtime/debug"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/maildir/refusal"
)

// Tool is one tool: its declaration for clients, and the code that runs it.
type Tool struct {
	Name  string
	About string // first when to use the tool, then what it does, in words that people search for
	Hints mcp.ToolAnnotations
	In    []Arg // set by Of
	// Out is a value of the struct type of the tool's responses. The output schema is inferred from Out. See
	// OutputSchema.
	Out any
	// Run decodes the arguments, calls one operation of package maildir and converts the result to the tool's response.
	// It returns a value of the same type as Out, or a Result that contains one. CallerOf(ctx) is the caller. See Of.
	Run func(ctx context.Context, arguments json.RawMessage) (any, error)
}

// Result is a response whose text is not simply its value as JSON. The text must contain all facts that are in the
// value, because some clients show the model only the text and others only the value.
type Result struct {
	Text  string
	Value any
	Note  string // a second TextContent, used if a contract prescribes the first; empty if there is none
}

// Reads returns the hints of a tool that changes nothing. All four hints are always sent, because clients assume the
// worst if a hint is absent.
func Reads() mcp.ToolAnnotations {
	h := Marks()
	h.ReadOnlyHint = true
	return h
}

// Adds returns the hints of a tool that adds something with each call.
func Adds() mcp.ToolAnnotations {
	return mcp.ToolAnnotations{DestructiveHint: jsonschema.Ptr(false), OpenWorldHint: jsonschema.Ptr(false)}
}

// Marks returns the hints of an idempotent tool: a second call with the same arguments has no further effect.
func Marks() mcp.ToolAnnotations {
	h := Adds()
	h.IdempotentHint = true
	return h
}

// Mails returns the hints of a tool that sends email. The argument leaves says whether email may leave this machine. In
// that case, Codex asks the user before it calls the tool. See docs/reference/tools.md, "Hints".
func Mails(leaves bool) mcp.ToolAnnotations {
	h := Adds()
	*h.OpenWorldHint = leaves
	return h
}

// Destroys returns the hints of a tool that destroys something that agents cannot restore with another tool. Codex asks
// the user before each call of such a tool, and refuses the call if there is no user to ask.
func Destroys() mcp.ToolAnnotations {
	h := Marks()
	*h.DestructiveHint = true
	return h
}

// Declare returns the declarations of a toolset's tools for clients. They contain no titles, because a title would only
// repeat the name, and many clients include the whole declaration in the prompt.
func Declare(tools []Tool) []*mcp.Tool {
	all, out := make([]*mcp.Tool, len(tools)), published(tools)
	for i, t := range tools {
		all[i] = &mcp.Tool{
			Name:         t.Name,
			Description:  t.About,
			Annotations:  &t.Hints,
			InputSchema:  InputSchema(t.In),
			OutputSchema: out[i],
		}
	}
	return all
}

// handler returns the handler that calls the tool. The handler never returns a protocol error, because models do not
// see protocol errors.
func (s *Set) handler(t Tool) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (res *mcp.CallToolResult, _ error) {
		defer func() {
			if p := recover(); p != nil {
				res = s.Refuse(ctx, t.Name, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
			}
		}()
		out, err := t.Run(ctx, req.Params.Arguments)
		if err != nil {
			return s.Refuse(ctx, t.Name, err), nil
		}
		return s.answer(ctx, t, out), nil
	}
}

// answer serializes a tool's response. If the response exceeds the budget, answer returns a refusal that says how to
// get a smaller one.
func (s *Set) answer(ctx context.Context, t Tool, out any) *mcp.CallToolResult {
	r, ok := out.(Result)
	if !ok {
		r.Value = out
	}
	data := Encode(r.Value)
	size := InTool.ofJSON(data)
	if ok {
		_, text := InText.fit(r.Text, math.MaxInt)
		size = (2*InText.ofJSON(data) + text) / 3
	} else {
		r.Text = string(data)
	}
	if most := s.budget.bytes(); size > most {
		return s.Refuse(ctx, t.Name, Refused(refusal.ErrTooLarge,
			"The response from %s would be %d bytes, over the limit of %d: %s.", t.Name, size, most, t.less()))
	}
	res := &mcp.CallToolResult{StructuredContent: json.RawMessage(data), Content: []mcp.Content{&mcp.TextContent{Text: r.Text}}}
	if r.Note != "" {
		res.Content = append(res.Content, &mcp.TextContent{Text: r.Note})
	}
	return res
}

// less returns a sentence that says how to ask the tool for a smaller response.
func (t Tool) less() string {
	for _, p := range t.In {
		if p.Name == "limit" {
			return "pass a smaller limit"
		}
	}
	return "request one thing at a time"
}
