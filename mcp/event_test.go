package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/mcp/protocol"
)

const modern = post + "\nMcp-Protocol-Version: 2026-07-28\nMcp-Method: "

// eventCall is a request of the newer era.
func eventCall(method, params string) string {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	if params != "" {
		params = "," + params
	}
	return `{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":{` + meta + params + `}}`
}

func askEvents(t *testing.T, url, method, params string) (result map[string]any, failure map[string]any) {
	t.Helper()
	_, body := request(t, url, modern+method, eventCall(method, params))
	var answer struct{ Result, Error map[string]any }
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatalf("%s: %s (%v)", method, body, err)
	}
	return answer.Result, answer.Error
}

// TestEventsOff: without the setting no method of the extension is there, and none is declared.
func TestEventsOff(t *testing.T) {
	t.Parallel()
	_, url := serve(t, Config{Store: storetest.Open(t, storetest.Config{}).Store})
	for _, method := range []string{"events/list", "events/poll", "events/stream"} {
		if _, failure := askEvents(t, url, method, ""); failure["code"] != float64(protocol.CodeMethod) {
			t.Errorf("%s: %v", method, failure)
		}
	}
	found, _ := askEvents(t, url, "server/discover", "")
	if text := string(mustEncode(t, found)); strings.Contains(text, "io.modelcontextprotocol/events") {
		t.Errorf("declared: %s", text)
	}
}

func mustEncode(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestEventsPoll: a client that polls learns of mail, claims and statuses once, and what is wrong
// with what it asks for.
func TestEventsPoll(t *testing.T) {
	t.Parallel()
	_, url := serve(t, Config{Store: storetest.Open(t, storetest.Config{}).Store, Events: true})
	found, _ := askEvents(t, url, "server/discover", "")
	if text := string(mustEncode(t, found)); !strings.Contains(text, `"io.modelcontextprotocol/events":{}`) {
		t.Errorf("not declared: %s", text)
	}
	listed, _ := askEvents(t, url, "events/list", "")
	if text := string(mustEncode(t, listed)); strings.Count(text, `"delivery":["poll","push"]`) != 3 || listed["resultType"] != "complete" {
		t.Errorf("listed: %s", text)
	}
	for _, n := range []string{"Ann", "Bob"} {
		result(t, url, "create_agent", `{"project_key":"/abs/p","program":"x","model":"y","task_description":"z","name_hint":"`+n+`"}`)
	}
	const mailOfBob = `"name":"email.received","arguments":{"project_key":"/abs/p","agent_name":"Bob"}`
	const claims = `"name":"claim.changed","arguments":{"project_key":"/abs/p"}`
	cursors := map[string]string{}
	for _, what := range []string{mailOfBob, claims} {
		began, failure := askEvents(t, url, "events/poll", what)
		if text := string(mustEncode(t, began)); !strings.Contains(text, `"events":[]`) {
			t.Fatalf("began: %s %v", text, failure)
		}
		cursors[what], _ = began["cursor"].(string)
	}
	sent := result(t, url, "send_message", `{"project_key":"/abs/p","from_agent":"Ann","to":["Bob"],"subject":"one","body_md":"secret"}`)
	result(t, url, "claim_paths", `{"project_key":"/abs/p","agent_name":"Ann","paths_list":["a.go"],"reason":"r"}`)
	for what, want := range map[string][]string{
		mailOfBob: {`"eventId":"` + sent["id"].(string) + `/Bob"`, `"subject":"one"`, `"from":"Ann"`},
		claims:    {`"change":"claimed"`, `"path":"a.go"`, `"agent":"Ann"`},
	} {
		got, failure := askEvents(t, url, "events/poll", what+`,"cursor":"`+cursors[what]+`"`)
		text := string(mustEncode(t, got))
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: no %s in %s (%v)", what, w, text, failure)
			}
		}
		if strings.Contains(text, "secret") || got["truncated"] != false || got["hasMore"] != false {
			t.Errorf("%s: %s", what, text)
		}
		again, _ := askEvents(t, url, "events/poll", what+`,"cursor":"`+got["cursor"].(string)+`"`)
		if text := string(mustEncode(t, again)); !strings.Contains(text, `"events":[]`) {
			t.Errorf("%s, again: %s", what, text)
		}
	}
	for params, code := range map[string]int{
		`"name":"email.sent"`: protocol.CodeUnknown,
		`"name":"email.received","arguments":{"project_key":"/abs/p"}`:                      protocol.CodeParams,
		`"name":"email.received","arguments":{"project_key":"/abs/p","agent_name":"Bobby"}`: protocol.CodeParams,
		`"name":"claim.changed","arguments":{"project_key":"/abs/p"},"cursor":"elsewhere"`:  protocol.CodeParams,
		`"name":"claim.changed","arguments":{"project_key":"/abs/p","severity":"P1"}`:       protocol.CodeParams,
		`"name":"claim.changed","arguments":{"project_key":"/abs/nowhere"},"cursor":null`:   protocol.CodeParams,
	} {
		if _, failure := askEvents(t, url, "events/poll", params); failure["code"] != float64(code) {
			t.Errorf("%s: %v", params, failure)
		}
	}
}

