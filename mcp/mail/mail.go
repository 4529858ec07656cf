// Package mail is the toolset *mail*: 13 tools, 3 resources, completions and subscriptions over the domain.
//
// It owns argument names and schemas, defaults and clamps, the shape of the replies and the wording of errors,
// and no rule: a handler decodes, calls one verb of maildir and shapes the answer. Spec: 7.1, 8.
//
// What a client can rely on:
//   - every fact is in structuredContent and, as the same JSON, in one text content;
//   - a refusal is a tool error: a sentence in the text, {error, code, near} in structuredContent;
//   - a list is never null, a time is RFC 3339 UTC, the body of a message stands in a field of its own (body_md);
//   - a resource has the shape of the tool that reads the same thing.
package mail

import (
	"context"
	_ "embed"
	"log/slog"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/maildir"
)

//go:embed instructions.md
var instructions string

//go:embed icon.svg.b64
var iconData string

// Config says what the toolset serves. Store is needed; the rest has defaults.
type Config struct {
	Store   *maildir.Store
	Version string
	Log     *slog.Logger // nil: discarded
	// Auth says how the caller of a request is known: "none", "token", "uid:N". nil: always "none".
	Auth func(context.Context) string
	// Stopping ends long polls when it is closed. nil: never.
	Stopping <-chan struct{}
}

// Toolset is the MCP server of the tools and what keeps its subscribers informed.
type Toolset struct {
	cfg    Config
	log    *slog.Logger
	server *mcp.Server

	mu       sync.Mutex // guards what follows
	subs     map[string]*subscription
	projects map[string]bool // slugs that changes were seen of
}

// New makes the toolset. It starts nothing: Run does.
func New(cfg Config) *Toolset {
	t := &Toolset{cfg: cfg, log: cfg.Log, subs: map[string]*subscription{}, projects: map[string]bool{}}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	icons := []mcp.Icon{{Source: "data:image/svg+xml;base64," + iconData, MIMEType: "image/svg+xml", Sizes: []string{"any"}}}
	t.server = mcp.NewServer(&mcp.Implementation{Name: "mailtree", Title: "Mailtree", Version: cfg.Version, Icons: icons,
		Description: "Mail, threads, search and file claims for coding agents"}, &mcp.ServerOptions{
		Instructions:       instructions,
		Logger:             slog.New(quiet{t.log.Handler()}),
		CompletionHandler:  t.complete,
		SubscribeHandler:   t.subscribe,
		UnsubscribeHandler: t.unsubscribe,
		SetCacheable:       func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
		// No logging, and lists that never change: nothing to notify about. There are no prompts, but the SDK
		// answers prompts/list whether or not it is declared, and a server must declare what it answers.
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}, Resources: &mcp.ResourceCapabilities{Subscribe: true}, Prompts: &mcp.PromptCapabilities{}},
	})
	for _, tl := range tools() {
		t.server.AddTool(tl.declare(icons), t.handler(tl))
	}
	t.addResources()
	return t
}

// Server is the MCP server. It may be connected to any number of transports.
func (t *Toolset) Server() *mcp.Server { return t.server }

// tools lists the tools as the table of Spec 7.1 does. (The SDK sorts them by name on the wire.)
func tools() []tool {
	return []tool{
		createAgent(), whois(), listAgents(), sendMessage(), replyMessage(), checkMyMessages(), acknowledgeMessage(),
		claimPaths(), releaseClaims(), searchMessages(), summarizeThread(), installGuard(), uninstallGuard(),
	}
}

// auth says how the caller of a request is known.
func (t *Toolset) auth(ctx context.Context) string {
	if t.cfg.Auth == nil {
		return "none"
	}
	return t.cfg.Auth(ctx)
}

// quiet lowers the level of what the SDK logs: it has a line or two at info for every single request, warns of
// each subscriber without an open stream, and takes for errors what clients do wrong.
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
