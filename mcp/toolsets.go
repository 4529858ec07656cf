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

// table lists the server's toolsets, one per line. Each toolset has its own package below this one. All toolsets are
// also available on the Unix socket, at /toolset/<name>/mcp (peer.go).
func (s *Server) table() []*route {
	cfg := tool.Config{
		Store:     s.cfg.Store,
		Version:   s.cfg.Version,
		Log:       s.log,
		Stopping:  s.stopping,
		Budget:    tool.Budget(s.cfg.MaxAnswer),
		Explain:   s.cfg.Explain,
		SessionID: s.ids.get,
	}
	return []*route{
		{name: "mail", set: mail.New(cfg), paths: []string{"/mcp", "/mcp/{$}"}},
		{name: "postal", set: postal.New(cfg), paths: agentPaths()},
		{name: "aimx", set: aimx.New(cfg), guests: true}, // only on the Unix socket, because it needs the caller's uid
		{name: "agentmail", set: agentmail.New(cfg)},     // only on the Unix socket, because it needs the folder or pane
	}
}

// agentPaths returns the paths of postal. Callers put their own name in the path.
func agentPaths() []string { return []string{"/agents/{agent}/mcp", "/agents/{agent}/mcp/{$}"} }

// toolset is implemented by each toolset package, as a *tool.Set or a type that wraps one.
type toolset interface {
	Server() *mcp.Server
	Run(ctx context.Context) error // runs until ctx is done (see tool.Set.Run)
}

// envelopeless is a toolset that also accepts {"tool": …, "args": …} as a body, because programs written for the
// toolset send such bodies. The toolset responds to such a body without an envelope. See plain.go.
type envelopeless interface {
	// Plain converts the structured content of a tool's result to the JSON of the response. The result must not be a
	// refusal.
	Plain(structured []byte) []byte
}

// route serves one toolset through the handlers of both protocol eras.
type route struct {
	name  string // the toolset's name, as passed to --toolset
	set   toolset
	paths []string // paths on TCP, for http.ServeMux; empty if the toolset is only on the Unix socket (peer.go)

	guests bool // whether OS users other than the server's own may use the toolset on the socket

	stateless, stateful http.Handler
}

// mount creates the handlers of each toolset. Callers, limits, log lines and panics are handled the same way for all
// toolsets.
func (s *Server) mount(doors ...*route) {
	for _, d := range doors {
		d.set.Server().AddReceivingMiddleware(s.receive, s.countCalls(d.name))
		serve := func(*http.Request) *mcp.Server { return d.set.Server() }
		options := mcp.StreamableHTTPOptions{
			JSONResponse:                 true,
			Logger:                       s.log,
			SessionTimeout:               s.cfg.SessionTimeout,
			MaxRequestBodyBytes:          s.cfg.MaxBody,
			PropagateRequestCancellation: true,
			DisableLocalhostProtection:   true, // checkHost does this instead, and supports proxies
		}
		d.stateful = mcp.NewStreamableHTTPHandler(serve, &options)
		options.Stateless = true
		d.stateless = mcp.NewStreamableHTTPHandler(serve, &options)
		s.routes = append(s.routes, d)
	}
}

// address copies the agent's name and the project from the request's URL to the caller.
func address(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := tool.CallerOf(r.Context())
		c.Project = r.URL.Query().Get("project")
		if agent := r.PathValue("agent"); agent != "" {
			if !format.ValidName(agent) {
				writeError(w, http.StatusNotFound, nil, protocol.CodeRequest,
					"the name in the URL is not a valid agent name: use at most 64 letters, digits, '.', '_' "+
						"and '-', beginning with a letter or digit")
				return
			}
			c.Agent = agent
		}
		next.ServeHTTP(w, r.WithContext(tool.WithCaller(r.Context(), c)))
	})
}
