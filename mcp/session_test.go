package mcp

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/fixtures/storetest"
	"mailtree/mcp/protocol"
	"mailtree/mcp/tool"
)

// open sends a request and returns as soon as the response headers have arrived.
func open(t *testing.T, ctx context.Context, method, url, body string, header ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, url+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", protocol.AcceptBoth)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

func TestSession(t *testing.T) {
	t.Parallel()
	_, url := serve(t, Config{})
	id := begin(t, url)
	if res, body := request(t, url, inSession(id), `{"jsonrpc":"2.0","method":"notifications/initialized"}`); res.StatusCode != 202 {
		t.Errorf("initialized: %d %s", res.StatusCode, body)
	}
	// Gemini CLI sends no version, and mcp-remote sends Mcp-Method in requests of the older protocol, which has sessions.
	// The sessions of both clients must continue to work.
	for _, extra := range []string{"", "\nMcp-Method: tools/call", "\nMcp-Protocol-Version: 2025-06-18"} {
		res, body := request(t, url, inSession(id)+extra, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"create_agent","arguments":{}}}`)
		if res.StatusCode != 200 || !strings.Contains(body, `"result":{"content":`) || strings.Contains(body, `"near":[],"structuredContent"`) {
			t.Errorf("%q: %d %s", extra, res.StatusCode, body)
		}
	}
	if res, body := request(t, url, inSession(id), `{"jsonrpc":"2.0","id":4,"method":"nothing/here"}`); res.StatusCode != 200 || !strings.Contains(body, "-32601") {
		t.Errorf("unknown method: %d %s", res.StatusCode, body)
	}
	res := open(t, t.Context(), http.MethodGet, url, "", protocol.SessionHeader, id)
	if res.StatusCode != 200 || res.Header.Get("X-Accel-Buffering") != "no" || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("stream: %d %v", res.StatusCode, res.Header)
	}
	if res, _ := request(t, url, "DELETE /mcp\nMcp-Session-Id: "+id, ""); res.StatusCode != 204 {
		t.Errorf("delete: %d", res.StatusCode)
	}
	if _, err := io.ReadAll(res.Body); err != nil {
		t.Errorf("the stream of a deleted session: %v", err)
	}
	if res, _ := request(t, url, inSession(id), `{"jsonrpc":"2.0","id":5,"method":"ping"}`); res.StatusCode != 404 {
		t.Errorf("after delete: %d", res.StatusCode)
	}
}

// TestSessionTimeout checks that an unused session ends, and that a session with an open stream continues.
func TestSessionTimeout(t *testing.T) {
	t.Parallel()
	s, url := serve(t, Config{SessionTimeout: 3 * time.Second})
	var watched string
	await(t, func() bool { // retry, because the session may time out before its stream is requested
		watched = begin(t, url)
		return open(t, t.Context(), http.MethodGet, url, "", protocol.SessionHeader, watched).StatusCode == http.StatusOK
	})
	for range 2 {
		begin(t, url)
		await(t, func() bool { return len(s.living()) == 1 }) // the new session timed out, and the older one did not
	}
	if res, body := request(t, url, inSession(watched), `{"jsonrpc":"2.0","id":5,"method":"ping"}`); res.StatusCode != 200 {
		t.Errorf("the session with a stream: %d %s", res.StatusCode, body)
	}
}

type blockParams struct{ mcp.ParamsBase }

type blockResult struct {
	mcp.ResultBase
	Auth string `json:"auth"`
}

// blocking adds two methods. The first waits until its context is done, and the second reports how the server has
// identified the caller.
func blocking(t *testing.T, s *Server) (started, ended chan struct{}) {
	t.Helper()
	started, ended = make(chan struct{}, 10), make(chan struct{}, 10)
	err := mcp.AddReceivingCustomMethod(s.door("mail").set.Server(), "test/block", func(ctx context.Context, _ *mcp.ServerSession, _ *blockParams) (*blockResult, error) {
		started <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return &blockResult{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = mcp.AddReceivingCustomMethod(s.door("mail").set.Server(), "test/auth", func(ctx context.Context, _ *mcp.ServerSession, _ *blockParams) (*blockResult, error) {
		return &blockResult{Auth: tool.CallerOf(ctx).Auth}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return started, ended
}

// TestCancel checks that a method's context is canceled if the client disconnects, both in a session and outside one.
func TestCancel(t *testing.T) {
	t.Parallel()
	s, url := serve(t, Config{MaxRequests: 1})
	started, ended := blocking(t, s)
	for name, tt := range map[string]struct {
		header []string
		params string
	}{
		"bare":       {},
		"session":    {[]string{protocol.SessionHeader, begin(t, url)}, ""},
		"no session": {[]string{protocol.VersionHeader, protocol.NewEra, "Mcp-Method", "test/block"}, `,"params":{` + newEraMeta + `}`},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"test/block"`+tt.params+`}`))
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", protocol.AcceptBoth)
			for i := 0; i < len(tt.header); i += 2 {
				r.Header.Set(tt.header[i], tt.header[i+1])
			}
			if res, err := http.DefaultClient.Do(r); err == nil {
				defer res.Body.Close()
				if body, err := io.ReadAll(res.Body); err == nil {
					t.Errorf("%s: the canceled request was answered: %s", name, body)
				}
			}
		}()
		select {
		case <-started:
		case <-gone:
			t.FailNow()
		}
		if res, body := request(t, url, post, `{"method":"ping"}`); res.StatusCode != 503 || res.Header.Get("Retry-After") == "" {
			t.Errorf("%s: one request too many: %d %s", name, res.StatusCode, body)
		}
		cancel()
		<-gone
		<-ended
		await(t, func() bool { return s.requests.used.Load() == 0 })
	}
}

