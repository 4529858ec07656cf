package mcp

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/fixtures/waits"
	"mailtree/mcp/protocol"
)

// These tests send HTTP requests to the complete handler, without a store. A call that needs the store therefore
// panics. The tests of panic recovery rely on this.

func serve(t *testing.T, cfg Config) (*Server, string) {
	t.Helper()
	cfg.Log = slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s := New(cfg)
	srv := httptest.NewUnstartedServer(nil)
	srv.Config = s.HTTPServer("")
	srv.Start()
	t.Cleanup(srv.Close)
	t.Cleanup(s.end)
	return s, srv.URL
}

// request sends a request. The parameter head consists of "METHOD path" and "Name: value" lines, as http.ReadRequest
// expects them.
func request(t *testing.T, base, head, body string) (*http.Response, string) {
	t.Helper()
	lines := strings.Split(head, "\n")
	method, path, _ := strings.Cut(lines[0], " ")
	r, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines[1:] {
		k, v, _ := strings.Cut(l, ": ")
		if k == "Host" {
			r.Host = v
		} else {
			r.Header.Add(k, v)
		}
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(data)
}

const (
	post       = "POST /mcp\nContent-Type: application/json"
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize",` +
		`"params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
)

// The metadata for a request in revision 2026-07-28: the _meta field to put in params, and that field's content.
const (
	newEraMeta   = `"_meta":{` + newEraFields + `}`
	newEraFields = `"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}`
)

// begin starts a session and returns the session's id.
func begin(t *testing.T, url string) string {
	t.Helper()
	return beginAs(t, url, post)
}

// beginAs is like begin, but uses the given head.
func beginAs(t *testing.T, url, head string) string {
	t.Helper()
	res, body := request(t, url, head+"\nAccept: application/json, text/event-stream", initialize)
	id := res.Header.Get("Mcp-Session-Id")
	if res.StatusCode != http.StatusOK || id == "" {
		t.Fatalf("initialize: %d, session %q, %s", res.StatusCode, id, body)
	}
	return id
}

func inSession(id string) string {
	return post + "\nAccept: application/json, text/event-stream\nMcp-Session-Id: " + id
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	_, url := serve(t, Config{Version: "1.2.3"})
	for _, tt := range []struct {
		head   string
		status int
		want   string // text that the body must contain
		header string // a "Name: value" line that the response must contain
	}{
		{"GET /", 200, "/mcp", "Content-Type: text/plain; charset=utf-8"},
		{"GET /health", 200, `{"status":"ok"}`, "Content-Type: application/json"},
		{"GET /mcp", 405, "Mcp-Session-Id", "Allow: POST"},
		{"GET /mcp\nAccept: text/event-stream", 405, "", "Allow: POST"},
		{"GET /mcp/", 405, "", ""},
		{"DELETE /mcp", 405, "", ""},
		{"PUT /mcp", 405, "", ""},
		{"OPTIONS /mcp", 405, "", ""},
		{"GET /mcp\nMcp-Protocol-Version: 2026-07-28\nMcp-Session-Id: x\nAccept: text/event-stream", 405, "", ""},
		{"GET /mcp\nMcp-Session-Id: x\nAccept: text/event-stream", 404, "session not found", ""},
		{"GET /.well-known/oauth-protected-resource", 404, "404", "Content-Type: text/plain; charset=utf-8"},
		{"GET /.well-known/oauth-authorization-server/mcp", 404, "404", ""},
		{"GET /mcp/.well-known/openid-configuration", 404, "404", ""},
		{"GET /.well-known/mcp/server-card.json", 200, `"version":"1.2.3"`, "Content-Type: application/mcp-server-card+json"},
		{"GET /.well-known/mcp/catalog.json", 404, "404", ""},
		{"GET /.well-known/mcp/", 404, "404", ""},
		{"GET /mcp/server-card", 200, `"version":"1.2.3"`, "Access-Control-Allow-Origin: "},
		{"POST /mcp/server-card", 404, "/mcp", ""},
		{"POST /register", 404, `"error_description":"this server does not support OAuth: send the header Authorization: Bearer TOKEN`, "Content-Type: application/json"},
		{"GET /other", 404, "/mcp", ""},
		{"POST /", 404, "/mcp", ""},
	} {
		res, body := request(t, url, tt.head, "")
		name, value, _ := strings.Cut(tt.header, ": ")
		if res.StatusCode != tt.status || !strings.Contains(body, tt.want) || res.Header.Get(name) != value {
			t.Errorf("%q: %d %q %q", tt.head, res.StatusCode, res.Header.Get(name), body)
		}
	}
}

func TestChecks(t *testing.T) {
	t.Parallel()
	const token = "tok"
	with := func(lines ...string) string { return strings.Join(append([]string{post}, lines...), "\n") }
	for _, tt := range []struct {
		cfg    Config
		head   string
		status int
	}{
		{Config{}, with(), 200},
		{Config{}, with("Host: localhost:1"), 200},
		{Config{}, with("Host: LOCALHOST"), 200},
		{Config{}, with("Host: [::1]:8765"), 200},
		{Config{}, with("Host: 127.9.9.9"), 200},
		{Config{}, with("Host: evil.example"), 403},
		{Config{}, with("Host: localhost.evil.example:8765"), 403},
		{Config{}, with("Host: 10.0.0.1"), 403},
		{Config{}, "GET /health\nHost: evil.example", 403},
		{Config{Hosts: []string{"mail.example"}}, with("Host: mail.example"), 200},
		{Config{Host: "10.0.0.1"}, with("Host: 10.0.0.1:8765"), 200},
		{Config{Host: "10.0.0.1"}, with("Host: 10.0.0.2:8765"), 403},
		{Config{Host: "0.0.0.0"}, with("Host: any.example"), 200},
		{Config{Host: "::"}, with("Host: any.example"), 200},

		{Config{}, with("Origin: null"), 403},
		{Config{}, with("Origin: https://evil.example"), 403},
		{Config{}, with("Origin: http://localhost.evil.example"), 403},
		{Config{}, with("Origin: http://localhost:3000", "Host: localhost:8765"), 200},
		{Config{}, with("Origin: http://127.0.0.1:3000", "Host: localhost:8765"), 403},
		{Config{}, with("Origin: http://localhost@evil.example", "Host: localhost:8765"), 403},
		{Config{}, with("Origin: http://x@localhost:3000", "Host: localhost:8765"), 403},
		{Config{}, with("Origin: ftp://localhost", "Host: localhost:8765"), 403},
		{Config{}, with("Origin: http://localhost:3000", "Origin: https://evil.example", "Host: localhost:8765"), 403},
		{Config{}, "GET /health\nOrigin: https://evil.example", 403},
		{Config{}, "GET /.well-known/x\nOrigin: null", 403},
		{Config{}, "OPTIONS /mcp\nOrigin: https://evil.example", 403},
		{Config{}, with("Sec-Fetch-Site: cross-site"), 403},
		{Config{}, with("Sec-Fetch-Site: same-site"), 403},
		{Config{}, with("Sec-Fetch-Site: none", "Sec-Fetch-Site: cross-site"), 403},
		{Config{}, "GET /health\nSec-Fetch-Site: cross-site", 403},
		{Config{}, with("Sec-Fetch-Site: same-origin"), 200},
		{Config{}, with("Sec-Fetch-Site: none"), 200},
		{Config{}, with("Sec-Fetch-Site: same-site", "Origin: http://localhost:3000", "Host: localhost:8765"), 200},
		{Config{}, with("Sec-Fetch-Site: same-origin", "Origin: https://evil.example"), 403},
		{Config{Host: "0.0.0.0"}, with("Origin: http://mail.example", "Host: mail.example"), 200},
		{Config{Host: "0.0.0.0"}, with("Origin: http://mail.example:81", "Host: mail.example"), 403},

		{Config{Token: token}, with(), 200},
		{Config{Token: token}, with("Authorization: Bearer tok"), 200},
		{Config{Token: token}, with("Authorization: bearer tok"), 200},
		{Config{Token: token}, with("Authorization: Bearer wrong"), 401},
		{Config{Token: token}, with("Authorization: Basic tok"), 401},
		{Config{Token: token}, with("Authorization: Bearer tok", "Authorization: Bearer wrong"), 401},
		{Config{Token: token, RequireToken: true}, with(), 401},
		{Config{Token: token, RequireToken: true}, with("Authorization: Bearer "), 401},
		{Config{Token: token, RequireToken: true}, with("Authorization: Bearer tok"), 200},
		{Config{Token: token, RequireToken: true}, "GET /health", 401},
		{Config{Token: token, RequireToken: true}, "GET /.well-known/x", 404},
		{Config{Token: token, RequireToken: true}, "GET /mcp/server-card", 200},
		{Config{}, "GET /mcp/server-card\nOrigin: https://evil.example", 403},
		{Config{Token: token, RequireToken: true}, "GET /mcp", 401},
		{Config{RequireToken: true}, with("Authorization: Bearer "), 401},
	} {
		_, url := serve(t, tt.cfg)
		res, body := request(t, url, tt.head, `{"method":"ping"}`)
		if res.StatusCode != tt.status {
			t.Errorf("%+v %q: %d %s", tt.cfg, tt.head, res.StatusCode, body)
		}
		if challenge := res.Header.Get("WWW-Authenticate"); (tt.status == 401) != strings.HasPrefix(challenge, "Bearer realm=") {
			t.Errorf("%+v %q: WWW-Authenticate %q", tt.cfg, tt.head, challenge)
		}
	}
}

func TestBarePosts(t *testing.T) {
	t.Parallel()
	_, url := serve(t, Config{MaxBody: 2000})
	for _, tt := range []struct {
		head, body string
		status     int
		want       string // strings that the response must contain, separated by " … "
	}{
		{"", `{"method":"tools/list"}`, 200, `{"jsonrpc":"2.0","id":1,"result": … "name":"create_agent"`},
		{"", " \n{ } ", 400, `"code":-32600`},
		{"", `{"jsonrpc":"2.0","id":"x","method":"tools/list"}`, 200, `"id":"x"`},
		{"", `{"id":null,"method":"ping"}`, 200, `"id":1,"result":{}`},
		{"Accept: application/json", `{"method":"ping"}`, 200, `"result":{}`},
		{"Accept: */*", `{"method":"ping"}`, 200, `"result":{}`},
		{"", `{"method":"tools/call","params":{"name":"uninstall_precommit_guard","arguments":{"code_repo_path":"x"}}}`, 200,
			`"error":"code_repo_path is \"x\": pass the absolute path of the repository.","isError":true`},
		{"", `{"method":"tools/call","params":{"name":"create_agent"}}`, 200, `"near":[] … "structuredContent":{"error":"Arguments are missing: project_key: `},
		{"Mcp-Protocol-Version: 2025-06-18", `{"method":"tools/call","params":{"name":"create_agent"}}`, 200, `"result":{"content":[{"type":"text","text":"Arguments are missing: project_key: `},
		{"", `{"method":"tools/call","params":{"name":"nothing"}}`, 200, `"error":{"code":-32602`},
		{"", `{"method":"resources/read","params":{"uri":"resource://nothing/x"}}`, 200, `"code":-32002 … There is no resource`},
		{"", `{"method":"resources/read","params":{"uri":"resource://inbox/A?limit=x&project=/abs/path"}}`, 200, `"code":-32602 … limit=x is not valid`},
		{"", `{"method":"nothing/here"}`, 200, `"code":-32601`},
		{"", `{"method":"notifications/initialized"}`, 202, ""},
		{"", `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]`, 200, `[{"jsonrpc":"2.0", … "id":2`},
		{"", ``, 400, `"id":null … -32700`},
		{"", `{"method":"ping"`, 400, `-32700`},
		{"", `{"method":"ping"} trailing`, 400, `-32700`},
		{"", `{"method":7}`, 400, `-32600`},
		{"", `{"method":"ping","id":{}}`, 400, `-32600`},
		{"", `7`, 400, `-32600`},
		{"", `[]`, 400, `-32600`},
		{"", `{"method":"` + strings.Repeat("x", 2000) + `"}`, 413, `-32600 … over the limit of 2000 bytes`},
		{"Mcp-Session-Id: gone", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, 404, `-32600 … session not found`},
		{"Mcp-Protocol-Version: 1999-01-01", `{"method":"ping"}`, 400, `"id":1 … Unsupported protocol version`},
	} {
		head := post
		if tt.head != "" {
			head += "\n" + tt.head
		}
		if strings.Contains(tt.head, "Session") {
			head += "\nAccept: application/json, text/event-stream"
		}
		res, body := request(t, url, head, tt.body)
		if res.StatusCode != tt.status {
			t.Errorf("%q %s: %d %s", tt.head, tt.body, res.StatusCode, body)
		}
		if kind := res.Header.Get("Content-Type"); tt.status != 202 && kind != "application/json" {
			t.Errorf("%s: %q", tt.body, kind)
		}
		for _, want := range strings.Split(tt.want, " … ") {
			if !holds(body, want) {
				t.Errorf("%q %s:\n got %s\nwant %s", tt.head, tt.body, body, want)
			}
		}
	}
}

// holds reports whether body contains want. The members "jsonrpc" and "id" may be in any order.
func holds(body, want string) bool {
	return strings.Contains(body, want) || strings.Contains(want, `"jsonrpc":"2.0","id":1,`) && strings.Contains(body, `"id":1`) && json.Valid([]byte(body))
}

// TestBodyUnknownLength checks that the size limit applies to a body without a Content-Length, and that the body's
// bytes are no longer counted afterwards.
func TestBodyUnknownLength(t *testing.T) {
	t.Parallel()
	s, url := serve(t, Config{MaxBody: 100})
	for body, want := range map[string]int{`{"method":"ping"}`: 200, `{"method":"ping","params":{"x":"` + strings.Repeat("y", 100) + `"}}`: 413} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/mcp", io.MultiReader(strings.NewReader(body)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%d bytes: %d, want %d", len(body), res.StatusCode, want)
		}
	}
	await(t, func() bool { return s.bodies.used.Load() == 0 && s.requests.used.Load() == 0 })
}

