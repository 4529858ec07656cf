package stdio

import (
	"bufio"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// TestEOF checks that requests that are in progress when the input ends are still answered. From then on, a client's
// calls must neither wait for mail nor receive any. Piped calls must still wait.
func TestEOF(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		hello []string
		meta  string
		waits bool
		batch bool
	}{
		"script": {waits: true}, "session": {hello: []string{hello, ready}}, "no session": {meta: "," + meta},
		"batch": {hello: []string{strings.Replace(hello, "2025-06-18", "2025-03-26", 1), ready}, batch: true},
	} {
		w := newWorld(t)
		c := w.bridge()
		c.send(tt.hello...)
		wait, id := call("1", "check_my_messages", `{"project_key":"/p","agent_name":"Ann","unread_only":true,"mark_read":true,"wait_seconds":50}`, tt.meta), `"id":1`
		if tt.batch {
			wait, id = "["+wait+"]", `"id":null`
		}
		c.send(wait)
		c.send(call("2", "whois", `{"project_key":"/p","agent_name":"Ann"}`, tt.meta))
		c.hear(`"id":2`) // the long poll must not delay other calls
		ended := make(chan error, 1)
		go func() { ended <- c.finish() }()
		if !tt.waits {
			c.hear(id, "the input has ended")
			if err := <-ended; err != nil {
				t.Errorf("%s: %v", name, err)
			}
			await(t, func() bool { return w.posts.Load() == 0 }) // the server has seen the bridge exit
		}
		if _, err := w.project().Box("Ann", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"Ann"}, Subject: "at last"}); err != nil {
			t.Fatal(err)
		}
		if tt.waits {
			c.hear(`"id":1`, "at last")
			if err := <-ended; err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if page, err := w.project().Box("Ann", format.Origin{}).Inbox(t.Context(), index.InboxQuery{Limit: 10}, false, maildir.Waiting{}); err != nil || page.Unread != 1 {
			t.Errorf("%s: %d unread, %v", name, page.Unread, err)
		}
	}
}

// TestUnread checks that the bridge cancels the requests in progress and exits when no process reads its output
// anymore, whether or not the input has ended.
func TestUnread(t *testing.T) {
	t.Parallel()
	wait := call("1", "check_my_messages", `{"project_key":"/p","agent_name":"Ann","unread_only":true,"wait_seconds":50,"mark_read":true}`, "")
	for name, tt := range map[string]struct {
		lines []string
		ends  bool // whether the input ends
	}{
		"ended": {[]string{wait}, true}, "open": {[]string{wait}, false},
		"a batch": {[]string{strings.Replace(hello, "2025-06-18", "2025-03-26", 1), ready, "[" + wait + "]"}, false},
	} {
		w := newWorld(t)
		r, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		c := w.bridge(func(cfg *Config) { cfg.Out = out })
		c.send(tt.lines...)
		if len(tt.lines) > 1 { // wait until the handshake has been answered and the batch has reached the server
			if _, err := bufio.NewReader(r).ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		await(t, func() bool { return w.posts.Load() > 0 }) // the server has the request
		r.Close()
		if tt.ends {
			c.in.Close()
		}
		select {
		case err := <-c.done:
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: the bridge keeps running", name)
		}
		await(t, func() bool { return w.posts.Load() == 0 })
		if _, err := w.project().Box("Ann", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"Ann"}, Subject: "s"}); err != nil {
			t.Fatal(err)
		}
		if page, err := w.project().Box("Ann", format.Origin{}).Inbox(t.Context(), index.InboxQuery{Limit: 10}, false, maildir.Waiting{}); err != nil || page.Unread != 1 {
			t.Errorf("%s: %d unread, %v", name, page.Unread, err)
		}
	}
}

