package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"runtime/debug"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/maildir"
)

// Tool is one tool: what clients are told about it and what it does.
type Tool struct {
	Name, Title string
	About       string // one sentence, with the words people search for
	Hints       mcp.ToolAnnotations
	In, Out     []Prop
	// Run decodes, calls one verb of the domain and shapes the answer: a value whose JSON is an object that Out
	// describes, or a Result. Who calls is CallerOf(ctx). The names of the arguments have been checked.
	Run func(ctx context.Context, a *Args) (any, error)
}

// Result is an answer whose text is not the JSON of its value. The text must say all that the value does: some
// clients show the model only the one, some only the other.
type Result struct {
	Text  string
	Value any
	Note  string // a second text, where the first has a contract that leaves no place for it; "" for none
}

// Reads are the hints of a tool that changes nothing. All four always stand on the wire: clients take an absent
// one for the worst case.
func Reads() mcp.ToolAnnotations { return hints(true, false, true) }

// Adds is for tools whose every call adds something.
func Adds() mcp.ToolAnnotations { return hints(false, false, false) }

// Marks is for tools that, called again with the same arguments, change nothing more.
func Marks() mcp.ToolAnnotations { return hints(false, false, true) }

// Takes is for tools whose every call takes something that the next call does not get.
func Takes() mcp.ToolAnnotations { return hints(false, true, false) }

// Removes is for tools that take something away for good, once.
func Removes() mcp.ToolAnnotations { return hints(false, true, true) }

func hints(reads, destroys, again bool) mcp.ToolAnnotations {
	world := false
	return mcp.ToolAnnotations{ReadOnlyHint: reads, DestructiveHint: &destroys, IdempotentHint: again, OpenWorldHint: &world}
}

// Declare is the tool as clients see it.
func (t Tool) Declare() *mcp.Tool {
	hints := t.Hints
	hints.Title = t.Title
	return &mcp.Tool{Name: t.Name, Title: t.Title, Description: t.About, Annotations: &hints,
		InputSchema: InputSchema(t.In), OutputSchema: OutputSchema(t.Out)}
}

// handler calls the tool. It never returns a protocol error: what the model cannot see it cannot mend.
func (s *Set) handler(t Tool) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (res *mcp.CallToolResult, _ error) {
		defer func() {
			if p := recover(); p != nil {
				res = s.Refuse(t.Name, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
			}
		}()
		a := DecodeArgs(t.Name, req.Params.Arguments, t.In)
		if a.err != nil {
			return s.Refuse(t.Name, a.err), nil
		}
		out, err := t.Run(ctx, a)
		if err != nil {
			return s.Refuse(t.Name, err), nil
		}
		return s.answer(t, out), nil
	}
}

// answer serializes what a tool returned, unless that is over the budget: then it is a refusal that says how to ask for less.
func (s *Set) answer(t Tool, out any) *mcp.CallToolResult {
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
		return s.Refuse(t.Name, &maildir.Error{Kind: maildir.ErrTooLarge,
			Text: fmt.Sprintf("the answer of %s would have %d bytes, over the limit of %d: %s", t.Name, size, most, t.less())})
	}
	res := &mcp.CallToolResult{StructuredContent: json.RawMessage(data), Content: []mcp.Content{&mcp.TextContent{Text: r.Text}}}
	if r.Note != "" {
		res.Content = append(res.Content, &mcp.TextContent{Text: r.Note})
	}
	return res
}

// less says how to ask a tool for a smaller answer.
func (t Tool) less() string {
	for _, p := range t.In {
		if p.Name == "limit" {
			return "pass a smaller limit"
		}
	}
	return "ask for one thing at a time"
}
