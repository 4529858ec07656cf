package mcp

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/fixtures/storetest"
	"mailtree/mcp/protocol"
)

// restarting is an address at which several servers run, one after another.
type restarting struct {
	*Server
	url string

	cfg     Config
	handler atomic.Pointer[http.Handler]
	stop    func()
}

func startRestarting(t *testing.T, cfg Config) *restarting {
	t.Helper()
	r := &restarting{cfg: cfg, stop: func() {}}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { (*r.handler.Load()).ServeHTTP(w, req) }))
	r.url = srv.URL
	r.restart(t)
	t.Cleanup(srv.Close)
	t.Cleanup(func() { r.stop() })
	return r
}

// restart stops the server and starts the next one at the same address.
func (r *restarting) restart(t *testing.T) {
	t.Helper()
	r.stop()
	r.Server = New(r.cfg)
	h := r.Handler()
	r.handler.Store(&h)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	r.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}

// stream opens a session's stream. The function next returns the data of the next event.
func stream(t *testing.T, url, id string) (next func() string) {
	t.Helper()
	res := open(t, t.Context(), http.MethodGet, url, "", protocol.SessionHeader, id)
	if res.StatusCode != http.StatusOK {
		t.Fatalf("stream: %s", res.Status)
	}
	r := bufio.NewReader(res.Body)
	return func() string {
		for {
			line, err := r.ReadString('\n')
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				return strings.TrimSpace(data)
			}
			if err != nil {
				return err.Error()
			}
		}
	}
}

const (
	newAnn      = `{"project_key":"/abs/p","program":"x","model":"y","task_description":"z","name_hint":"Ann"}`
	annsInbox   = "resource://inbox/Ann?project=/abs/p"
	annsUpdated = `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + annsInbox + `"}}`
)

// subscribing returns a message that subscribes to a URI or unsubscribes from it.
func subscribing(verb, uri string) string {
	return `{"jsonrpc":"2.0","id":2,"method":"resources/` + verb + `","params":{"uri":"` + uri + `"}}`
}

func mailAnn(t *testing.T, url string) {
	t.Helper()
	result(t, url, "send_message", `{"project_key":"/abs/p","from_agent":"Ann","to":["Ann"],"subject":"s","body_md":""}`)
}

