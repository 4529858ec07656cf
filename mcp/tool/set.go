// Package tool is the basis of every toolset. It defines how tools are declared (schema, hints), how their arguments
// are read, what form responses and refusals take, and how the caller is identified. It contains neither tools nor
// rules about mail.
//
// A toolset package lists its tools and returns a Set of them:
//
//	func New(cfg tool.Config) *tool.Set {
//		t := &toolset{cfg}
//		return tool.NewSet(cfg, tool.About{Name: "mailtree-postal"}, t.checkMail(), t.send())
//	}
//
// Package mcp mounts the Set (the table is in mcp/toolsets.go). Every toolset guarantees its clients that:
//
//   - every fact is both in structuredContent and in one text content, as the same JSON or as text with the same facts;
//   - a refusal is a tool error: a sentence in the text, {error, code, near} in structuredContent;
//   - wrong arguments result in such a refusal too, with the valid names or an example, and never in
//     a protocol error;
//   - the output schema describes every field of a response, and refusals match it too;
//   - lists are never null, and times are in RFC 3339 format and in UTC;
//   - no response is larger than Config.Budget. If a list is too long, it ends early and says how to continue, perhaps
//     in a second text content. If a text is too long, it is truncated and says where the rest is. A tool that cannot
//     shorten its response refuses the call (too_large).
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

// Config configures a toolset. Store is required. Zero values select the defaults.
type Config struct {
	Store    *maildir.Store
	Version  string
	Log      *slog.Logger    // if nil, log lines are discarded
	Stopping <-chan struct{} // closed when the server stops, which ends long polls; nil means never
	Budget   Budget          // maximum size of a response

	// Explain converts refusals to text for callers at a command line (format.DoorCLI). If it is nil, the toolset's own
	// wording is used.
	Explain   func(error) string
	SessionID func() string // returns the id for a new session; if nil, the SDK chooses one
}

// About describes a toolset.
type About struct {
	Name         string // name of the server, shown by clients and used as a prefix in the log
	Title        string
	Description  string
	Instructions string        // keep short, because clients include them in the prompt
	Words        refusal.Words // wording of the refusals
	// Extensions contains the settings of the toolset's protocol extensions, by identifier.
	Extensions map[string]any
	// Options contains handlers that only a few toolsets have, such as those for completions and subscriptions. NewSet
	// adds all other options.
	Options mcp.ServerOptions
}

// Set is a toolset that is served as an MCP server. It is safe for concurrent use.
type Set struct {
	log    *slog.Logger
	name   string
	words  refusal.Words
	people func(error) string // Config.Explain
	budget Budget
	server *mcp.Server
}

// NewSet returns a Set of the given tools.
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
	// The server does not send log messages to clients. It announces changes only to the list of resources, because the
	// other lists never change. Few toolsets have prompts, but the SDK always answers prompts/list, and a server must
	// declare everything that it answers.
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

// nameTools extends the SDK's error for an unknown tool with the most similar tool names and a list of all tools.
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

// Run waits until ctx is done and returns nil. A toolset with background work has its own Run.
func (s *Set) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// quiet lowers the level of the SDK's log lines. The SDK logs every request at info level, warns about every subscriber
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
