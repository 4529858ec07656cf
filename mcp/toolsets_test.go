package mcp

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"mailtree/mcp/protocol"
	"mailtree/mcp/tool"
)

// whoami is a toolset whose only tool reports its caller.
func whoami(cfg tool.Config) *tool.Set {
	return tool.NewSet(cfg, tool.About{Name: "whoami"}, tool.Tool{
		Name:  "whoami",
		About: "Tell who is calling.",
		Hints: tool.Reads(),
		Out:   tool.Caller{},
		Run:   func(ctx context.Context, _ json.RawMessage) (any, error) { return tool.CallerOf(ctx), nil },
	})
}

// door returns the route of the toolset with the given name, or nil if there is none.
func (s *Server) door(name string) *route {
	for _, d := range s.routes {
		if d.name == name {
			return d
		}
	}
	return nil
}

// serveWhoami starts a server with all toolsets, but with whoami instead of postal at the agents' paths.
func serveWhoami(t *testing.T, cfg Config) (*Server, string) {
	t.Helper()
	s := New(cfg)
	s.door("postal").paths = nil // whoami replaces postal at these paths
	s.mount(&route{name: "whoami", set: whoami(tool.Config{}), paths: agentPaths()})
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(srv.Close)
	t.Cleanup(s.end)
	return s, srv.URL
}

// TestDoors checks that each toolset has its own tools, sessions and addresses, and that the URL of each request
// determines the caller.
func TestDoors(t *testing.T) {
	t.Parallel()
	s, url := serveWhoami(t, Config{Token: "tok"})
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami","arguments":{}}}`
	at := func(path string) string {
		return "POST " + path + "\nContent-Type: application/json\nAccept: " + protocol.AcceptBoth
	}
	res, body := request(t, url, at("/agents/ann/mcp"), initialize)
	session := "\nMcp-Session-Id: " + res.Header.Get(protocol.SessionHeader)
	if res.StatusCode != 200 || !strings.Contains(body, `"name":"whoami"`) || len(s.living()) != 1 {
		t.Fatalf("initialize: %d %s, %d sessions", res.StatusCode, body, len(s.living()))
	}
	for _, tt := range []struct {
		head   string
		status int
		want   string
	}{
		{at("/agents/ann/mcp"), 200, `"structuredContent":{"auth":"none","door":"http","uid":-2,"root":false,"here":true,"agent":"ann"}`},
		{at("/agents/ann/mcp/"), 200, `"agent":"ann"}`},
		{at("/agents/bob/mcp/?project=%2Fabs%2Fshop") + "\nAuthorization: Bearer tok", 200, `{"auth":"token","door":"http","uid":-2,"root":false,"here":true,"agent":"bob","project":"/abs/shop"}`},
		{at("/agents/ann/mcp") + "\nAuthorization: Bearer no", 401, `invalid token: `},
		{at("/agents/ann/mcp") + session, 200, `"agent":"ann"}`},
		{at("/agents/bob/mcp") + session, 200, `"agent":"bob"}`}, // the URL of the request determines the agent, not the URL that began the session
		{at("/agents/ann/mcp") + "\nMailtree-Caller: {\"uid\":0,\"root\":true}", 200, `"uid":-2,"root":false`},
		{at("/agents/..%2Fx/mcp"), 404, `not a valid agent name`},
		{at("/agents/a%0Ab/mcp"), 404, `not a valid agent name`},
		{at("/agents/" + strings.Repeat("a", 65) + "/mcp"), 404, `not a valid agent name`},
		{at("/mcp") + session, 404, `session not found`},
		{at("/mcp"), 200, `unknown tool`},
		{"GET /agents/ann/mcp", 405, ``},
		{"GET /agents/ann", 404, ``},
		{at("/agents/ann/mcp") + "\nOrigin: https://evil.example", 403, ``},
	} {
		res, body := request(t, url, tt.head, call)
		if res.StatusCode != tt.status || !strings.Contains(body, tt.want) {
			t.Errorf("%q: %d %s\nwant %d %s", tt.head, res.StatusCode, body, tt.status, tt.want)
		}
	}
}
