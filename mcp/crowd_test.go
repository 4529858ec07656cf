package mcp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/hook"
	"mailtree/mcp/socket"
	"mailtree/mcp/tool"
)

// crowd is a store that contains more of everything than fits in one response.
type crowd struct {
	*storetest.Store
	ids  []string // ids of Bob's messages, in order of arrival
	url  string   // URL of a server on TCP
	sock *http.Client
}

const crowded = "/abs/crowded"

// hostileText returns n bytes of text whose size grows as much as possible when the text is encoded as JSON twice.
func hostileText(n int) string {
	const piece = "<\"\\&> \t€😀\x01 plain words "
	return strings.Repeat(piece, n/len(piece)) + strings.Repeat("\"", n%len(piece))
}

func newCrowd(t *testing.T) *crowd {
	t.Helper()
	c := &crowd{Store: storetest.Open(t, storetest.Config{NoWatcher: true})}
	p, err := c.EnsureProject(t.Context(), crowded)
	if err != nil {
		t.Fatal(err)
	}
	text := func(n int) string {
		return strings.ReplaceAll(strings.ReplaceAll(hostileText(n), "\t", " "), "\x01", " ")
	} // text without control characters
	for _, n := range []string{"Ann", "Bob"} {
		if _, err := p.Agents.Register(t.Context(), maildir.Registration{
			Program:  text(4096),
			Model:    text(4096),
			Task:     text(4096),
			NameHint: n,
		}); err != nil {
			t.Fatal(err)
		}
	}
	to := []string{"Bob"}
	var making errgroup
	for i := range format.MaxRecipients - 1 { // agents with the longest possible names
		name := fmt.Sprintf("Agent%03d%s", i, strings.Repeat("x", 56))
		to = append(to, name)
		making.Go(func() error {
			return p.Agents.EnsureAgent(t.Context(), name, maildir.Registration{Program: text(1000), Task: text(4096)})
		})
	}
	if err := making.wait(); err != nil {
		t.Fatal(err)
	}
	for i, size := range []int{100, 2_000_000, 100_000, 100_000, 100_000, 10, 300_000} {
		d := maildir.Draft{
			To:       []string{"Bob"},
			Subject:  text(format.MaxSubject),
			Body:     fmt.Sprintf("%d %s", i, hostileText(size)),
			ThreadID: "T",
		}
		if size <= 100 {
			d.To = to
		}
		sent, err := p.Box("Ann", format.Origin{}).Send(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		c.ids = append(c.ids, sent.ID)
	}
	for i := range 6 {
		body := ""
		for j := range 30 {
			body += fmt.Sprintf("- [ ] %d %d %s\n- DECISION: %d %s\n- why %d?\n", i, j, hostileText(250), j, hostileText(250), j)
		}
		if _, err := p.Box("Ann", format.Origin{}).Send(t.Context(), maildir.Draft{
			To:       to,
			Subject:  text(format.MaxSubject),
			Body:     body,
			ThreadID: "S",
		}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 8 {
		if _, err := p.Box("Ann", format.Origin{}).Claim(t.Context(), claim.Request{Patterns: patterns(i), Reason: text(1024)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 64 {
		b, err := p.As(maildir.Caller{Root: true}, format.Origin{}).Box(t.Context(), "Bob")
		if err == nil {
			_, err = b.CreateHook(t.Context(), hook.Hook{
				Event:   hook.OnReceive,
				Name:    fmt.Sprint("h", i),
				Cmd:     []string{"/bin/true", strings.Repeat("\"<", 15<<9)},
				Timeout: 1,
			})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// errgroup runs functions concurrently and returns the first error.
type errgroup struct {
	sync.WaitGroup
	once sync.Once
	err  error
}

func (g *errgroup) Go(f func() error) {
	g.WaitGroup.Go(func() {
		if err := f(); err != nil {
			g.once.Do(func() { g.err = err })
		}
	})
}

func (g *errgroup) wait() error {
	g.Wait()
	return g.err
}

// serve starts a server for the store. The server limits its responses to budget bytes.
func (c *crowd) serve(t *testing.T, budget int) {
	t.Helper()
	s, url := serve(t, Config{Store: c.Store.Store, MaxAnswer: budget})
	c.url = url
	path := filepath.Join(t.TempDir(), "s")
	l, err := socket.Listen(t.Context(), socket.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	srv := s.SocketServer()
	go srv.Serve(l)
	t.Cleanup(func() { srv.Close() })
	c.sock = overSocket(path)
}

// ask calls a method of a toolset. If the toolset is served over TCP, ask sends a bare POST, because the responses to
// bare POSTs are the largest.
func (c *crowd) ask(t *testing.T, toolset, agent, method string, params map[string]any) []byte {
	t.Helper()
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		t.Fatal(err)
	}
	url, client := map[string]string{"mail": c.url + "/mcp", "postal": c.url + "/agents/" + agent + "/mcp?project=" + crowded}[toolset], http.DefaultClient
	if url == "" {
		url, client = "http://mailtree/toolset/"+toolset+"/mcp", c.sock
	}
	return send(t, client, url, string(tool.Encode(tool.Caller{Agent: agent, Project: crowded, Dir: "/"})), body)
}
