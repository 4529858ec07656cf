package mail

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/maildir"
)

// tool is one tool: what clients are told about it and what it does.
type tool struct {
	name, title string
	about       string // one sentence, with the words people search for
	hints       mcp.ToolAnnotations
	in, out     []prop
	run         func(ctx context.Context, t *Toolset, a *args) (any, error)
}

// The hints of the tools. All four always stand on the wire: clients take an absent one for the worst case.
func reads() mcp.ToolAnnotations { return hints(true, false, true) }

// adds is for tools whose every call adds something.
func adds() mcp.ToolAnnotations { return hints(false, false, false) }

// marks is for tools that, called again with the same arguments, change nothing more.
func marks() mcp.ToolAnnotations { return hints(false, false, true) }

// removes is for tools that take something away.
func removes() mcp.ToolAnnotations { return hints(false, true, true) }

func hints(reads, destroys, again bool) mcp.ToolAnnotations {
	world := false
	return mcp.ToolAnnotations{ReadOnlyHint: reads, DestructiveHint: &destroys, IdempotentHint: again, OpenWorldHint: &world}
}

func (tl tool) declare(icons []mcp.Icon) *mcp.Tool {
	hints := tl.hints
	hints.Title = tl.title
	return &mcp.Tool{Name: tl.name, Title: tl.title, Description: tl.about, Annotations: &hints, Icons: icons,
		InputSchema: inputSchema(tl.in), OutputSchema: outputSchema(tl.out)}
}

// handler calls the tool. It never returns a protocol error: what the model cannot see it cannot mend.
func (t *Toolset) handler(tl tool) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (res *mcp.CallToolResult, _ error) {
		defer func() {
			if p := recover(); p != nil {
				res = t.refuse(tl.name, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
			}
		}()
		a := decodeArgs(tl.name, req.Params.Arguments, tl.in)
		if a.err != nil {
			return t.refuse(tl.name, a.err), nil
		}
		out, err := tl.run(ctx, t, a)
		if err != nil {
			return t.refuse(tl.name, err), nil
		}
		data := encode(out)
		return &mcp.CallToolResult{StructuredContent: json.RawMessage(data), Content: []mcp.Content{&mcp.TextContent{Text: string(data)}}}, nil
	}
}

// project finds the project that the arguments name, unless something was wrong with them.
func (t *Toolset) project(ctx context.Context, a *args) (*maildir.Project, error) {
	key := a.text("project_key")
	if a.err != nil {
		return nil, a.err
	}
	return t.cfg.Store.Project(ctx, key)
}

// waiting is ctx for a call that may wait: then it also ends when the server stops.
func (t *Toolset) waiting(ctx context.Context, wait time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if wait == 0 || t.cfg.Stopping == nil {
		return ctx, cancel
	}
	go func() {
		select {
		case <-t.cfg.Stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// The arguments that many tools share.
func projectKey() prop {
	return need("project_key", str("absolute path of the project, or its slug", "/abs/path/backend"))
}

func agentName() prop { return need("agent_name", str("your agent name", "BlueLake")) }

func fromAgent() prop { return need("from_agent", str("your agent name", "GreenCastle")) }
