package mcp

import (
	"context"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/maildir/format"
	"mailtree/mcp/agentmail"
	"mailtree/mcp/aimx"
	"mailtree/mcp/mail"
	"mailtree/mcp/postal"
	"mailtree/mcp/protocol"
	"mailtree/mcp/tool"
)

// table is what is served: one line for each toolset package below this one. On the Unix socket all
// of them are, at /toolset/<name>/mcp (peer.go).
func (s *Server) table() []*door {
	cfg := tool.Config{
		Store:    s.cfg.Store,
		Version:  s.cfg.Version,
		Log:      s.log,
		Stopping: s.stopping,
		Budget:   tool.Budget(s.cfg.MaxAnswer),
	}
	return []*door{
		{name: "mail", set: mail.New(cfg), paths: []string{"/mcp", "/mcp/{$}"}},
		{name: "postal", set: postal.New(cfg), paths: agentPaths()},
		{name: "aimx", set: aimx.New(cfg), guests: true}, // on the Unix socket only: it asks for the uid
		{name: "agentmail", set: agentmail.New(cfg)},     // on the Unix socket only: where its callers run tells who they are
	}
}

// agentPaths are those of a toolset whose callers say in the path who they are (postal).
func agentPaths() []string { return []string{"/agents/{agent}/mcp", "/agents/{agent}/mcp/{$}"} }

// toolset is what a toolset package makes: a *tool.Set, or something around one.
type toolset interface {
	Server() *mcp.Server
	Run(ctx context.Context) error // until ctx ends, see tool.Set.Run
}

// plain is a toolset that also takes {"tool": …, "args": …} for a body, as its seed has it, and
// answers that without an envelope: see plain.go.
type plain interface {
	// Plain is the answer, as JSON, for the structured content of a tool's result that is no
	// refusal.
	Plain(structured []byte) []byte
}

// door is one toolset behind the handlers of both eras.
type door struct {
	name  string // as in --toolset
	set   toolset
	paths []string // over TCP, as http.ServeMux has them; none for a toolset that is on the Unix socket only (peer.go)

	guests bool // made for several users: on the socket, users other than the server's may have it

	stateless, stateful http.Handler
}

// mount gives each toolset its handlers. Every Caller, limit, log line and recovery is the same for
// all.
func (s *Server) mount(doors ...*door) {
	for _, d := range doors {
		d.set.Server().AddReceivingMiddleware(s.receive)
		serve := func(*http.Request) *mcp.Server { return d.set.Server() }
		options := mcp.StreamableHTTPOptions{
			JSONResponse:                 true,
			Logger:                       s.log,
			SessionTimeout:               s.cfg.SessionTimeout,
			MaxRequestBodyBytes:          s.cfg.MaxBody,
			PropagateRequestCancellation: true,
			DisableLocalhostProtection:   true, // checkHost is stricter, and knows of a proxy
		}
		d.stateful = mcp.NewStreamableHTTPHandler(serve, &options)
		options.Stateless = true
		d.stateless = mcp.NewStreamableHTTPHandler(serve, &options)
		s.doors = append(s.doors, d)
	}
}

// door finds a toolset by its name; nil when there is none.
func (s *Server) door(name string) *door {
	for _, d := range s.doors {
		if d.name == name {
			return d
		}
	}
	return nil
}

// address adds to the caller what the address says: who it is and in which project.
func address(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := tool.CallerOf(r.Context())
		c.Project = r.URL.Query().Get("project")
		if agent := r.PathValue("agent"); agent != "" {
			if !format.ValidName(agent) {
				writeError(w, http.StatusNotFound, nil, protocol.CodeRequest,
					"the agent in the address is no agent name: use letters, digits, '.', '_' and '-', at most 64, the first a letter or digit")
				return
			}
			c.Agent = agent
		}
		next.ServeHTTP(w, r.WithContext(tool.WithCaller(r.Context(), c)))
	})
}