// TestEventsStream: a stream begins with its confirmation, tells of mail with a cursor to go on
// from, and ends with the server.
func TestEventsStream(t *testing.T) {
	t.Parallel()
	s, url := serve(t, Config{Store: storetest.Open(t, storetest.Config{}).Store, Events: true})
	for _, n := range []string{"Ann", "Bob"} {
		result(t, url, "create_agent", `{"project_key":"/abs/p","program":"x","model":"y","task_description":"z","name_hint":"`+n+`"}`)
	}
	const mailOfBob = `"name":"email.received","arguments":{"project_key":"/abs/p","agent_name":"Bob"}`
	follow := func(ctx context.Context, params string) (next func() string) {
		t.Helper()
		res := open(t, ctx, http.MethodPost, url, eventCall("events/stream", params),
			protocol.VersionHeader, protocol.NewEra, protocol.MethodHeader, "events/stream")
		if kind := res.Header.Get("Content-Type"); kind != "text/event-stream" {
			t.Fatalf("%d %s", res.StatusCode, kind)
		}
		lines := bufio.NewScanner(res.Body)
		return func() string {
			for lines.Scan() {
				if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
					return data
				}
			}
			return ""
		}
	}
	send := func(subject string) {
		t.Helper()
		result(t, url, "send_message", `{"project_key":"/abs/p","from_agent":"Ann","to":["Bob"],"subject":"`+subject+`","body_md":""}`)
	}
	ctx, leave := context.WithCancel(t.Context())
	next := follow(ctx, mailOfBob)
	if got := next(); !strings.Contains(got, `"method":"notifications/events/active"`) || !strings.Contains(got, `"io.modelcontextprotocol/subscriptionId":7`) {
		t.Fatalf("began: %s", got)
	}
	send("one")
	var told struct {
		Method string
		Params struct {
			Cursor string
			Data   struct{ Subject string }
		}
	}
	got := next()
	if err := json.Unmarshal([]byte(got), &told); err != nil || told.Method != "notifications/events/event" || told.Params.Data.Subject != "one" {
		t.Fatalf("told: %s (%v)", got, err)
	}
	leave()
	await(t, func() bool { return s.streams.used.Load() == 0 })
	send("two")
	next = follow(t.Context(), mailOfBob+`,"cursor":"`+told.Params.Cursor+`"`)
	for _, want := range []string{"active", `"subject":"two"`} {
		if got := next(); !strings.Contains(got, want) {
			t.Errorf("told %s, want %s", got, want)
		}
	}
	s.end()
	if got := next(); !strings.Contains(got, `"resultType":"complete"`) {
		t.Errorf("at the end: %s", got)
	}
	for head, params := range map[string]string{"events/stream": `"name":"email.sent"`, "events/poll": mailOfBob} {
		res, body := request(t, url, modern+head, eventCall("events/stream", params))
		if res.StatusCode != http.StatusBadRequest || !strings.Contains(body, `"error":{"code":-3202`) {
			t.Errorf("%s %s: %d %s", head, params, res.StatusCode, body)
		}
	}
}
