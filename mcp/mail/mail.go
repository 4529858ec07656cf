// Package mail implements the *mail* toolset. It contains 13 tools, resources, prompts, completions and subscriptions.
//
// It defines the names and schemas of arguments, defaults and limits, the form of responses and the wording of
// refusals. It contains no rules: a handler decodes the arguments, calls one operation of package maildir and converts
// the result. See docs/reference/tools.md.
//
// Package tool documents the guarantees that every toolset makes about its responses. This toolset also guarantees
// that:
//
//   - a message's body is in a separate field (body_md);
//   - a resource has the same form as the result of the tool that reads the same data.
package mail

import (
	"context"
	_ "embed"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/maildir"
	"mailtree/mcp/tool"
)

//go:embed instructions.md
var instructions string

// The title and description of the toolset. The server as a whole has the same title and description.
const (
	Title       = "Mailtree"
	Description = "Mail, threads, search and file claims for coding agents" // up to 100 bytes: SEP-2127
)

// Toolset is the MCP server that provides the tools and keeps track of its clients' subscriptions.
type Toolset struct {
	*tool.Set
	store    *maildir.Store
	log      *slog.Logger
	stopping <-chan struct{}
	budget   tool.Budget

	mu       sync.Mutex // guards subs and projects
	subs     map[string]*subscription
	projects map[string]bool // slugs of projects for which Run has seen a change

	starting sync.Mutex // guards from
	from     int64      // the feed position that start returns; negative until it is known
}

// New returns the toolset. Run does its background work.
func New(cfg tool.Config) *Toolset {
	t := &Toolset{
		store:    cfg.Store,
		log:      cfg.Log,
		stopping: cfg.Stopping,
		budget:   cfg.Budget,
		subs:     map[string]*subscription{},
		projects: map[string]bool{},
		from:     -1,
	}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	t.Set = tool.NewSet(cfg, tool.About{
		Name:         "mailtree",
		Title:        Title,
		Description:  Description,
		Instructions: instructions,
		Words:        words,
		Options: mcp.ServerOptions{
			CompletionHandler:  t.complete,
			SubscribeHandler:   t.subscribe,
			UnsubscribeHandler: t.unsubscribe,
		},
	}, t.tools()...)
	t.addResources()
	t.addPrompts()
	return t
}

// tools returns the tools in the order in which docs/reference/tools.md lists them. The SDK sorts them by name when it
// lists them.
func (t *Toolset) tools() []tool.Tool {
	return []tool.Tool{
		t.createAgent(), t.whois(), t.listAgents(), t.checkMyMessages(), t.sendMessage(), t.replyMessage(), t.acknowledgeMessage(),
		t.claimPaths(), t.releaseClaims(), t.searchMessages(), t.summarizeThread(), t.installGuard(), t.uninstallGuard(),
	}
}

// project finds the project with the given key or slug. If the key is a folder inside the project's folder, note says
// so, and also says whether that folder is missing. Otherwise note is empty.
func (t *Toolset) project(ctx context.Context, key string) (p *maildir.Project, note string, err error) {
	p, err = t.store.Project(ctx, key)
	if err != nil {
		return nil, "", err
	}
	if above := p.Code.NoteBelow(key); above != nil {
		note = notes(say(above), p.Code.NoteMissing(key))
	}
	return p, note, nil
}

// projectOf is like project, but for a call by an agent. It also corrects the spelling of the agent's name. If the
// project does not have this agent, but exactly one other project does, projectOf returns that other project and a note
// about it. Every caller may use that project, because a caller of this toolset is the store's owner or, over HTTP, a
// caller whose OS user is unknown.
func (t *Toolset) projectOf(ctx context.Context, key string, agent *string) (p *maildir.Project, note string, err error) {
	p, note, err = t.project(ctx, key)
	if err != nil {
		return nil, "", err
	}
	if *agent, err = p.Agents.Named(ctx, *agent); err != nil {
		return nil, "", err
	}
	p, elsewhere, err := t.store.ProjectWithAgent(ctx, p, *agent)
	return p, notes(note, say(elsewhere)), err
}

// notes joins the notes that are not empty.
func notes(all ...string) string {
	return strings.Join(slices.DeleteFunc(all, func(note string) bool { return note == "" }), " ")
}
