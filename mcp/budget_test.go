package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/mcp/protocol"
	"mailtree/mcp/tool"
)

// answered contains the parts of a response that the tests check.
type answered struct {
	Result struct {
		Content  []struct{ Text string }
		Contents []struct{ Text string }
		Value    map[string]any `json:"structuredContent"`
		IsError  bool
	}
	Error map[string]any
}

// TestBudget runs all checks of sizes on one store, because creating this store takes a while.
func TestBudget(t *testing.T) {
	t.Parallel()
	c := newCrowd(t)
	c.serve(t, 256<<10)
	t.Run("lists go on", c.listsGoOn)
	c.serve(t, 1<<20)
	t.Run("answers are bounded by 1 MiB", func(t *testing.T) { c.answersAreBounded(t, 1<<20) })
	c.serve(t, 256<<10)
	t.Run("answers are bounded by 256 KiB", func(t *testing.T) { c.answersAreBounded(t, 256<<10) })
}

// answersAreBounded checks that no tool or resource of any toolset returns more than the budget, whatever the store
// contains. No call may be refused because of the budget. An incomplete response must say how to continue.
func (c *crowd) answersAreBounded(t *testing.T, budget int) {
	mail := func(more ...any) map[string]any {
		args := map[string]any{"project_key": crowded, "agent_name": "Bob"}
		for i := 0; i < len(more); i += 2 {
			args[more[i].(string)] = more[i+1]
		}
		return args
	}
	in := func(args map[string]any, leave ...string) map[string]any {
		for _, l := range leave {
			delete(args, l)
		}
		return args
	}
	for _, tt := range []struct {
		toolset, tool string
		args          map[string]any
		goesOn        string // the key that shows that the response, or its first message, continues; "" if the response is complete
		whole         bool   // the complete response fits within the larger budget
	}{
		{"mail", "check_my_messages", mail("limit", 200), "next_cursor", true},
		{"mail", "check_my_messages", mail("include_bodies", true, "limit", 200), "next_cursor", false},
		{"mail", "check_my_messages", mail("message_id", c.ids[1]), "messages.next_offset", false},
		{"mail", "check_my_messages", mail("message_id", c.ids[1], "body_offset", 1_999_993), "messages.body_bytes", false},
		{"mail", "search_messages", in(mail("query", "plain", "limit", 200), "agent_name"), "next_cursor", true},
		{"mail", "search_messages", in(mail("query", "plain", "limit", 200, "order", "rank"), "agent_name"), "next_cursor", true},
		{"mail", "summarize_thread", in(mail("thread_id", "S", "include_examples", true), "agent_name"), "truncated", true},
		{"mail", "list_agents", in(mail(), "agent_name"), "next_cursor", false},
		{"mail", "whois", mail("agent_name", "Ann"), "more_claims", false},
		{"mail", "claim_paths", mail("paths", []string{"d0/**", "d1/**", "d2/**", "d3/**", "d4/**", "d5/**", "d6/**", "d7/**"}), "more", false},
		{"mail", "claim_paths", mail("paths", manyPaths(), "reason", strings.Repeat("\"", 1024)), "more", false},
		{"mail", "release_claims", mail("agent_name", "Ann", "paths", patterns(budget>>18)), "count", false},
		{"mail", "acknowledge_message", mail("message_id", c.ids[1]), "", false},
		{"mail", "send_message", in(mail("from_agent", "Ann", "to", []string{"Bob"}, "subject", "s", "body_md", hostileText(500_000)), "agent_name"), "", false},
		{"mail", "reply_message", in(mail("from_agent", "Ann", "reply_to_message_id", c.ids[1], "body_md", "b"), "agent_name"), "", false},
		{"agentmail", "list-recipients", map[string]any{}, "", false},
		{"aimx", "mailbox_list", map[string]any{}, "next_offset", true},
		{"aimx", "email_list", map[string]any{"mailbox": "Bob", "limit": 200}, "next_offset", true},
		{"aimx", "email_read", map[string]any{"mailbox": "Bob", "id": c.ids[1]}, "next_offset", false},
		{"aimx", "hook_list", map[string]any{}, "next_offset", false},
		{"postal", "check_mail", map[string]any{}, "content", false},
		{"agentmail", "receive", map[string]any{}, "message", false},
	} {
		data := c.ask(t, tt.toolset, "Bob", "tools/call", map[string]any{"name": tt.tool, "arguments": tt.args})
		var a answered
		if err := json.Unmarshal(data, &a); err != nil || a.Error != nil || a.Result.IsError || len(data) > budget {
			t.Errorf("%s: %d bytes, %v: %.300s", tt.tool, len(data), err, data)
			continue
		}
		v := a.Result.Value
		key, inMessage := strings.CutPrefix(tt.goesOn, "messages.")
		if inMessage {
			v = v["messages"].([]any)[0].(map[string]any)
		}
		if budget == 1<<20 && tt.whole {
			continue
		}
		if key != "" && v[key] == nil {
			t.Errorf("%s %v does not say that there is more: %.300s", tt.tool, tt.args, data)
		}
	}
	for _, uri := range []string{"inbox/Bob?limit=200&include_bodies=true", "inbox/Bob?limit=200", "message/" + c.ids[1], "thread/T?include_bodies=true", "thread/S"} {
		data := c.ask(t, "mail", "Bob", "resources/read", map[string]any{"uri": "resource://" + uri})
		var a answered
		if err := json.Unmarshal(data, &a); err != nil || a.Error != nil || len(data) > budget || len(a.Result.Contents) != 1 {
			t.Errorf("%s: %d bytes, %v: %.300s", uri, len(data), err, data)
		}
	}
}

