// Package tool is the base of every toolset. It defines how a tool is declared (schema, hints), how its arguments are
// read, the form of answers and refusals, and the caller. It contains no tool and no rules about mail.
//
// A toolset package lists its tools and creates a Set of them:
//
//	func New(cfg tool.Config) *tool.Set {
//		t := &toolset{cfg}
//		return tool.NewSet(cfg, tool.About{Name: "mailtree-postal"}, t.checkMail(), t.send())
//	}
//
// Package mcp mounts the Set (the table is in mcp/toolsets.go). Every toolset gives its clients these guarantees:
//
//   - every fact is in structuredContent and in one text content, which is the same JSON or text with the same facts;
//   - a refusal is a tool error: a sentence in the text, {error, code, near} in structuredContent;
//   - wrong arguments are also such refusals, with the valid names or an example; they are never
//     protocol errors;
//   - the output schema describes every field of an answer, and a refusal fits it;
//   - a list is never null, and a time is in RFC 3339 format, in UTC;
//   - no answer is larger than Config.Budget: a list that is too long ends early and says how to continue, perhaps in a
//     second text content; a long text is truncated and says where the rest is. If a tool cannot shorten its answer, it
//     refuses the call (too_large).
package tool

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
)

//go:embed icon.svg.b64
var iconData string

// Config configures a toolset. Store is required. Zero values mean the defaults.
type Config struct {
	Store    *maildir.Store
	Version  string
	Log      *slog.Logger    // nil: discarded
	Stopping <-chan struct{} // ends long polls when it is closed; nil: never
	Budget   Budget          // bytes of an answer

	// Explain words refusals for callers at a command line (format.DoorCLI). If it is nil, the toolset's own words
	// are used.
	Explain   func(error) string
	SessionID func() string // returns the id of a new session; nil: the SDK chooses
}

// About describes a toolset.
type About struct {
	Name         string // name of the server, for clients and at the beginning of its log lines
	Title        string
	Description  string
	Instructions string        // short, because clients put them into the prompt
	Words        refusal.Words // the wording of its refusals
	// Extensions are the protocol extensions of the toolset, by identifier, with their settings.
	Extensions map[string]any
	// Options contains the handlers that few toolsets have: completions, subscriptions. NewSet adds the rest.
	Options mcp.ServerOptions
}

// Set is one toolset as an MCP server. It is safe for concurrent use.
type Set struct {
	log    *slog.Logger
	name   string
	words  refusal.Words
	people func(error) string // same as Config.Explain
	budget Budget
	server *mcp.Server
}

// NewSet returns a Set of the tools. It starts nothing.
func NewSet(cfg Config, about About, tools ...Tool) *Set {
	s := &Set{
		log:    cfg.Log,
		name:   about.Name,
		words:  about.Words,
		people: cfg.Explain,
		budget: cfg.Budget,
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	o := about.Options
	o.Instructions = about.Instructions
	o.Logger = slog.New(quiet{s.log.Handler()})
	o.GetSessionID = cfg.SessionID
	o.SetCacheable = func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" }
	// The server does not log to clients. It announces changes only to the list of resources, because no other list
	// changes. Few toolsets have prompts, but the SDK answers prompts/list whether or not the server declares it, and a
	// server must declare what it answers.
	o.Capabilities = &mcp.ServerCapabilities{
		Tools:     &mcp.ToolCapabilities{},
		Resources: &mcp.ResourceCapabilities{Subscribe: o.SubscribeHandler != nil},
		Prompts:   &mcp.PromptCapabilities{},

		Extensions: about.Extensions,
	}
	s.server = mcp.NewServer(&mcp.Implementation{
		Name:        about.Name,
		Title:       about.Title,
		Version:     cfg.Version,
		Icons:       []mcp.Icon{{Source: "data:image/svg+xml;base64," + iconData, MIMEType: "image/svg+xml", Sizes: []string{"any"}}},
		Description: about.Description,
	}, &o)
	for i, declared := range Declare(tools) {
		s.server.AddTool(declared, s.handler(tools[i]))
	}
	s.server.AddReceivingMiddleware(nameTools(tools))
	return s
}

// nameTools completes the SDK's refusal of an unknown tool. It adds the tools with the most similar names and a list of
// all tools.
func nameTools(tools []Tool) mcp.Middleware {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			res, err := next(ctx, method, req)
			r, ok := req.(*mcp.CallToolRequest)
			if err == nil || !ok || r.Params == nil || slices.Contains(names, r.Params.Name) {
				return res, err
			}
			text := fmt.Sprintf("unknown tool %q. ", Clip(r.Params.Name))
			if near := format.Near(r.Params.Name, names); len(near) > 0 {
				text += "Did you mean " + strings.Join(near, " or ") + "? "
			}
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: text + "The tools are " + strings.Join(names, ", ") + "."}
		}
	}
}

// Server returns the MCP server. It may be connected to any number of transports.
func (s *Set) Server() *mcp.Server { return s.server }

// Run waits for ctx to end and returns nil. A toolset with background work has its own Run.
func (s *Set) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// quiet lowers the level of the SDK's log lines. The SDK logs every request at info, warns of each subscriber
// without an open stream, and logs clients' mistakes as errors.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return q.Handler.Enabled(ctx, lower(l))
}

func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	r.Level = lower(r.Level)
	return q.Handler.Handle(ctx, r)
}

func (q quiet) WithAttrs(a []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(a)} }
func (q quiet) WithGroup(name string) slog.Handler   { return quiet{q.Handler.WithGroup(name)} }

func lower(l slog.Level) slog.Level {
	if l >= slog.LevelError {
		return slog.LevelWarn
	}
	return min(l, slog.LevelDebug)
}
