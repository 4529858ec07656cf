package stdio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"mailtree/fixtures/waits"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/mcp/protocol"
)

// TestAnsweredAtTheEnd checks that a client can subscribe even if a server answers initialize or resources/subscribe
// only while it is stopping, after the bridge has connected to the next server. The subscription must work on the next
// server.
func TestAnsweredAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"initialize", "resources/subscribe"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			log := &waits.Log{}
			c := w.bridge(func(cfg *Config) { cfg.Log = slog.New(slog.NewTextHandler(log, nil)) })
			await(t, func() bool { return w.holds.Load() == 1 })
			w.late.Store(method)
			over := make(chan struct{})
			go func() {
				defer close(over)
				await(t, func() bool { return w.late.Load() == "" })
				var ended sync.WaitGroup
				ended.Go(w.stop) // stop waits for the response
				await(t, func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.server == nil })
				await(t, func() bool { _, err := os.Lstat(w.path); return err != nil })
				w.start()
				await(t, func() bool { return w.holds.Load() >= 2 })
				await(t, func() bool { return strings.Contains(log.String(), "connected again") })
				close(w.freed)
				ended.Wait()
			}()
			c.send(hello)
			c.hear(`"id":"hi"`, `"protocolVersion":"2025-06-18"`)
			c.send(ready, `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"`+inbox+`"}}`)
			c.hear(`"id":1`, `"result":{}`)
			<-over
			c.send(call("2", "send_message", toAnn, ""))
			c.hear(update, inbox)
			if err := c.finish(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestStreamOpens checks that a client is notified about every change after the response to its subscription.
func TestStreamOpens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.slow.Store(true)
	c := w.bridge()
	c.send(hello, ready, `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"`+inbox+`"}}`)
	c.hear(`"id":1`, `"result":{}`)
	for range 2 {
		c.send(call("2", "send_message", toAnn, ""))
		c.hear(update, inbox)
		w.kill()
		w.start()
		c.hear(update, inbox) // notifies the client that the resource may have changed meanwhile
		drain(c.out)
	}
	if err := c.finish(); err != nil {
		t.Error(err)
	}
}

// TestEndWhileStreamOpens checks that a bridge that is told to exit does not wait for a server that accepts a
// connection but never answers.
func TestEndWhileStreamOpens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mute.Store(true)
	inR, inW := io.Pipe()
	defer inW.Close()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, Config{In: inR, Out: io.Discard, Toolset: "mail", Dial: w.dial, Patience: time.Millisecond})
	}()
	subscribe := `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"` + inbox + `"}}`
	if _, err := io.WriteString(inW, hello+"\n"+ready+"\n"+subscribe+"\n"); err != nil {
		t.Fatal(err)
	}
	await(t, func() bool { return w.muted.Load() > 0 })
	end()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the bridge is waiting for the stream")
		w.kill()
	}
}