// TestRestart checks that a session of revision 2025-06-18 continues on the next server, whichever request its client
// sends first. The session's next stream must begin with one notification for each subscription, and the subscriptions
// must continue.
func TestRestart(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]func(t *testing.T, url, id string){
		"request": func(t *testing.T, url, id string) {
			if res, body := request(t, url, inSession(id), `{"jsonrpc":"2.0","id":5,"method":"tools/list"}`); res.StatusCode != 200 {
				t.Errorf("tools/list: %d %s", res.StatusCode, body)
			}
		},
		"stream": func(*testing.T, string, string) {},
		"several at once": func(t *testing.T, url, id string) {
			var all sync.WaitGroup
			for i := range 8 {
				all.Go(func() {
					res, body := request(t, url, inSession(id), fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, i))
					if res.StatusCode != 200 || !strings.Contains(body, `"tools":`) {
						t.Errorf("tools/list: %d %s", res.StatusCode, body)
					}
				})
			}
			all.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startRestarting(t, Config{Store: storetest.Open(t, storetest.Config{}).Store})
			result(t, s.url, "create_agent", newAnn)
			id := begin(t, s.url)
			for _, m := range []string{
				`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
				subscribing("subscribe", "resource://inbox/Bob?project=/abs/p"),
				subscribing("subscribe", annsInbox),
				subscribing("unsubscribe", "resource://inbox/Bob?project=/abs/p"),
			} {
				request(t, s.url, inSession(id), m)
			}
			for range 2 {
				s.restart(t)
				first(t, s.url, id)
				next := stream(t, s.url, id)
				if got := next(); got != annsUpdated {
					t.Fatalf("the stream begins with %s", got)
				}
				mailAnn(t, s.url)
				if got := next(); got != annsUpdated {
					t.Fatalf("on the stream: %s", got)
				}
				ids := []string{}
				for ss := range s.door("mail").set.Server().Sessions() {
					ids = append(ids, ss.ID())
				}
				if !slices.Equal(ids, []string{id}) {
					t.Errorf("sessions %q, want %q", ids, id)
				}
			}
		})
	}
}

// TestRestartSDK checks that an SDK client that supports only sessions continues on the next server. The client must
// first be notified that its resources may have changed, and later about actual changes.
func TestRestartSDK(t *testing.T) {
	t.Parallel()
	s := startRestarting(t, Config{Store: storetest.Open(t, storetest.Config{}).Store})
	result(t, s.url, "create_agent", newAnn)
	updated := make(chan string, 10)
	client := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, &mcp.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { updated <- r.Params.URI },
	})
	at := &mcp.StreamableClientTransport{Endpoint: s.url + "/mcp"}
	session, err := client.Connect(t.Context(), at, &mcp.ClientSessionOptions{ProtocolVersion: "2025-06-18"})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if err := session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: annsInbox}); err != nil {
		t.Fatal(err)
	}
	id := session.ID()
	s.restart(t)
	if got := <-updated; got != annsInbox {
		t.Errorf("notified about %s", got)
	}
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "whois", Arguments: map[string]any{"project_key": "/abs/p", "agent_name": "Ann"}})
	if err != nil || res.IsError || session.ID() != id {
		t.Fatalf("session %q, was %q: %v (%v)", session.ID(), id, res, err)
	}
	mailAnn(t, s.url)
	if got := <-updated; got != annsInbox {
		t.Errorf("notified about %s", got)
	}
}

// TestRestartStrangers checks that the next server answers 404 for an id without a session, and also for the id of
// another caller's session. An initialize request with such an id must begin a new session.
func TestRestartStrangers(t *testing.T) {
	t.Parallel()
	store := storetest.Open(t, storetest.Config{}).Store
	s := startRestarting(t, Config{Store: store, Token: store.Token()})
	token := "\nAuthorization: Bearer " + store.Token()
	mine, open, ended, old, odd := beginAs(t, s.url, post+token), begin(t, s.url), begin(t, s.url), begin(t, s.url), begin(t, s.url)
	if res, _ := request(t, s.url, "DELETE /mcp\nMcp-Session-Id: "+ended, ""); res.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE: %s", res.Status)
	}
	dir := filepath.Join(store.Root(), sessionsDir)
	day := time.Now().Add(-25 * time.Hour)
	if err := os.Chtimes(filepath.Join(dir, old), day, day); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, odd), []byte(`{"initialize":`), 0o600); err != nil {
		t.Fatal(err)
	}
	s.restart(t)
	for _, tt := range []struct {
		what, url, head, id string
		status              int
	}{
		{"another's, without the token", s.url, post, mine, 404},
		{"another's, with the token", s.url, post + token, open, 404},
		{"of another toolset", s.url, strings.Replace(post, "/mcp", "/agents/ann/mcp", 1), open, 404},
		{"ended", s.url, post, ended, 404},
		{"unused for a day", s.url, post, old, 404},
		{"a torn file", s.url, post, odd, 404},
		{"made up", s.url, post, strings.Repeat("A", len(open)), 404},
		{"a path", s.url, post, "../token", 404},
		{"mine", s.url, post + token, mine, 200},
		{"open", s.url, post, open, 200},
	} {
		head := tt.head + "\nAccept: " + protocol.AcceptBoth + "\nMcp-Session-Id: "
		res, body := request(t, tt.url, head+tt.id, `{"jsonrpc":"2.0","id":5,"method":"ping"}`)
		if res.StatusCode != tt.status {
			t.Errorf("%s: %d %s", tt.what, res.StatusCode, body)
		}
		if tt.status == 200 {
			continue
		}
		again := beginAs(t, tt.url, tt.head+"\nMcp-Session-Id: "+tt.id)
		if again == tt.id {
			t.Errorf("%s: initialize uses the id that it names", tt.what)
		}
		if res, body := request(t, tt.url, head+again, `{"jsonrpc":"2.0","id":5,"method":"ping"}`); res.StatusCode != 200 {
			t.Errorf("%s, begun again: %d %s", tt.what, res.StatusCode, body)
		}
	}
}

// TestRestartRoom checks that a session is removed from the store when it is ended to make room for another session.
func TestRestartRoom(t *testing.T) {
	t.Parallel()
	store := storetest.Open(t, storetest.Config{}).Store
	s := startRestarting(t, Config{Store: store, MaxSessions: 4})
	var ids [5]string
	for i := range ids {
		if i > 0 {
			ping(t, s.url, ids[0]) // makes the next session the least recently used one
		}
		ids[i] = begin(t, s.url)
	}
	s.restart(t)
	if a, b, c := ping(t, s.url, ids[0]), ping(t, s.url, ids[1]), ping(t, s.url, ids[4]); a != 200 || b != 404 || c != 200 {
		t.Errorf("the first session answers %d, the second %d, the last %d", a, b, c)
	}
	files, err := filepath.Glob(filepath.Join(store.Root(), sessionsDir, "*.*"))
	if err != nil || len(files) != 4 {
		t.Errorf("the kept sessions are %v (%v), want 4", files, err)
	}
}

// TestIdle checks that a client can continue a session that has been idle for a long time.
func TestIdle(t *testing.T) {
	t.Parallel()
	s := startRestarting(t, Config{Store: storetest.Open(t, storetest.Config{}).Store, SessionTimeout: time.Millisecond})
	id := begin(t, s.url)
	await(t, func() bool { return len(s.living()) == 0 })
	if status := ping(t, s.url, id); status != 200 {
		t.Errorf("ping: %d", status)
	}
}

// TestEndWhileWaiting checks that ending a session does not wait for a call in the session that is waiting for mail.
// The response to that call must give the reason.
func TestEndWhileWaiting(t *testing.T) {
	t.Parallel()
	s, url := serve(t, Config{})
	started, _ := blocking(t, s)
	id := begin(t, url)
	waited := make(chan string)
	go func() {
		res, err := http.DefaultClient.Do(func() *http.Request {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"test/block"}`))
			r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {protocol.AcceptBoth}, protocol.SessionHeader: {id}}
			return r
		}())
		if err != nil {
			waited <- err.Error()
			return
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		waited <- fmt.Sprint(res.StatusCode, " ", string(body))
	}()
	<-started
	if res, body := request(t, url, "DELETE /mcp\nMcp-Session-Id: "+id, ""); res.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE: %d %s", res.StatusCode, body)
	}
	if got, want := <-waited, `404 {"error":{"code":-32600,"message":"the session has ended"},"id":7,"jsonrpc":"2.0"}`; got != want {
		t.Errorf("the call:\n got %s\nwant %s", got, want)
	}
}

// TestResuming checks that a session cannot be used until it has been completely resumed.
func TestResuming(t *testing.T) {
	x := newSessions()
	x.setOwner("id", "me")
	usable := func() string {
		_, done, ok := x.use(t.Context(), "id", "me")
		done()
		return fmt.Sprint(ok, x.has("id", "me"))
	}
	before := usable()
	resumed := x.beginResuming("id")
	during := usable()
	resumed(nil)
	if after := usable(); before != "true true" || during != "false false" || after != "true true" {
		t.Errorf("usable before: %s, during: %s, after: %s", before, during, after)
	}
}