// TestCaller checks that only the token identifies the caller, both in a session and outside one. The server must
// ignore a caller header from a client.
func TestCaller(t *testing.T) {
	t.Parallel()
	s, url := serve(t, Config{Token: "tok"})
	blocking(t, s)
	const token = "\nAuthorization: Bearer tok"
	session, known := inSession(beginAs(t, url, post)), inSession(beginAs(t, url, post+token))
	for head, want := range map[string]string{
		post: "none", post + token: "token", post + "\nMailtree-Caller: uid:0": "none",
		session: "none", known + token: "token",
	} {
		if _, body := request(t, url, head, `{"jsonrpc":"2.0","id":1,"method":"test/auth"}`); !strings.Contains(body, `"auth":"`+want+`"`) {
			t.Errorf("%q: %s, want %s", head, body, want)
		}
	}
}

// TestStop checks that streams of both protocol eras count towards the limit while they are open, and end when the
// server stops.
func TestStop(t *testing.T) {
	t.Parallel()
	s, url := serve(t, Config{MaxStreams: 2})
	id := begin(t, url)
	get := open(t, t.Context(), http.MethodGet, url, "", protocol.SessionHeader, id)
	listen := `{"jsonrpc":"2.0","id":9,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["resource://inbox/A"]},` +
		newEraMeta + `}}`
	header := []string{protocol.VersionHeader, protocol.NewEra, "Mcp-Method", "subscriptions/listen"}
	stream := open(t, t.Context(), http.MethodPost, url, listen, header...)
	r := bufio.NewReader(stream.Body)
	if line, err := r.ReadString('\n'); err != nil || stream.Header.Get("X-Accel-Buffering") != "no" {
		t.Fatalf("listen: %d %q %v %v", stream.StatusCode, line, err, stream.Header)
	}
	if res := open(t, t.Context(), http.MethodPost, url, listen, header...); res.StatusCode != 503 {
		t.Errorf("one stream too many: %d", res.StatusCode)
	}
	if n := s.requests.used.Load(); n != 0 {
		t.Errorf("streams are counted as %d requests", n)
	}
	s.end()
	if _, err := io.ReadAll(get.Body); err != nil {
		t.Errorf("GET stream: %v", err)
	}
	rest, err := io.ReadAll(r)
	if err != nil || !strings.Contains(string(rest), `"id":9,"result"`) {
		t.Errorf("listen stream: %s, %v", rest, err)
	}
	await(t, func() bool { return s.streams.used.Load() == 0 })
}

// TestHalfClosed checks that a call ends if the client closes its sending side before it gets the response. The client
// must not get an empty response with a success status.
func TestHalfClosed(t *testing.T) {
	t.Parallel()
	s, url := serve(t, Config{Store: storetest.Open(t, storetest.Config{}).Store})
	for _, body := range []string{
		`{"tool":"check_mail","args":{"wait_seconds":50}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"check_mail","arguments":{"wait_seconds":50}}}`,
		`[{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"check_mail","arguments":{"wait_seconds":50}}},{"jsonrpc":"2.0","id":8,"method":"ping"}]`,
	} {
		c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "POST /agents/bob/mcp/ HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		await(t, func() bool { return s.streams.used.Load() == 1 }) // wait until the call is waiting for mail
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode == http.StatusOK && len(answer) == 0 {
			t.Errorf("%s: %d %q, %v", body, res.StatusCode, answer, err)
		}
		t.Logf("%d %s", res.StatusCode, answer)
		await(t, func() bool { return s.requests.used.Load() == 0 && s.streams.used.Load() == 0 })
	}
}
