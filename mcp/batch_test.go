package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/mcp/protocol"
)

// batchOf returns a batch of n requests that call method, with ids starting at 1.
func batchOf(n int, method string) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q}`, i+1, method))
	}
	return "[" + strings.Join(all, ",") + "]"
}

func TestBatch(t *testing.T) {
	t.Parallel()
	_, url := serve(t, Config{})
	session := inSession(begin(t, url))
	const ping, told, answered = `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":7,"result":{}}`
	for _, tt := range []struct {
		head, body string
		status     int
		want       string // the response, or its beginning and its end, separated by …
	}{
		{post, `[` + ping + `]`, 200, `[{"jsonrpc":"2.0","id":1,"result":{}}]`},
		{post, `[` + told + `,` + ping + `,` + answered + `,{"jsonrpc":"2.0","id":"b","method":"ping"}]`, 200, `[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":"b","result":{}}]`},
		{session, `[` + told + `,` + ping + `]`, 200, `[{"jsonrpc":"2.0","id":1,"result":{}}]`},
		{session + "\nMcp-Protocol-Version: 2025-03-26", `[` + ping + `]`, 200, `[{"jsonrpc":"2.0","id":1,"result":{}}]`},
		{post, `[` + told + `,` + answered + `]`, 202, ``},
		{session, `[` + told + `]`, 202, ``},
		// If one message fails, its error is the response to that message.
		{post, `[{"jsonrpc":"2.0","id":5,"method":"nothing/here"},` + ping + `]`, 200, `[{"error":{"code":-32601,"message":"method not found: … },{"jsonrpc":"2.0","id":1,"result":{}}]`},
		{session, `[` + ping + `,{"jsonrpc":"2.0","id":5,"method":"nothing/here"}]`, 200, `[{"jsonrpc":"2.0","id":1,"result":{}},{"error":{"code":-32601, … "id":5,"jsonrpc":"2.0"}]`},
		{post, `[{"jsonrpc":"2.0","method":"ping"},` + ping + `]`, 200, `[{"error":{"code":-32600, … "id":null,"jsonrpc":"2.0"},{"jsonrpc":"2.0","id":1,"result":{}}]`},
		// If all messages fail, the error is the response to the request.
		{strings.Replace(session, protocol.SessionHeader+": ", protocol.SessionHeader+": gone", 1), `[` + ping + `]`, 404, `{"error":{"code":-32600,"message":"session not found"},"id":null,"jsonrpc":"2.0"}`},
		{post + "\nMcp-Protocol-Version: 2025-06-18", `[` + ping + `]`, 400, `{"error":{"code":-32600,"message":"JSON-RPC batching is not supported … `},
		{post + "\nMcp-Protocol-Version: 2026-07-28", `[` + ping + `]`, 400, `{"error":{"code":-32600,"message":"JSON-RPC batching is not supported … `},
		{session + "\nMcp-Protocol-Version: 2025-06-18", `[` + ping + `]`, 400, `{"error":{"code":-32600,"message":"JSON-RPC batching is not supported … `},
		{strings.Replace(post, "application/json", "text/plain", 1), `[` + ping + `]`, 415, `{"error":{"code":-32600, … `},
		{post, `[` + ping + `,7]`, 400, `{"error":{"code":-32600,"message":"a batch must contain only JSON-RPC messages, which are JSON objects"},"id":null,"jsonrpc":"2.0"}`},
		{post, `[` + ping + `,{"jsonrpc":"2.0","id":[],"method":"ping"}]`, 400, `{"error":{"code":-32600,"message":"the id of a JSON-RPC message must be a string or a number"},"id":null,"jsonrpc":"2.0"}`},
		{post, `[` + ping + `,` + initialize + `]`, 400, `{"error":{"code":-32600,"message":"initialize must not be part of a batch: send it separately"},"id":null,"jsonrpc":"2.0"}`},
		{post, `[{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen"}]`, 400, `{"error":{"code":-32600,"message":"subscriptions/listen must not be part of a batch: send it separately"},"id":null,"jsonrpc":"2.0"}`},
		{post, batchOf(maxBatch, "ping"), 200, `[{"jsonrpc":"2.0","id":1, … "id":64,"result":{}}]`},
		{post, batchOf(maxBatch+1, "ping"), 400, `{"error":{"code":-32600,"message":"the batch has more than 64 messages: split it into several batches"},"id":null,"jsonrpc":"2.0"}`},
	} {
		res, body := request(t, url, tt.head+"\nAccept: "+protocol.AcceptBoth, tt.body)
		first, last, open := strings.Cut(tt.want, " … ")
		if res.StatusCode != tt.status || !strings.HasPrefix(body, first) || !strings.HasSuffix(body, last) || !open && body != tt.want {
			t.Errorf("%q %s:\n got %d %s\nwant %d %s", tt.head, tt.body, res.StatusCode, body, tt.status, tt.want)
		}
		if kind := res.Header.Get("Content-Type"); tt.status == 202 && kind != "" || tt.status != 202 && (kind != "application/json" || !json.Valid([]byte(body))) {
			t.Errorf("%q %s: %q %s", tt.head, tt.body, kind, body)
		}
	}
}

