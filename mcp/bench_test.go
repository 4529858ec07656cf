package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/fixtures/bulk"
	"mailtree/fixtures/storetest"
	"mailtree/fixtures/waits"
)

// These benchmarks measure the whole path: HTTP, tool, files, sync, index, response. Each benchmark alternates between
// rounds of real calls and rounds of no-op calls on the same server, so that noise affects both in the same way. The
// no-op rate is the upper limit. Compare numbers within one line, not between runs. The clients run on the same machine
// as the server.
//
//	HTTP      durable sends with 1, 8, 64 and 256 clients
//	Growth    durable sends with 64 clients to a store that already contains mail; -large adds up to 100,000 messages
//	CheckMail check_my_messages with a lot of mail in the project, compared with 100 messages

// bench is a server that runs in this process.
type bench struct {
	addr string
}

func newBench(b *testing.B, cfg storetest.Config) *bench {
	b.Helper()
	cfg.NoCheck = true
	if cfg.Root == "" {
		cfg.Root = filepath.Join(bulk.Dir(b), "store")
	}
	st := storetest.Open(b, cfg)
	s := New(Config{Store: st.Store})
	s.door("mail").set.Server().AddTool(&mcp.Tool{Name: "noop", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "{}"}}}, nil
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	h := s.HTTPServer("")
	go h.Serve(ln)
	b.Cleanup(func() { h.Close() })
	x := &bench{addr: ln.Addr().String()}
	for i := range 2 {
		x.do(b, "create_agent", fmt.Sprintf(`{"project_key":%q,"program":"x","model":"y","task_description":"z","name_hint":"Agent%02d"}`, bulk.HumanKey, i))
	}
	for _, p := range st.Projects() {
		if err := p.FlushHistory(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	for rests := false; !rests; { // wait until the server has compared the tree with the index and with Git's index
		used := bulk.CPU()
		waits.Pace(500 * time.Millisecond)
		rests = bulk.CPU()-used < 25*time.Millisecond
	}
	return x
}

// do makes one call to a tool.
func (x *bench) do(b *testing.B, tool, args string) {
	b.Helper()
	if _, err := bulk.Dial(b, x.addr).Do(bulk.Call(x.addr, tool, args)); err != nil {
		b.Fatal(tool, err)
	}
}

func (x *bench) clients(b *testing.B, n int) (all []*bulk.Client) {
	for range n {
		all = append(all, bulk.Dial(b, x.addr))
	}
	return all
}

func (x *bench) noops() [][]byte { return [][]byte{bulk.Call(x.addr, "noop", `{}`)} }

// sends returns the requests that send a hundred messages of 1 KB, each in its own thread.
func (x *bench) sends() (all [][]byte) {
	text := strings.Repeat("The plan for the users table and its migration. ", 20)
	for i := range 100 {
		all = append(all, bulk.Call(x.addr, "send_message", fmt.Sprintf(`{"project_key":%q,"from_agent":"Agent00","to":["Agent01"],"subject":"Message %d","body_md":"%s","thread_id":"TKT-%d"}`, bulk.HumanKey, i, text, i)))
	}
	return all
}

func (x *bench) checks(agent string) [][]byte {
	return [][]byte{bulk.Call(x.addr, "check_my_messages", fmt.Sprintf(`{"project_key":%q,"agent_name":%q}`, bulk.HumanKey, agent))}
}

// series contains the results of all rounds of one kind of call.
type series struct {
	each bulk.Times
	took time.Duration
}

func (s *series) add(each bulk.Times, took time.Duration) {
	s.each, s.took = append(s.each, each...), s.took+took
}

func (s *series) rate() float64 { return float64(len(s.each)) / s.took.Seconds() }

// rounds is the number of rounds of each kind of call.
const rounds = 6

// versus makes b.N calls from the given number of clients, alternates them with no-ops, and reports both rates and
// their ratio.
func (x *bench) versus(b *testing.B, clients int, requests [][]byte) float64 {
	conns := x.clients(b, clients)
	var calls, noops series
	for _, n := range split(b.N) {
		b.StopTimer()
		noops.add(bulk.Load(b, conns, 4*n, x.noops()))
		b.StartTimer()
		calls.add(bulk.Load(b, conns, n, requests))
	}
	b.StopTimer()
	b.ReportMetric(calls.rate(), "calls/s")
	b.ReportMetric(noops.rate(), "noop/s")
	b.ReportMetric(calls.rate()/noops.rate(), "of-noop")
	calls.each.Report(b, "")
	noops.each.Report(b, "noop-")
	return calls.rate()
}

// split divides n into at most rounds parts.
func split(n int) (parts []int) {
	for i := range rounds {
		if part := n*(i+1)/rounds - n*i/rounds; part > 0 {
			parts = append(parts, part)
		}
	}
	return parts
}

// BenchmarkHTTP measures durable sends over HTTP.
func BenchmarkHTTP(b *testing.B) {
	x := newBench(b, storetest.Config{})
	for _, n := range []int{1, 8, 64, 256} {
		b.Run(fmt.Sprintf("send/clients=%d", n), func(b *testing.B) { x.versus(b, n, x.sends()) })
	}
	b.Run("inbox/clients=1", func(b *testing.B) { x.versus(b, 1, x.checks("Agent01")) })
	b.Run("search/clients=1", func(b *testing.B) {
		x.versus(b, 1, [][]byte{bulk.Call(x.addr, "search_messages", fmt.Sprintf(`{"project_key":%q,"query":"migration plan"}`, bulk.HumanKey))})
	})
}

// BenchmarkGrowth measures durable sends by 64 clients to a store that already contains committed mail. "to-empty" is
// the rate divided by that of the first case, whose store is empty. If all mail in the store is from one day, the
// store's clock is set to that day.
func BenchmarkGrowth(b *testing.B) {
	cases := []bulk.Mail{{}, {Messages: 1_000}}
	if bulk.Large() {
		cases = []bulk.Mail{{}, {Messages: 10_000}, {Messages: 100_000}, {Messages: 100_000, OneDay: true}}
	}
	empty := 0.0
	for _, m := range cases {
		name := fmt.Sprint(m.Messages)
		if m.OneDay {
			name += "/one-day"
		}
		b.Run(name, func(b *testing.B) {
			x := newBench(b, grown(b, m))
			b.Run("send", func(b *testing.B) {
				rate := x.versus(b, 64, x.sends())
				if m.Messages == 0 {
					empty = rate
				}
				b.ReportMetric(rate/empty, "to-empty")
			})
		})
	}
}

// grown returns the configuration of a store that contains the given mail. The store's clock is later than the last
// message.
func grown(b *testing.B, m bulk.Mail) storetest.Config {
	if m.Messages == 0 {
		return storetest.Config{}
	}
	m.Name, m.Linked, m.Git = "growth", true, true
	root := m.Store(b)
	storetest.Rebuild(b, root)
	last, _ := m.Message(m.Messages)
	ahead := time.Until(last.Created)
	return storetest.Config{Root: root, Now: func() time.Time { return time.Now().Add(ahead) }}
}

// BenchmarkCheckMail measures how long check_my_messages takes to return 20 unread messages in a project with a lot of
// mail. It alternates between this project and one with 100 messages. "to-100" is the ratio of the two medians, and
// "mean-to-100" the ratio of the two means.
func BenchmarkCheckMail(b *testing.B) {
	few := bulk.Mail{Messages: 100, Agents: 4, Git: true}
	small := newBench(b, storetest.Config{Root: indexed(b, few)})
	cases := []bulk.Mail{{Messages: 1_000, Git: true}}
	if bulk.Large() {
		cases = []bulk.Mail{{Messages: 100_000, Git: true}, {Messages: 1_000_000, Linked: true, Git: true}}
	}
	for _, m := range cases {
		b.Run(fmt.Sprint(m.Messages), func(b *testing.B) {
			x := newBench(b, storetest.Config{Root: indexed(b, m)})
			b.Run("check", func(b *testing.B) { compare(b, x, small) })
		})
	}
}

// compare alternates calls between two servers, one with a lot of mail and one with little.
func compare(b *testing.B, x, small *bench) {
	one, other := x.clients(b, 1), small.clients(b, 1)
	var much, little series
	for _, n := range split(b.N) {
		b.StopTimer()
		little.add(bulk.Load(b, other, n, small.checks("Agent01")))
		b.StartTimer()
		much.add(bulk.Load(b, one, n, x.checks("Agent01")))
	}
	b.StopTimer()
	b.ReportMetric(float64(much.each.At(0.5))/float64(little.each.At(0.5)), "to-100")
	b.ReportMetric(little.rate()/much.rate(), "mean-to-100")
	much.each.Report(b, "")
	little.each.Report(b, "100-")
}

func indexed(b *testing.B, m bulk.Mail) string {
	root := m.Store(b)
	storetest.Rebuild(b, root)
	return root
}
