package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/fixtures/storetest"
)

// The benchmarks of the whole way: HTTP, tool, files, sync, index, answer. Each runs beside a tool that does nothing on
// the same server, its ceiling: compare the two lines of one run, not two runs.

type bench struct {
	b   *testing.B
	url string
	n   atomic.Int64
}

func newBench(b *testing.B) *bench {
	b.Helper()
	if err := storetest.Isolate(os.Setenv); err != nil {
		b.Fatal(err)
	}
	st := storetest.Open(b, storetest.Config{NoCheck: true})
	s := New(Config{Store: st.Store})
	s.mail.Server().AddTool(&mcp.Tool{Name: "noop", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "{}"}}}, nil
	})
	h := httptest.NewServer(s.Handler())
	b.Cleanup(h.Close)
	x := &bench{b: b, url: h.URL + "/mcp"}
	for _, n := range []string{"Ann", "Bob"} {
		x.call("create_agent", `{"project_key":"/p/bench","program":"x","model":"y","task_description":"z","name_hint":"`+n+`"}`)
	}
	return x
}

var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 512}}

func (x *bench) call(tool, args string) {
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + `}}`
	resp, err := client.Post(x.url, "application/json", bytes.NewReader([]byte(body)))
	if err != nil {
		x.b.Error(err)
		return
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 || bytes.Contains(data, []byte(`"isError":true`)) {
		x.b.Errorf("%s: %v %s", resp.Status, err, data)
	}
}

// clients runs b.N calls from so many clients at once and reports calls per second.
func (x *bench) clients(b *testing.B, n int, call func(i int64)) {
	b.ResetTimer()
	var all sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(b.N))
	for range n {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				call(x.n.Add(1))
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

var text = string(bytes.Repeat([]byte("The plan for the users table and its migration. "), 20))

func (x *bench) send(i int64) {
	x.call("send_message", fmt.Sprintf(`{"project_key":"/p/bench","from_agent":"Ann","to":["Bob"],"subject":"Message %d","body_md":"%s","thread_id":"T-%d"}`, i, text, i%100))
}

func BenchmarkHTTP(b *testing.B) {
	x := newBench(b)
	for _, n := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("noop/clients=%d", n), func(b *testing.B) { x.clients(b, n, func(int64) { x.call("noop", `{}`) }) })
		b.Run(fmt.Sprintf("send/clients=%d", n), func(b *testing.B) { x.clients(b, n, x.send) })
	}
	b.Run("inbox/clients=1", func(b *testing.B) {
		x.clients(b, 1, func(int64) { x.call("check_my_messages", `{"project_key":"/p/bench","agent_name":"Bob"}`) })
	})
	b.Run("search/clients=1", func(b *testing.B) {
		x.clients(b, 1, func(i int64) { x.call("search_messages", `{"project_key":"/p/bench","query":"migration plan"}`) })
	})
}