// TestListen checks that a subscription of the newer era continues on the next server. The client must be notified only
// once that the subscription has begun, and never that it has ended.
func TestListen(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(w *world){"stopped": (*world).stop, "killed": (*world).kill} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.bridge()
			c.send(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + meta + `}}`)
			c.hear(`"id":1`, `"supportedVersions"`)
			c.send(`{"jsonrpc":"2.0","id":"sub","method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["` + inbox + `"]},` + meta + `}}`)
			c.hear(`"method":"notifications/subscriptions/acknowledged"`)
			for range 2 {
				for found := false; !found; {
					c.send(call("2", "send_message", toAnn, ","+meta))
					_, before := c.hear(`"id":2,"result"`)
					for _, l := range append(before, drain(c.out)...) {
						found = found || strings.Contains(l, update) && strings.Contains(l, `"io.modelcontextprotocol/subscriptionId":"sub"`)
					}
				}
				drain(c.out)
				end(w)
				w.start()
				if _, before := c.hear(update, inbox, `"io.modelcontextprotocol/subscriptionId":"sub"`); strings.Contains(strings.Join(before, ""), "acknowledged") {
					t.Errorf("the subscription began twice: %q", before)
				}
			}
			c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"sub"}}`)
			if err := c.finish(); err != nil {
				t.Error(err)
			}
			for l := range c.out {
				if strings.Contains(l, `"id":"sub"`) {
					t.Errorf("the client saw the end of the subscription: %s", l)
				}
			}
		})
	}
}

// TestListenToNothing checks that a subscription to something that the server does not report is answered immediately,
// and that the bridge keeps its link to the server.
func TestListenToNothing(t *testing.T) {
	t.Parallel()
	for _, want := range []string{`{}`, `{"toolsListChanged":true}`} {
		w := newWorld(t)
		c := w.bridge()
		c.send(`{"jsonrpc":"2.0","id":"sub","method":"subscriptions/listen","params":{"notifications":` + want + `,` + meta + `}}`)
		c.hear(`"method":"notifications/subscriptions/acknowledged"`)
		c.hear(`"id":"sub","result"`)
		if err := c.finish(); err != nil {
			t.Error(err)
		}
		if got := w.holds.Load(); got != 1 {
			t.Errorf("the bridge started again %d times", got-1)
		}
	}
}

// TestLostAnswer checks what happens if the server handles a call but dies before it answers, and if the next server
// dies in the same way. The bridge must repeat a call that only reads. For other calls, the error must say that the
// outcome is unknown. No operation may be performed twice.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, line, want string }{
		{"a tool that reads", call("7", "whois", `{"project_key":"/p","agent_name":"Ann"}`, ""), `"name":"Ann"`},
		{"a tool that writes", call("7", "send_message", toAnn, ""), `"isError":true`},
		{"a tool that writes, in the newer era", call("7", "send_message", toAnn, ","+meta), `"resultType":"complete"`},
		{"a resource", `{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"` + inbox + `"}}`, `"contents"`},
		{"the handshake", strings.Replace(hello, `"hi"`, "7", 1), `"protocolVersion":"2025-06-18"`},
	} {
		for _, session := range []bool{false, true} {
			for _, deaths := range []int32{1, 2} {
				t.Run(fmt.Sprintf("%s, session=%v, deaths=%d", tt.name, session, deaths), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t)
					c := w.bridge()
					if session {
						c.send(hello, ready)
						c.hear(`"id":"hi"`)
					}
					c.send(call("1", "whois", `{"project_key":"/p","agent_name":"Ann"}`, ""))
					c.hear(`"id":1`, `"name":"Ann"`)
					w.cut.Store(deaths)
					c.send(tt.line)
					line, _ := c.hear(`"id":7`, tt.want)
					writes := strings.Contains(tt.name, "writes")
					if strings.Contains(line, "the outcome is unknown") != writes {
						t.Error(line)
					}
					page, err := w.project().Box("Ann", format.Origin{}).Inbox(t.Context(), index.InboxQuery{Limit: 10}, false, maildir.Waiting{})
					if err != nil || (page.Total == 1) != writes {
						t.Errorf("%d messages, %v", page.Total, err)
					}
					if err := c.finish(); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}

// TestNotReached checks that a call that has not reached any server is sent once to the next server, even if the call
// writes.
func TestNotReached(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.bridge()
	for i := range 5 {
		c.send(call("1", "send_message", toAnn, ""))
		if line, _ := c.hear(`"id":1`); strings.Contains(line, `"isError":true`) {
			t.Errorf("%d: %s", i, line)
		}
		w.kill()
		await(t, func() bool { _, err := os.Lstat(w.path); return err != nil })
	}
	if page, err := w.project().Box("Ann", format.Origin{}).Inbox(t.Context(), index.InboxQuery{Limit: 10}, false, maildir.Waiting{}); err != nil || page.Total != 5 || w.started() != 5 {
		t.Errorf("%d messages, %d servers, %v", page.Total, w.started(), err)
	}
}

// TestCancel checks that a request ends when the client cancels it, in both protocol eras.
func TestCancel(t *testing.T) {
	t.Parallel()
	for _, session := range []bool{false, true} {
		w := newWorld(t)
		c := w.bridge()
		m := "," + meta
		if session {
			m = ""
			c.send(hello, ready)
		}
		c.send(call("1", "check_my_messages", `{"project_key":"/p","agent_name":"Ann","unread_only":true,"wait_seconds":50}`, m))
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		if err := c.finish(); err != nil { // finish would wait for a call that is still in progress
			t.Error(err)
		}
	}
}

// TestRefused checks that if a server refuses the bridge, the bridge reports the reason and does not try another
// server.
func TestRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.bridge(func(cfg *Config) { cfg.Toolset = "nobody" })
	if err := <-c.done; err == nil || !strings.Contains(err.Error(), `unknown toolset "nobody": use mail`) || w.started() != 1 {
		t.Errorf("%v, %d servers", err, w.started())
	}
	c = w.bridge(func(cfg *Config) {
		cfg.Dial = func(context.Context, bool) (net.Conn, error) { return nil, errors.New("no server is running") }
	})
	if err := <-c.done; err == nil || err.Error() != "no server is running" {
		t.Error(err)
	}
}

func TestParse(t *testing.T) {
	for line, want := range map[string]message{
		`{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"wait_seconds":50}}}`:                    {method: "tools/call", tool: "t", waits: true},
		`{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"wait_seconds":"5"}}}`:                   {method: "tools/call", tool: "t", waits: true},
		`{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"wait_reply_seconds":5}}}`:               {method: "tools/call", tool: "t", waits: true},
		`{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"wait_seconds":0}}}`:                     {method: "tools/call", tool: "t"},
		`{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"wait_seconds":null}}}`:                  {method: "tools/call", tool: "t"},
		`{"id":1,"method":"tools/call","params":{"name":"t","arguments":7}}`:                                      {method: "tools/call", tool: "t"},
		`{"id":null,"method":"ping","params":[]}`:                                                                 {method: "ping"},
		`{"id":1,"method":"server/discover"}`:                                                                     {method: "server/discover", version: protocol.NewEra},
		`{"id":1,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`:    {method: "ping", version: protocol.NewEra},
		`{"method":"notifications/cancelled","params":{"requestId":"x"}}`:                                         {method: "notifications/cancelled", cancels: `"x"`},
		`{"id":1,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["a","b"]}}}`: {method: "subscriptions/listen", uris: []string{"a", "b"}},
		`{"id":1,"method":"resources/subscribe","params":{"uri":"a"}}`:                                            {method: "resources/subscribe", uris: []string{"a"}},
		`{"id":1,"result":{}}`: {},
	} {
		m, _, err := parse([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		m.raw, m.id = nil, nil
		if !reflect.DeepEqual(*m, want) {
			t.Errorf("%s: %+v, want %+v", line, *m, want)
		}
	}
}

func TestTooMany(t *testing.T) {
	var out strings.Builder
	b := &bridge{cfg: Config{Out: &out}, under: map[*message]context.CancelCauseFunc{}}
	for range maxUnderWay {
		if ctx, _ := b.beginCall(t.Context(), &message{}); ctx == nil {
			t.Fatal("refused")
		}
	}
	if ctx, _ := b.beginCall(t.Context(), &message{id: []byte("7"), method: "ping"}); ctx != nil || !strings.Contains(out.String(), `"code":-32000`) {
		t.Errorf("one too many: %s", out.String())
	}
}

// TestProgress checks that a call with a progress token may wait for a long time. Meanwhile, the client must get
// notifications, and then the response exactly once.
func TestProgress(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		first []string
		meta  string
	}{
		"session":   {[]string{hello, ready}, `,"_meta":{"progressToken":9}`},
		"stateless": {nil, "," + strings.Replace(meta, "{", `{"progressToken":9,`, 1)},
	} {
		w := newWorld(t)
		c := w.bridge()
		c.send(tt.first...)
		c.send(call("1", "check_my_messages", `{"project_key":"/p","agent_name":"Ann","unread_only":true,"wait_seconds":3600}`, tt.meta))
		c.hear(`"notifications/progress"`, `"progressToken":9`)
		c.hear(`"notifications/progress"`)
		c.send(call("2", "send_message", toAnn, strings.Replace(tt.meta, `"progressToken":9,`, "", 1)))
		c.hear(`"id":1`, `"subject":"s"`)
		if err := c.finish(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for l := range c.out {
			if strings.Contains(l, `"id":1,`) {
				t.Errorf("%s: answered twice: %s", name, l)
			}
		}
	}
}
