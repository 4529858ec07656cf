package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/fixtures/waits"

	"mailtree/mcp/protocol"
)

func TestMain(m *testing.M) {
	if os.Getenv(askEnv) != "" {
		askAsGuest()
		os.Exit(0)
	}
	if err := storetest.Isolate(os.Setenv); err != nil {
		panic(err)
	}
	waits.Tune()
	os.Exit(m.Run())
}

// result calls a tool with a bare POST, like a Python client without a session, and returns the result.
func result(t *testing.T, url, tool, args string) map[string]any {
	t.Helper()
	return answerOf(t, url, "user-agent: test", tool, args)
}

// answerOf is like result, but sends an additional header.
func answerOf(t *testing.T, url, header, tool, args string) map[string]any {
	t.Helper()
	_, body := request(t, url, "POST /mcp/\ncontent-type: application/json\n"+header, `{"jsonrpc": "2.0", "id": "1", "method": "tools/call", "params": {"name": "`+tool+`", "arguments": `+args+`}}`)
	var answer struct {
		Result map[string]any
		Error  any
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.Error != nil || answer.Result["isError"] != nil {
		t.Fatalf("%s %s: %s (%v)", tool, args, body, err)
	}
	return answer.Result
}

// TestSeed checks that calls work in exactly the form in which a client without sessions writes them.
func TestSeed(t *testing.T) {
	t.Parallel()
	_, url := serve(t, Config{Store: storetest.Open(t, storetest.Config{}).Store})
	profile := result(t, url, "create_agent", `{"project_key": "/abs/path/backend", "program": "codex-cli", "model": "gpt5-codex", "task_description": "Auth refactor"}`)
	name, _ := profile["name"].(string)
	_, body := request(t, url, "POST /mcp/\ncontent-type: application/json", `{"jsonrpc":"2.0","id":"2","method":"resources/read","params":{"uri": "resource://inbox/`+name+`?project=/abs/path/backend&limit=5"}}`)
	if !strings.Contains(body, `\"agent\":\"`+name+`\",\"messages\":[]`) || name == "" {
		t.Errorf("inbox of %q: %s", name, body)
	}
	for _, n := range []string{"GreenCastle", "BlueLake"} {
		result(t, url, "create_agent", `{"project_key": "/abs/path/backend", "program": "x", "model": "y", "task_description": "z", "name_hint": "`+n+`"}`)
	}
	claimed := result(t, url, "claim_paths", `{"project_key":"/abs/path/backend","agent_name":"GreenCastle","paths_list":["app/api/*.py"],"ttl_seconds":7200,"exclusive":true,"reason":"migrations"}`)
	if granted, _ := claimed["granted"].([]any); len(granted) != 1 {
		t.Errorf("claim: %v", claimed)
	}
	sent := result(t, url, "send_message", `{"project_key":"/abs/path/backend","from_agent":"GreenCastle","to":["BlueLake"],"subject":"Plan for /api/users",`+
		`"body_md":"Here is the flow...\n\n![diagram](docs/flow.png)","convert_images":true,"image_embed_policy":"auto","inline_max_bytes":32768}`)
	if notes, _ := sent["notes"].([]any); len(notes) != 1 {
		t.Errorf("sent: %v", sent)
	}
	box := result(t, url, "check_my_messages", `{"project_key":"/abs/path/backend","agent_name":"BlueLake","include_bodies":true}`)
	if l, _ := box["messages"].([]any); len(l) != 1 || l[0].(map[string]any)["id"] != sent["id"] || l[0].(map[string]any)["body_md"] != "Here is the flow...\n\n![diagram](docs/flow.png)" {
		t.Errorf("inbox: %v", box)
	}
	reply := result(t, url, "reply_message", `{"project_key":"/abs/path/backend","from_agent":"BlueLake","reply_to_message_id":"`+sent["id"].(string)+`","body_md":"Questions: ..."}`)
	if reply["thread_id"] != sent["id"] || reply["subject"] != "Re: Plan for /api/users" {
		t.Errorf("reply: %v", reply)
	}
	if s := result(t, url, "summarize_thread", `{"project_key":"/abs/path/backend","thread_id":"`+sent["id"].(string)+`","include_examples":true}`); s["messages"] != 2.0 {
		t.Errorf("summary: %v", s)
	}
}

// TestRun checks that a subscriber is notified about another client's changes, even in a project that is created later.
// When Run's context is done, the stream and a long poll must end too.
func TestRun(t *testing.T) {
	t.Parallel()
	s, url := serve(t, Config{Store: storetest.Open(t, storetest.Config{}).Store})
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	id := begin(t, url)
	r := bufio.NewReader(open(t, t.Context(), http.MethodGet, url, "", protocol.SessionHeader, id).Body)
	request(t, url, inSession(id), `{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"resource://inbox/Ann?project=/abs/new"}}`)
	result(t, url, "create_agent", `{"project_key":"/abs/new","program":"x","model":"y","task_description":"z","name_hint":"Ann"}`)
	heard := make(chan string, 100)
	go func() {
		defer close(heard)
		for line, err := r.ReadString('\n'); err == nil; line, err = r.ReadString('\n') {
			if strings.HasPrefix(line, "data: ") {
				heard <- line
			}
		}
	}()
	await(t, func() bool { // repeat the change, because Run may not be watching yet
		result(t, url, "send_message", `{"project_key":"/abs/new","from_agent":"Ann","to":["Ann"],"subject":"s","body_md":""}`)
		return len(heard) > 0
	})
	if got := <-heard; !strings.Contains(got, `"uri":"resource://inbox/Ann?project=/abs/new"`) {
		t.Errorf("heard %s", got)
	}
	polled := make(chan string)
	go func() {
		_, body := request(t, url, inSession(id), `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"check_my_messages","arguments":{"project_key":"/abs/new","agent_name":"Ann","since_ts":"9000-01-01T00:00:00Z","wait_seconds":50}}}`)
		polled <- body
	}()
	await(t, func() bool { return s.Usage() == Usage{Streams: 2, Waiting: 1, Sessions: 1} }) // the stream and the waiting call
	stop()
	if err := <-ran; err != nil {
		t.Errorf("Run: %v", err)
	}
	if body := <-polled; !strings.Contains(body, `"messages":[]`) { // the same response as after a timeout
		t.Errorf("long poll: %s", body)
	}
	for range heard { // read until the stream ends
	}
	await(t, func() bool { return s.Usage() == Usage{Sessions: 1} })
}

// TestListResources checks that resources/list lists the skill, the inboxes of the most recently active agents and the
// newest threads, and that all of them can be read.
func TestListResources(t *testing.T) {
	t.Parallel()
	_, url := serve(t, Config{Store: storetest.Open(t, storetest.Config{NoWatcher: true}).Store})
	list := func() (uris, titles []string) {
		_, body := request(t, url, post, `{"jsonrpc":"2.0","id":1,"method":"resources/list"}`)
		var answer struct {
			Result struct{ Resources []struct{ URI, Title string } }
		}
		if err := json.Unmarshal([]byte(body), &answer); err != nil || !strings.Contains(body, `"resources":[`) {
			t.Fatalf("%s (%v)", body, err)
		}
		for _, r := range answer.Result.Resources {
			uris, titles = append(uris, r.URI), append(titles, r.Title)
		}
		return uris, titles
	}
	const skill = "skill://mailtree/SKILL.md"
	if uris, _ := list(); !slices.Equal(uris, []string{skill}) {
		t.Errorf("an empty store: %v", uris)
	}
	slug := ""
	for _, n := range []string{"Ann", "Bob", "Cid"} {
		made := result(t, url, "create_agent", `{"project_key":"/abs/p","program":"x","model":"y","task_description":"z","name_hint":"`+n+`"}`)
		slug, _ = made["project"].(string)
	}
	send := func(from, subject, more string) string {
		sent := result(t, url, "send_message", `{"project_key":"/abs/p","from_agent":"`+from+`","to":["Cid"],"subject":"`+subject+`","body_md":""`+more+`}`)
		id, _ := sent["id"].(string)
		return id
	}
	first := send("Bob", "One", "")
	send("Bob", "Two", `,"thread_id":"TKT-1"`)
	send("Ann", "Three", `,"thread_id":"TKT-1"`)
	uris, titles := list()
	want := []string{"inbox/Ann", "inbox/Bob", "inbox/Cid", "thread/TKT-1", "thread/" + first}
	for i := range want {
		want[i] = "resource://" + want[i] + "?project=" + slug
	}
	want = append([]string{skill}, want...)
	if !slices.Equal(uris, want) {
		t.Errorf("listed\n %v, want\n %v", uris, want)
	}
	if want := []string{"How to work with mail and claims", "Inbox of Ann", "Inbox of Bob", "Inbox of Cid", "Three", "One"}; !slices.Equal(titles, want) {
		t.Errorf("titles %q, want %q", titles, want)
	}
	for _, uri := range uris {
		_, body := request(t, url, post, `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"`+uri+`"}}`)
		if !strings.Contains(body, `"contents":[`) {
			t.Errorf("%s: %s", uri, body)
		}
	}
}
