package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/mcp/protocol"
	"mailtree/mcp/tool"
)

const (
	waitWithToken = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"check_my_messages",` +
		`"arguments":{"project_key":"/abs/p","agent_name":"Ann","wait_seconds":3600},"_meta":{"progressToken":"t1"%s}}}`
)

// events returns a function that reads the next event of a stream.
func events(t *testing.T, res *http.Response) func() (data string, ok bool) {
	t.Helper()
	lines := bufio.NewScanner(res.Body)
	return func() (string, bool) {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return data, true
			}
		}
		return "", false
	}
}

// TestProgress checks a waiting call with a progress token in both protocol eras. The call must get the response
// headers immediately, then regular notifications, and then the mail when it arrives. The server must not shorten a
// wait of an hour.
func TestProgress(t *testing.T) {
	t.Parallel()
	store := storetest.Open(t, storetest.Config{NoWatcher: true})
	s, url := serve(t, Config{Store: store.Store, Progress: time.Millisecond})
	p, err := store.EnsureProject(t.Context(), "/abs/p")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Agents.EnsureAgent(t.Context(), "Ann", maildir.Registration{}); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		body   string
		header []string
	}{
		"session": {fmt.Sprintf(waitWithToken, ""), []string{protocol.SessionHeader, begin(t, url)}},
		"stateless": {fmt.Sprintf(waitWithToken, ","+newEraFields), []string{
			protocol.VersionHeader, protocol.NewEra, protocol.MethodHeader, "tools/call", protocol.NameHeader, "check_my_messages",
		}},
	} {
		res := open(t, t.Context(), http.MethodPost, url, tt.body, tt.header...)
		if kind := res.Header.Get("Content-Type"); res.StatusCode != 200 || kind != "text/event-stream" {
			t.Fatalf("%s: %d %s", name, res.StatusCode, kind)
		}
		if requests, streams := s.requests.used.Load(), s.streams.used.Load(); requests != 0 || streams != 1 {
			t.Errorf("%s: %d requests, %d streams", name, requests, streams)
		}
		next, last := events(t, res), -1.0
		for range 3 {
			data, _ := next()
			var n struct {
				Method string
				Params struct {
					ProgressToken string
					Progress      float64
				}
			}
			if err := json.Unmarshal([]byte(data), &n); err != nil || n.Method != "notifications/progress" ||
				n.Params.ProgressToken != "t1" || n.Params.Progress <= last {
				t.Errorf("%s: %s %v", name, data, err)
			}
			last = n.Params.Progress
		}
		if _, err := p.Box("Ann", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"Ann"}, Subject: "at last"}); err != nil {
			t.Fatal(err)
		}
		data, ok := next()
		for ok && strings.Contains(data, "notifications/progress") {
			data, ok = next()
		}
		if !strings.Contains(data, `"id":7`) || !strings.Contains(data, "at last") || strings.Contains(data, "waited no longer") {
			t.Errorf("%s: %q", name, data)
		}
		if data, ok := next(); ok {
			t.Errorf("%s: after the answer %q", name, data)
		}
		await(t, func() bool { return s.streams.used.Load() == 0 })
		if _, err := p.Box("Ann", format.Origin{}).Inbox(t.Context(), index.InboxQuery{}, true, maildir.Waiting{}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestProgressEnds checks that a call with progress notifications ends if its client disconnects, and if the server
// stops.
func TestProgressEnds(t *testing.T) {
	t.Parallel()
	store := storetest.Open(t, storetest.Config{NoWatcher: true})
	s, url := serve(t, Config{Store: store.Store, Progress: time.Hour})
	p, err := store.EnsureProject(t.Context(), "/abs/p")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Agents.EnsureAgent(t.Context(), "Ann", maildir.Registration{}); err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	open(t, ctx, http.MethodPost, url, fmt.Sprintf(waitWithToken, ""), protocol.SessionHeader, begin(t, url))
	leave()
	await(t, func() bool { return s.streams.used.Load() == 0 })
	// Use a new session, because the SDK may not have released the previous call's id in the old session yet.
	res := open(t, t.Context(), http.MethodPost, url, fmt.Sprintf(waitWithToken, ""), protocol.SessionHeader, begin(t, url))
	s.end()
	if data, _ := events(t, res)(); !strings.Contains(data, `"id":7`) || !strings.Contains(data, `"messages":[]`) {
		t.Errorf("when the server stops: %q", data)
	}
}

// TestLongestWait checks the maximum duration of a wait. Without progress notifications, it is MaxWait, because the
// client gives up after a minute. With them, it is an hour.
func TestLongestWait(t *testing.T) {
	if got := tool.LongestWait(t.Context()); got != tool.MaxWait {
		t.Errorf("%d", got)
	}
	if got := tool.LongestWait(tool.WithAdmission(t.Context(), tool.Admission{Long: true})); got != 3600 {
		t.Errorf("%d", got)
	}
}