func TestMerge(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"name":"<A>","content":7,"isError":true},"isError":false}}`,
			`{"id":1,"jsonrpc":"2.0","result":{"content":[],"isError":false,"name":"<A>","structuredContent":{"name":"<A>","content":7,"isError":true}}}`},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":1}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":1}}`},
		{`{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`, `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`},
		{`no JSON`, `no JSON`},
	} {
		if got := string(mergeStructured([]byte(tt.in))); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.in, got, tt.want)
		}
	}
}

// FuzzMessage checks that complete returns valid JSON with the missing members added and the other members unchanged.
func FuzzMessage(f *testing.F) {
	for _, s := range []string{`{}`, `{"method":"tools/call"}`, `{"id":null,"method":"a","params":{}}`, `{"jsonrpc":"2.0","id":"x","method":"y" }`, `{"method":"notifications/x"}`, `[1]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parseMessage(data)
		if err != nil || m.batch != nil {
			return
		}
		m.complete()
		var e envelope
		if err := json.Unmarshal(m.body, &e); err != nil || e.Tag == nil || e.Method != m.method {
			t.Errorf("%s: %s (%v)", data, m.body, err)
		}
	})
}

func TestPanics(t *testing.T) {
	t.Parallel()
	_, url := serve(t, Config{Health: func(context.Context) (any, bool) { panic("health") }})
	for _, tt := range []struct {
		head, body, want string
		status           int
	}{
		{"GET /health", "", `"code":-32603`, 500},
		{post, `{"method":"tools/call","params":{"name":"list_agents","arguments":{"project_key":"/p"}}}`, `"error":"Internal error: see the server's log."`, 200},
		{post, `{"method":"resources/read","params":{"uri":"resource://inbox/A"}}`, `"code":-32603,"message":"Internal error: see the server's log."`, 200},
		{post, `{"method":"ping"}`, `"result":{}`, 200},
	} {
		res, body := request(t, url, tt.head, tt.body)
		if res.StatusCode != tt.status || !strings.Contains(body, tt.want) || strings.Contains(body, "goroutine") {
			t.Errorf("%s: %d %s", tt.body, res.StatusCode, body)
		}
	}
}

// TestClients checks that an SDK client, which uses the new era, can list tools and resource templates. A completion
// for an unknown reference must return no values and no error.
func TestClients(t *testing.T) {
	t.Parallel()
	_, url := serve(t, Config{})
	client := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url + "/mcp"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if v := session.InitializeResult().ProtocolVersion; v != protocol.NewEra {
		t.Errorf("the client speaks %s", v)
	}
	var lists [2]string
	for i := range lists {
		tools, err := session.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, tl := range tools.Tools {
			lists[i] += tl.Name + " "
		}
	}
	if lists[0] != lists[1] || strings.Count(lists[0], " ") != 13 {
		t.Errorf("tools: %q, then %q", lists[0], lists[1])
	}
	templates, err := session.ListResourceTemplates(t.Context(), nil)
	if err != nil || len(templates.ResourceTemplates) != 6 {
		t.Errorf("templates: %v, %v", templates, err)
	}
	res, err := session.Complete(t.Context(), &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "none"}, Argument: mcp.CompleteParamsArgument{Name: "x"}})
	if err != nil || res.Completion.Values == nil || len(res.Completion.Values) != 0 {
		t.Errorf("completion of an unknown reference: %+v, %v", res, err)
	}
}

// await waits until a condition is true.
func await(t *testing.T, ok func() bool) {
	t.Helper()
	waits.Until(t, "the awaited condition holds", ok)
}
