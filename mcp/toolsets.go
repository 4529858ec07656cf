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

// table lists the toolsets of the server, one line for each toolset package below this package. All toolsets are
// also on the Unix socket, at /toolset/<name>/mcp (peer.go).
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
		{name: "aimx", set: aimx.New(cfg), guests: true}, // on the Unix socket only, because it needs the uid
		{name: "agentmail", set: agentmail.New(cfg)},     // on the Unix socket only: it identifies callers by the folder or pane they run in
	}
}

// agentPaths returns the paths of a toolset whose callers name themselves in the path (postal).
func agentPaths() []string { return []string{"/agents/{agent}/mcp", "/agents/{agent}/mcp/{$}"} }

// toolset is the result of a toolset package: a *tool.Set, or a type around a *tool.Set.
type toolset interface {
	Server() *mcp.Server
	Run(ctx context.Context) error // runs until ctx ends, see tool.Set.Run
}

// envelopeless is a toolset that also accepts {"tool": …, "args": …} as a body, because its programs send that form,
// and then answers without an envelope: see plain.go.
type envelopeless interface {
	// Plain converts the structured content of a tool's result to the JSON of the answer. The result
	// is not a refusal.
	Plain(structured []byte) []byte
}

// route is one toolset behind the handlers of both eras.
type route struct {
	name  string // as in --toolset
	set   toolset
	paths []string // over TCP, for http.ServeMux; none for a toolset that is only on the Unix socket (peer.go)

	guests bool // OS users other than the server's own may use the toolset on the socket

	stateless, stateful http.Handler
}

// mount creates the handlers of each toolset. Callers, limits, log lines and recovery are the same for all
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
			DisableLocalhostProtection:   true, // checkHost is stricter, and takes proxies into account
		}
		d.stateful = mcp.NewStreamableHTTPHandler(serve, &options)
		options.Stateless = true
		d.stateless = mcp.NewStreamableHTTPHandler(serve, &options)
		s.routes = append(s.routes, d)
	}
}

// address adds the name and the project in the address of the request to the caller.
func address(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := tool.CallerOf(r.Context())
		c.Project = r.URL.Query().Get("project")
		if agent := r.PathValue("agent"); agent != "" {
			if !format.ValidName(agent) {
				writeError(w, http.StatusNotFound, nil, protocol.CodeRequest,
					"the name in the address is not a valid agent name: use letters, digits, '.', '_' and '-', at most "+
						"64, the first a letter or digit")
				return
			}
			c.Agent = agent
		}
		next.ServeHTTP(w, r.WithContext(tool.WithCaller(r.Context(), c)))
	})
}