// patterns returns the paths that Ann claims in the given call. She makes eight such calls.
func patterns(call int) []string {
	all := make([]string, 200)
	for i := range all {
		all[i] = fmt.Sprintf("d%d/%d/%s", call, i, strings.Repeat("\"<p", 60))
	}
	return all
}

func manyPaths() []string {
	all := make([]string, 200)
	for i := range all {
		all[i] = fmt.Sprintf("mine/%d/%s", i, strings.Repeat("\"", 200))
	}
	return all
}

// TestCutMailSaysWhere checks that if postal or agentmail truncates a message, the message ends with a line that
// contains its id and its file. Other messages must be returned unchanged. Both toolsets must mark the messages that
// they return as read.
func TestCutMailSaysWhere(t *testing.T) {
	t.Parallel()
	c := &crowd{Store: storetest.Open(t, storetest.Config{NoWatcher: true})}
	c.serve(t, 256<<10)
	p, err := c.EnsureProject(t.Context(), crowded)
	if err == nil {
		err = p.Agents.EnsureAgent(t.Context(), "Bob", maildir.Registration{})
	}
	for _, size := range []int{100, 2_000_000, 300_000, 300_000} {
		var m *maildir.Sent
		if err == nil {
			m, err = p.Box("Bob", format.Origin{}).Send(t.Context(), maildir.Draft{
				To:      []string{"Bob"},
				Subject: "s",
				Body:    hostileText(size),
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		c.ids = append(c.ids, m.ID)
	}
	for i, tt := range []struct{ toolset, tool, key string }{
		{"postal", "check_mail", "content"}, {"agentmail", "receive", "message"}, {"postal", "check_mail", "content"}, {"agentmail", "receive", "message"},
	} {
		d, err := p.Box("Bob", format.Origin{}).Delivery(t.Context(), c.ids[i])
		if err != nil {
			t.Fatal(err)
		}
		m, err := p.Message(t.Context(), c.ids[i])
		if err != nil {
			t.Fatal(err)
		}
		data := c.ask(t, tt.toolset, "Bob", "tools/call", map[string]any{"name": tt.tool, "arguments": map[string]any{}})
		var a answered
		if err := json.Unmarshal(data, &a); err != nil || len(data) > 256<<10 {
			t.Fatalf("%d bytes, %v", len(data), err)
		}
		got, _ := a.Result.Value[tt.key].(string)
		if i == 0 {
			if got != "s\n\n"+m.Body {
				t.Errorf("%q", got)
			}
			continue
		}
		line := fmt.Sprintf("\n[truncated: the full body of %s, %d bytes, is in %s]", d.ID, len(m.Body), filepath.Join(p.Dir(), d.CopyPath))
		text, cut := strings.CutSuffix(got, line)
		if !cut || !strings.HasPrefix("s\n\n"+m.Body, text) || len(text) < 20_000 {
			t.Errorf("%s: %d of %d bytes, ending %q", tt.tool, len(got), len(m.Body), got[max(0, len(got)-300):])
		}
		if d, err := p.Box("Bob", format.Origin{}).Delivery(t.Context(), c.ids[i]); err != nil || !d.Read {
			t.Errorf("%s is not marked as read: %v", c.ids[i], err)
		}
	}
}

// listsGoOn checks that the pages of a truncated list contain each item exactly once.
func (c *crowd) listsGoOn(t *testing.T) {
	for _, tt := range []struct {
		toolset, tool string
		args          map[string]any
		list, name    string // the key of the list, and the key of the field that identifies an item
		next, pass    string // the key that says where the next page begins, and the argument that requests this page
		want          int
	}{
		{"mail", "list_agents", map[string]any{"project_key": crowded}, "agents", "name", "next_cursor", "cursor", 501},
		{"mail", "check_my_messages", map[string]any{"project_key": crowded, "agent_name": "Bob", "limit": 200}, "messages", "id", "next_cursor", "cursor", 13},
		{"mail", "search_messages", map[string]any{"project_key": crowded, "query": "plain", "limit": 200}, "hits", "id", "next_cursor", "cursor", 13},
		{"mail", "search_messages", map[string]any{"project_key": crowded, "query": "plain", "limit": 200, "order": "rank"}, "hits", "id", "next_cursor", "cursor", 13},
		{"aimx", "mailbox_list", map[string]any{}, "mailboxes", "name", "next_offset", "offset", 501},
		{"aimx", "email_list", map[string]any{"mailbox": "Bob", "limit": 200}, "emails", "id", "next_offset", "offset", 13},
		{"aimx", "hook_list", map[string]any{}, "hooks", "name", "next_offset", "offset", 64},
	} {
		seen, pages := map[string]bool{}, 0
		for more := true; more && pages < 600; pages++ {
			var a answered
			params := map[string]any{"name": tt.tool, "arguments": tt.args}
			if err := json.Unmarshal(c.ask(t, tt.toolset, "Bob", "tools/call", params), &a); err != nil || a.Result.IsError {
				t.Fatalf("%s: %v %v", tt.tool, err, a.Result.Content)
			}
			for _, x := range a.Result.Value[tt.list].([]any) {
				name := x.(map[string]any)[tt.name].(string)
				if seen[name] {
					t.Errorf("%s: %s a second time", tt.tool, name)
				}
				seen[name] = true
			}
			tt.args[tt.pass] = a.Result.Value[tt.next]
			more = tt.args[tt.pass] != nil
			if said := len(a.Result.Content) == 2; tt.toolset == "aimx" && said != more {
				t.Errorf("%s: more %t, the text says so: %t", tt.tool, more, said)
			}
		}
		if len(seen) != tt.want || pages < 2 {
			t.Errorf("%s: %d of %d on %d pages", tt.tool, len(seen), tt.want, pages)
		}
	}
}

type textShape struct {
	Text string `json:"text"`
}

// TestSizes checks that the computed size of a response equals its size on the wire, apart from the framing. It uses
// bare POSTs, because their responses are the largest.
func TestSizes(t *testing.T) {
	t.Parallel()
	var text string
	set := tool.NewSet(tool.Config{Budget: 64 << 20}, tool.About{Name: "echo"}, tool.Tool{Name: "echo", Out: textShape{},
		Run: func(context.Context, json.RawMessage) (any, error) { return textShape{text}, nil }})
	s := New(Config{})
	s.mount(&route{name: "echo", set: set, paths: []string{"/echo"}})
	srv := httptest.NewServer(s.Handler())
	defer srv.Close()
	for _, piece := range []string{"a", " ", "\"", "\\", "/", "\n", "\r", "\t", "\b", "\f", "\x00", "\x01", "\x1f", "\x7f", "<", ">", "&", "'", "ä", "€", "😀", "\u2028", "\u2029", "\ufffd", "\xff", "\xe2\x82"} {
		text = strings.Repeat(piece, 10_000)
		data := send(t, http.DefaultClient, srv.URL+"/echo", "", []byte(`{"method":"tools/call","params":{"name":"echo"}}`))
		want := tool.InTool.Size(textShape{text})
		if around := len(data) - want; around < 0 || around > 1000 {
			t.Errorf("%q: %d bytes, counted as %d", piece, len(data), want)
		}
	}
}

// TestTooLarge checks that a call is refused if its response is too large and the tool does not shorten it. The refusal
// must say what to do.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	size := 0
	set := tool.NewSet(tool.Config{Budget: 256 << 10}, tool.About{Name: "big"}, tool.Tool{Name: "big", Out: textShape{},
		Run: func(context.Context, json.RawMessage) (any, error) {
			return textShape{strings.Repeat("x", size)}, nil
		}})
	s := New(Config{})
	s.mount(&route{name: "big", set: set, paths: []string{"/big"}})
	srv := httptest.NewServer(s.Handler())
	defer srv.Close()
	for _, tt := range []struct {
		size    int
		refused bool
	}{{80_000, false}, {100_000, true}} {
		size = tt.size
		data := send(t, http.DefaultClient, srv.URL+"/big", "", []byte(`{"method":"tools/call","params":{"name":"big"}}`))
		refused := bytes.Contains(data, []byte(`"code":"too_large"`)) && bytes.Contains(data, []byte(": request one thing at a time"))
		if refused != tt.refused || len(data) > 256<<10 {
			t.Errorf("%d bytes: refused %t with %d bytes: %.300s", tt.size, refused, len(data), data)
		}
	}
}

// TestAnswersWait checks that a large response waits for memory until other responses have been written and have
// released their memory. A call that is waiting for mail meanwhile must not use any of this memory.
func TestAnswersWait(t *testing.T) {
	t.Parallel()
	store := storetest.Open(t, storetest.Config{NoWatcher: true})
	p, err := store.EnsureProject(t.Context(), crowded)
	if err == nil {
		err = p.Agents.EnsureAgent(t.Context(), "Bob", maildir.Registration{})
	}
	if err == nil {
		_, err = p.Box("Bob", format.Origin{}).Send(t.Context(), maildir.Draft{
			To:      []string{"Bob"},
			Subject: "s",
			Body:    strings.Repeat("x", 500_000),
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	s, url := serve(t, Config{Store: store.Store})
	held, end := s.holdAnswer(httptest.NewRequest(http.MethodPost, "/mcp", nil))
	if err := tool.HoldOf(held.Context()).Reserve(t.Context(), 1<<40); err != nil {
		t.Fatal(err)
	}
	const ask = `{"method":"tools/call","params":{"name":"check_my_messages","arguments":{"project_key":"` + crowded + `","agent_name":"Bob"`
	got := make(chan []byte, 1)
	go func() { got <- send(t, http.DefaultClient, url+"/mcp", "", []byte(ask+`,"include_bodies":true}}}`)) }()
	if data := send(t, http.DefaultClient, url+"/mcp", "", []byte(ask+`}}}`)); !bytes.Contains(data, []byte(`"total":1`)) {
		t.Errorf("a small answer has to wait: %.300s", data)
	}
	select {
	case data := <-got:
		t.Errorf("a large answer does not wait: %.300s", data)
	default:
	}
	end()
	if data := <-got; !bytes.Contains(data, []byte(`"body_truncated":true`)) {
		t.Errorf("%.300s", data)
	}
	if err := s.answers.own.Hold().Reserve(t.Context(), 1<<40); err != nil {
		t.Errorf("not all memory was released: %v", err)
	}
}

// send sends a message and returns the response. The parameter hello is the header that a bridge sends, or "" for no
// header.
func send(t *testing.T, client *http.Client, url, hello string, message []byte) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if hello != "" {
		r.Header.Set(protocol.HelloHeader, hello)
	}
	res, err := client.Do(r)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return data
}
