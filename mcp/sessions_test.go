package mcp

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"mailtree/mcp/protocol"
)

// ping sends a request in a session and returns the response's status.
func ping(t *testing.T, url, id string) int {
	t.Helper()
	res, body := request(t, url, inSession(id), `{"jsonrpc":"2.0","id":5,"method":"ping"}`)
	if res.StatusCode == 200 && body != `{"jsonrpc":"2.0","id":5,"result":{}}` {
		t.Errorf("ping: %s", body)
	}
	return res.StatusCode
}

// full checks that no new session can begin.
func full(t *testing.T, url, why string) {
	t.Helper()
	res, body := request(t, url, post+"\nAccept: "+protocol.AcceptBoth, initialize)
	why += " have a request in progress or an open stream): end a session, or try again later"
	if res.StatusCode != 503 || res.Header.Get("Retry-After") == "" || !strings.Contains(body, `"id":1`) || !strings.Contains(body, why) {
		t.Errorf("one too many: %d %s", res.StatusCode, body)
	}
}

// TestSessionCap checks that a new session over the limit replaces the least recently used session. It must never
// replace a session that has a stream or a request in progress.
func TestSessionCap(t *testing.T) {
	t.Parallel()
	s, url := serve(t, Config{MaxSessions: 4})
	started, _ := blocking(t, s)
	streaming, busy, used, unused := begin(t, url), begin(t, url), begin(t, url), begin(t, url)
	open(t, t.Context(), http.MethodGet, url, "", protocol.SessionHeader, streaming)
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, url+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"test/block"}`))
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {protocol.AcceptBoth}, protocol.SessionHeader: {busy}}
		if res, err := http.DefaultClient.Do(r); err == nil {
			res.Body.Close()
			t.Errorf("a waiting request was answered: %d", res.StatusCode)
		}
	}()
	<-started
	if status := ping(t, url, used); status != 200 {
		t.Fatalf("ping: %d", status)
	}
	one := begin(t, url)
	if a, b := ping(t, url, unused), ping(t, url, used); a != 404 || b != 200 {
		t.Errorf("the session unused for the longest time answers %d, the one used since answers %d", a, b)
	}
	two := begin(t, url)
	if a, b, c := ping(t, url, one), ping(t, url, streaming), ping(t, url, busy); a != 404 || b != 200 || c != 200 {
		t.Errorf("the session unused for the longest time answers %d, the one with a stream %d, the one with a request %d", a, b, c)
	}
	open(t, t.Context(), http.MethodGet, url, "", protocol.SessionHeader, used)
	open(t, t.Context(), http.MethodGet, url, "", protocol.SessionHeader, two)
	full(t, url, "all 4 sessions")
	if res, body := request(t, url, post, `{"method":"ping"}`); res.StatusCode != 200 {
		t.Errorf("a bare request while all sessions are in use: %d %s", res.StatusCode, body)
	}
	request(t, url, "DELETE /mcp\nMcp-Session-Id: "+two, "")
	begin(t, url)
	leave()
	<-gone
	await(t, func() bool {
		s.sessions.mu.Lock()
		defer s.sessions.mu.Unlock()
		return len(s.sessions.byID[busy].uses) == 0
	})
	begin(t, url)
	begin(t, url)
	if status := ping(t, url, busy); status != 404 {
		t.Errorf("the session whose request was interrupted answers %d", status)
	}
	if n := len(s.living()); n != 4 {
		t.Errorf("%d sessions", n)
	}
}

// TestSessionCapLosesNoCall checks that a session with a call in progress is never ended to make room, even if many
// clients make calls at that time. Each call must be answered, or refused because its session has ended.
func TestSessionCapLosesNoCall(t *testing.T) {
	t.Parallel()
	s, url := serve(t, Config{MaxSessions: 2})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 10 {
				res, body := request(t, url, post+"\nAccept: "+protocol.AcceptBoth, initialize)
				for range 5 {
					id := res.Header.Get(protocol.SessionHeader)
					if res.StatusCode == 503 && id == "" {
						break
					}
					if status := ping(t, url, id); res.StatusCode != 200 || status != 200 && status != 404 {
						t.Errorf("initialize: %d %s, then ping: %d", res.StatusCode, body, status)
					}
				}
			}
		})
	}
	wg.Wait()
	if n := len(s.living()); n > 2 {
		t.Errorf("%d sessions", n)
	}
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	for id, e := range s.sessions.byID {
		if len(e.uses) != 0 || !e.begun {
			t.Errorf("session %s: %+v", id, e)
		}
	}
	if s.sessions.starting != 0 {
		t.Errorf("%d are starting", s.sessions.starting)
	}
}

// socketOf returns the URL of a server that treats every connection as if it came from the given user over the Unix
// socket.
func socketOf(t *testing.T, s *Server, uid int) string {
	t.Helper()
	srv := httptest.NewUnstartedServer(s.socketHandler())
	srv.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, uidKey{}, uid)
	}
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.URL
}

// TestSessionOwner checks that a caller who authenticates differently cannot tell that a session exists, and that the
// session continues.
func TestSessionOwner(t *testing.T) {
	t.Parallel()
	_, tcp := serve(t, Config{Token: "tok"})
	const token = "\nAuthorization: Bearer tok"
	const mail = "/mcp\nContent-Type: application/json\nAccept: " + protocol.AcceptBoth
	type caller struct{ url, target string }
	for _, tt := range []struct{ owner, other caller }{
		{caller{tcp, mail}, caller{tcp, mail + token}},
		{caller{tcp, mail + token}, caller{tcp, mail}},
	} {
		id := beginAs(t, tt.owner.url, "POST "+tt.owner.target)
		for _, r := range []struct{ method, body string }{
			{"POST", `{"jsonrpc":"2.0","id":7,"method":"ping"}`},
			{"POST", `[{"jsonrpc":"2.0","id":7,"method":"ping"}]`},
			{"GET", ""},
			{"DELETE", ""},
		} {
			ask := func(id string) (int, string) {
				res, body := request(t, tt.other.url, r.method+" "+tt.other.target+"\n"+protocol.SessionHeader+": "+id, r.body)
				return res.StatusCode, body
			}
			status, body := ask(id)
			noStatus, noBody := ask("GONE")
			if status != 404 || status != noStatus || body != noBody {
				t.Fatalf("%v with the session of %v: %s %s: %d %s\nwithout one: %d %s", tt.other, tt.owner, r.method, r.body, status, body, noStatus, noBody)
			}
		}
		res, body := request(t, tt.owner.url, "POST "+tt.owner.target+"\n"+protocol.SessionHeader+": "+id, `{"jsonrpc":"2.0","id":7,"method":"ping"}`)
		if res.StatusCode != 200 {
			t.Errorf("its owner %v: %d %s", tt.owner, res.StatusCode, body)
		}
		if res, _ := request(t, tt.owner.url, "DELETE "+tt.owner.target+"\n"+protocol.SessionHeader+": "+id, ""); res.StatusCode != 204 {
			t.Errorf("its owner %v ends it: %d", tt.owner, res.StatusCode)
		}
	}
}

// TestNoSessionOnSocket checks that a bridge's initialize request does not begin a session, and that a request with a
// session id is answered without a session.
func TestNoSessionOnSocket(t *testing.T) {
	t.Parallel()
	s := New(Config{})
	t.Cleanup(s.end)
	own := socketOf(t, s, os.Geteuid())
	const path = "/toolset/mail/mcp\nContent-Type: application/json\nAccept: " + protocol.AcceptBoth
	res, body := request(t, own, "POST "+path, initialize)
	if id := res.Header.Get(protocol.SessionHeader); res.StatusCode != 200 || id != "" || !strings.Contains(body, `"protocolVersion"`) {
		t.Errorf("initialize: %d, session %q: %s", res.StatusCode, id, body)
	}
	res, body = request(t, own, "POST "+path+"\n"+protocol.SessionHeader+": gone", `{"jsonrpc":"2.0","id":5,"method":"ping"}`)
	if res.StatusCode != 200 || !strings.Contains(body, `"result"`) {
		t.Errorf("ping: %d %s", res.StatusCode, body)
	}
	if res, _ = request(t, own, "GET "+path+"\n"+protocol.SessionHeader+": gone", ""); res.StatusCode != 405 {
		t.Errorf("GET: %d", res.StatusCode)
	}
	if n := len(s.living()); n != 0 {
		t.Errorf("%d sessions", n)
	}
}
