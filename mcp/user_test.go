package mcp

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"mailtree/fixtures/guesttest"
	"mailtree/mcp/peeruid"
)

// onePage is a web page that shows the same text to everyone.
type onePage struct{}

func (onePage) ServeHTTP(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("the page")) }

func (onePage) Patterns() []string { return []string{"/p/", "GET /open/{code}"} }

func (onePage) Wants(r *http.Request) bool { return r.Header.Get("Accept") != "" }

func (onePage) Link(_, _, _ string) string { return "" }

// TestUserOnly checks that the server's own user needs no token on TCP, at every address that needs no token with
// AUTH=open.
func TestUserOnly(t *testing.T) {
	t.Parallel()
	if err := peeruid.Check(); err != nil {
		t.Skip("not done here:", err)
	}
	cfg := Config{Token: "tok", UserOnly: true, Page: onePage{}, Metrics: http.HandlerFunc(onePage{}.ServeHTTP)}
	_, url := serve(t, cfg)
	for _, head := range []string{post, strings.Replace(post, "/mcp", "/agents/ann/mcp", 1), "GET /health", "GET /metrics", "GET /p/x/", "GET /"} {
		if res, body := request(t, url, head, `{"method":"ping"}`); res.StatusCode != 200 {
			t.Errorf("%s: %d %s", head, res.StatusCode, body)
		}
	}
	if res, body := request(t, url, post+"\nAuthorization: Bearer wrong", `{"method":"ping"}`); res.StatusCode != 401 {
		t.Errorf("a wrong token: %d %s", res.StatusCode, body)
	}
}

// TestUserUnknown checks that a connection whose user is unknown is refused unless it sends the token.
func TestUserUnknown(t *testing.T) {
	t.Parallel()
	s := New(Config{Token: "tok", UserOnly: true})
	t.Cleanup(s.end)
	srv := httptest.NewServer(s.Handler()) // this server does not look up the user
	t.Cleanup(srv.Close)
	res, body := request(t, srv.URL, post, `{"method":"ping"}`)
	if res.StatusCode != 403 || !strings.Contains(body, "it cannot tell which user you are") {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	if res, body := request(t, srv.URL, post+"\nAuthorization: Bearer tok", `{"method":"ping"}`); res.StatusCode != 200 {
		t.Errorf("with the token: %d %s", res.StatusCode, body)
	}
}

// TestOtherUserTCP checks that another user without the token gets nothing on TCP except a description of the two ways
// to get access. With the token, this user must be able to do everything.
func TestOtherUserTCP(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("not done here: running as two users needs root")
	}
	cfg := Config{Token: "tok", UserOnly: true, Page: onePage{}, Metrics: http.HandlerFunc(onePage{}.ServeHTTP)}
	cfg.Hosts = []string{"mailtree"}
	s, url := serve(t, cfg)
	const ways, ping = "but you are user 65534. Send the header Authorization: Bearer TOKEN", `{"method":"ping"}`
	want := []asked{
		{"POST /mcp", ping, 403, ways},
		{"POST /mcp", ping, 403, "start the server with AUTH=open"},
		{"POST /mcp", initialize, 403, ways},
		{"GET /mcp\nMcp-Session-Id: x", "", 403, ways},
		{"POST /agents/ann/mcp", ping, 403, ways},
		{"POST /mcp\nAuthorization: Bearer tok", ping, 200, `"result":{}`},
		{"POST /mcp\nAuthorization: Bearer wrong", ping, 403, ways},
		{"GET /health", "", 403, ways},
		{"GET /health\nAuthorization: Bearer tok", "", 200, "ok"},
		{"GET /metrics", "", 403, ways},
		{"GET /metrics\nAuthorization: Bearer tok", "", 200, "the page"},
		{"GET /\nAccept: text/html", "", 403, "403: this server is for user 0, but you are user 65534"},
		{"GET /p/x/\nAccept: text/html\nCookie: mailtree-80=x", "", 403, "AUTH=open"},
		{"POST /p/x/send", "", 403, ways},
		{"GET /open/CODE", "", 403, ways},
		{"GET /p/x/\nAuthorization: Bearer tok", "", 200, "the page"},
		{"GET /mcp/server-card", "", 200, "mailtree"},
	}
	checkAnswers(t, askAs(t, 65534, guesttest.Dir(t), strings.TrimPrefix(url, "http://"), want), want)
	await(t, func() bool { return s.requests.used.Load() == 0 && s.streams.used.Load() == 0 })
}

// BenchmarkAccept measures a connection with one request, with and without looking up the connection's user.
func BenchmarkAccept(b *testing.B) {
	for name, only := range map[string]bool{"open": false, "user": true} {
		b.Run(name, func(b *testing.B) {
			s := New(Config{UserOnly: only})
			defer s.end()
			srv := httptest.NewUnstartedServer(nil)
			srv.Config = s.HTTPServer("")
			srv.Start()
			defer srv.Close()
			c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{}).DialContext}}
			for b.Loop() {
				res, err := c.Get(srv.URL + "/health")
				if err != nil || res.StatusCode != http.StatusOK {
					b.Fatal(res, err)
				}
				res.Body.Close()
			}
		})
	}
}