// addMethod adds a method to the mail toolset.
func addMethod(t *testing.T, s *Server, name string, do func(context.Context) *blockResult) {
	t.Helper()
	err := mcp.AddReceivingCustomMethod(s.door("mail").set.Server(), name, func(ctx context.Context, _ *mcp.ServerSession, _ *blockParams) (*blockResult, error) {
		return do(ctx), nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestBatchInTurn checks that the messages of a batch are handled one after another. This is why a batch counts as one
// request.
func TestBatchInTurn(t *testing.T) {
	t.Parallel()
	s, url := serve(t, Config{MaxRequests: 1})
	var running, done, most atomic.Int64
	addMethod(t, s, "test/turn", func(context.Context) *blockResult {
		n := running.Add(1)
		defer running.Add(-1)
		for range 1000 {
			runtime.Gosched()
		}
		most.Store(max(most.Load(), n, running.Load()))
		done.Add(1)
		return &blockResult{}
	})
	for _, head := range []string{post, inSession(begin(t, url))} {
		done.Store(0)
		await(t, func() bool { return s.requests.used.Load() == 0 }) // wait until the previous request is answered
		res, body := request(t, url, head, batchOf(maxBatch, "test/turn"))
		if res.StatusCode != 200 || done.Load() != maxBatch || most.Load() != 1 {
			t.Errorf("%d, %d were handled, %d at once: %s", res.StatusCode, done.Load(), most.Load(), body)
		}
	}
}

// TestBatchHoldsNothing checks that the client gets each response before the next message is handled. If the client
// disconnects, the remaining messages must not be handled.
func TestBatchHoldsNothing(t *testing.T) {
	t.Parallel()
	s, url := serve(t, Config{})
	started, ended := blocking(t, s)
	var after atomic.Int64
	large := strings.Repeat("x", 64<<10)
	addMethod(t, s, "test/large", func(context.Context) *blockResult { return &blockResult{Auth: large} })
	addMethod(t, s, "test/after", func(context.Context) *blockResult { after.Add(1); return &blockResult{} })
	for _, session := range []bool{false, true} {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		var header []string
		if session {
			header = []string{protocol.SessionHeader, begin(t, url)}
		}
		res := open(t, ctx, http.MethodPost, url, `[{"jsonrpc":"2.0","id":1,"method":"test/large"},{"jsonrpc":"2.0","id":2,"method":"test/block"},{"jsonrpc":"2.0","id":3,"method":"test/after"}]`, header...)
		first := make([]byte, len(large)/2)
		if _, err := io.ReadFull(bufio.NewReader(res.Body), first); err != nil || res.StatusCode != 200 || !strings.HasPrefix(string(first), `[{"jsonrpc":"2.0","id":1,"result":{"auth":"xxx`) {
			t.Fatalf("%d %.80s, %v", res.StatusCode, first, err)
		}
		<-started
		leave()
		<-ended
		await(t, func() bool { return s.requests.used.Load() == 0 && s.bodies.used.Load() == 0 })
		if n := after.Load(); n != 0 {
			t.Errorf("the messages after an interrupted message were handled %d times", n)
		}
	}
}
