package mcp

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/mcp/protocol"
)

// comments reads n comments from an event stream.
func comments(t *testing.T, lines *bufio.Scanner, n int) {
	t.Helper()
	for n > 0 && lines.Scan() {
		if strings.HasPrefix(lines.Text(), ":") {
			n--
		}
	}
	if n > 0 {
		t.Errorf("the stream ended before %d more comments: %v", n, lines.Err())
	}
}

// TestHeartbeat checks that the server sends comments on a stream without events, in both protocol eras.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	_, url := serve(t, Config{Progress: time.Millisecond})
	res := open(t, t.Context(), http.MethodGet, url, "", protocol.SessionHeader, begin(t, url))
	comments(t, bufio.NewScanner(res.Body), 3)
	listen := `{"jsonrpc":"2.0","id":9007199254740993,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["resource://inbox/A"]},` + newEraMeta + `}}`
	res = open(t, t.Context(), http.MethodPost, url, listen, protocol.VersionHeader, protocol.NewEra, protocol.MethodHeader, "subscriptions/listen")
	lines := bufio.NewScanner(res.Body)
	lines.Scan() // skip the line with the event's name
	if !lines.Scan() || !strings.Contains(lines.Text(), "9007199254740993") || strings.Contains(lines.Text(), numberMark) {
		t.Errorf("the first event is %q", lines.Text())
	}
	comments(t, lines, 3)
}

// TestPostalStream checks that a bare call to postal immediately gets an event stream if the client does not accept
// anything else. The stream must contain comments while the call waits, and then the response as an event.
func TestPostalStream(t *testing.T) {
	t.Parallel()
	store := storetest.Open(t, storetest.Config{NoWatcher: true})
	_, url := serve(t, Config{Store: store.Store, Progress: time.Millisecond})
	for name, body := range map[string]string{
		"rpc":   `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"check_mail","arguments":{"wait_seconds":50}}}`,
		"plain": `{"tool":"check_mail","args":{"wait_seconds":50}}`,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/agents/"+name+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "text/event-stream")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if kind := res.Header.Get("Content-Type"); res.StatusCode != 200 || kind != "text/event-stream" {
			t.Fatalf("%s: %d %s", name, res.StatusCode, kind)
		}
		lines := bufio.NewScanner(res.Body)
		comments(t, lines, 3)
		p, err := store.EnsureProject(t.Context(), maildir.DefaultProject)
		if err != nil {
			t.Fatal(err)
		}
		for _, agent := range []string{"bob", name} {
			if err := p.Agents.EnsureAgent(t.Context(), agent, maildir.Registration{}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := p.Box("bob", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{name}, Body: "ping"}); err != nil {
			t.Fatal(err)
		}
		var data []string
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				data = append(data, text)
			}
		}
		if len(data) != 1 || !strings.Contains(data[0], "ping") || strings.HasPrefix(data[0], `{"jsonrpc"`) && name == "plain" {
			t.Errorf("%s: %s", name, fmt.Sprint(data))
		}
	}
}