// TestLines checks the response to each line, the order of the responses, and the error that the bridge returns at the
// end.
func TestLines(t *testing.T) {
	t.Parallel()
	whois := call("7", "whois", `{"project_key":"/p","agent_name":"Ann"}`, "")
	for _, tt := range []struct {
		name, in string
		want     []string // a string that each line of the output must contain
		bad      string   // text that the error must contain
	}{
		{"nothing", "", nil, ""},
		{"blank lines and CRLF", "\n\r\n  \n" + whois + "\r\n", []string{`"id":7,"result"`}, ""},
		{"no newline at the end", whois, []string{`"id":7,"result"`}, ""},
		{"no JSON", "garbage\n" + whois + "\n", []string{`"code":-32700`, `"id":7,"result"`}, "are not JSON-RPC messages (count: 1)."},
		{"cut off", whois + "\n" + whois[:40], []string{`"id":7,"result"`, `-32700`}, "are not JSON-RPC messages (count: 1)."},
		{"a message on two lines", "{\n}\n", []string{`-32700`, `-32700`}, "are not JSON-RPC messages (count: 2)."},
		{"no UTF-8", "{\"method\":\"ping\xff\"}\n", []string{`-32700,"message":"the line is not valid UTF-8`}, "are not JSON-RPC messages (count: 1)."},
		{"no message", "7\n\"x\"\nnull\n" + `{"method":7}` + "\n", []string{`-32600`, `-32600`, `-32600`, `-32600`}, "are not JSON-RPC messages (count: 4)."},
		{"none of a message's fields", "{}\n[]\n[7]\n[{}]\n" + `{"id":null,"params":{}}` + "\n" + whois + "\n", []string{`-32600`, `-32600`, `-32600`, `-32600`, `-32600`, `"id":7,"result"`}, "are not JSON-RPC messages (count: 5)."},
		{"too long", strings.Repeat("x", 3000) + "\n" + whois + "\n", []string{`"code":-32600,"message":"the line is longer than 2000 bytes`, `"id":7,"result"`}, "are not JSON-RPC messages (count: 1)."},
		{"too long, without an end", strings.Repeat("x", 3000), []string{`longer than 2000`}, "are not JSON-RPC messages (count: 1)."},
		{"just short enough", strings.Repeat(" ", 2000-len(whois)) + whois + "\n", []string{`"id":7,"result"`}, ""},
		{"a bare call", `{"method":"tools/call","params":{"name":"whois","arguments":{"project_key":"/p","agent_name":"Ann"}}}` + "\n", []string{`"id":1`}, ""},
		{"unknown method", `{"jsonrpc":"2.0","id":5,"method":"nothing/here"}` + "\n", []string{`-32601`}, ""},
		{"unknown revision", `{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01"}}}` + "\n", []string{`"id":5`}, ""},
		{"a notification", ready + "\n" + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}` + "\n", nil, ""},
		{"a batch", strings.Replace(hello, "2025-06-18", "2025-03-26", 1) + "\n" + `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]` + "\n", []string{`"id":"hi"`, `[{`}, ""},
		{"in order", call("1", "send_message", toAnn, "") + "\n" + call("2", "check_my_messages", `{"project_key":"/p","agent_name":"Ann"}`, "") + "\n", []string{`"id":1`, `"total":1`}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.bridge(func(cfg *Config) { cfg.MaxLine, cfg.inOrder = 2000, time.Minute }) // allow for slow responses
			if _, err := io.WriteString(c.in, tt.in); err != nil {
				t.Fatal(err)
			}
			err := c.finish()
			if (err != nil) != (tt.bad != "") || err != nil && !strings.Contains(err.Error(), tt.bad) {
				t.Errorf("ended with %v, want %q", err, tt.bad)
			}
			var got []string
			for l := range c.out {
				got = append(got, l)
			}
			for i := range max(len(got), len(tt.want)) {
				if i >= len(got) || i >= len(tt.want) || !strings.Contains(got[i], tt.want[i]) {
					t.Fatalf("got %q\nwant %q", got, tt.want)
				}
			}
		})
	}
}
