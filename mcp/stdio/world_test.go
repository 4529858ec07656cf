package stdio

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/fixtures/waits"
	"mailtree/maildir"
	mcpserver "mailtree/mcp"
	"mailtree/mcp/socket"
)

func TestMain(m *testing.M) {
	if err := storetest.Isolate(os.Setenv); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// world is a store whose server starts and stops during the test.
type world struct {
	t     *testing.T
	store *storetest.Store
	path  string
	cut   atomic.Int32 // number of POSTs after which the server dies before it answers
	holds atomic.Int32 // number of hold requests that the servers have received
	posts atomic.Int32 // number of POSTs that servers are handling
	late  atomic.Value // the server delays its response to this method until freed is closed
	freed chan struct{}
	slow  atomic.Bool  // the server opens subscriptions slowly
	mute  atomic.Bool  // the server does not open subscriptions
	muted atomic.Int32 // number of subscriptions that the server did not open

	version string // the servers' version; "" means devel

	mu     sync.Mutex
	server *http.Server // nil if no server is running
	end    func()
	starts int // number of servers that the bridge has started
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, store: storetest.Open(t, storetest.Config{}), path: filepath.Join(t.TempDir(), "s.sock"), freed: make(chan struct{})}
	p, err := w.store.EnsureProject(t.Context(), "/p")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Agents.EnsureAgent(t.Context(), "Ann", maildir.Registration{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.kill)
	return w
}

func (w *world) project() *maildir.Project { return w.store.Projects()[0] }

func (w *world) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.server != nil {
		return
	}
	l, err := socket.Listen(context.Background(), socket.Config{Path: w.path})
	if err != nil {
		w.t.Error(err)
		return
	}
	m := mcpserver.New(mcpserver.Config{Store: w.store.Store, Version: w.version, Progress: 10 * time.Millisecond})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { m.Run(ctx) })
	srv := m.SocketServer()
	inner := srv.Handler
	srv.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.posts.Add(1)
			defer w.posts.Add(-1)
		}
		if r.Method == http.MethodPost && w.cut.Add(-1) >= 0 {
			inner.ServeHTTP(httptest.NewRecorder(), r)
			go w.kill()
			panic(http.ErrAbortHandler)
		}
		if strings.HasSuffix(r.URL.Path, "/hold") {
			w.holds.Add(1)
		}
		if w.slow.Load() && w.asks(r, "subscriptions/listen") {
			waits.Pace(200 * time.Millisecond)
		}
		if w.mute.Load() && w.asks(r, "subscriptions/listen") {
			w.muted.Add(1)
			<-r.Context().Done()
			return
		}
		if method, _ := w.late.Load().(string); method != "" && r.Method == http.MethodPost {
			w.answerLate(inner, rw, r, method)
			return
		}
		inner.ServeHTTP(rw, r)
	})
	wg.Go(func() { srv.Serve(l) })
	w.server, w.end = srv, func() { cancel(); wg.Wait() }
}

// answerLate handles a request, but delays the first response to the given method until freed is closed.
func (w *world) answerLate(inner http.Handler, rw http.ResponseWriter, r *http.Request, method string) {
	if !w.asks(r, method) || !w.late.CompareAndSwap(method, "") {
		inner.ServeHTTP(rw, r)
		return
	}
	answer := httptest.NewRecorder()
	inner.ServeHTTP(answer, r)
	<-w.freed
	maps.Copy(rw.Header(), answer.Header())
	rw.WriteHeader(answer.Code)
	rw.Write(answer.Body.Bytes())
}

// asks reports whether a request contains a message with the given method.
func (w *world) asks(r *http.Request, method string) bool {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.t.Error(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return bytes.Contains(body, []byte(`"method":"`+method+`"`))
}

// take removes the running server from the world, so that the caller can stop it.
func (w *world) take() (*http.Server, func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	srv, end := w.server, w.end
	w.server = nil
	return srv, end
}

// kill stops the server and breaks all connections.
func (w *world) kill() {
	if srv, end := w.take(); srv != nil {
		srv.Close()
		end()
	}
}

// stop stops the server the way mailtree itself does.
func (w *world) stop() {
	if srv, end := w.take(); srv != nil {
		end2 := make(chan struct{})
		go func() { defer close(end2); end() }()
		srv.Shutdown(context.Background())
		<-end2
	}
}

// dial is the Config.Dial of the bridges in these tests.
func (w *world) dial(ctx context.Context, start bool) (net.Conn, error) {
	c, err := socket.Dial(ctx, w.path)
	if err == nil || !start {
		return c, err
	}
	w.mu.Lock()
	w.starts++
	w.mu.Unlock()
	w.start()
	return socket.Dial(ctx, w.path)
}

func (w *world) started() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.starts
}

// client is a client of a bridge.
type client struct {
	t    *testing.T
	in   io.WriteCloser
	out  chan string
	done chan error
}

// bridge starts a bridge, which then starts the server.
func (w *world) bridge(change ...func(*Config)) *client {
	w.t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &client{t: w.t, in: inW, out: make(chan string, 10000), done: make(chan error, 1)}
	cfg := Config{In: inR, Out: outW, Toolset: "mail", Dial: w.dial, Patience: time.Millisecond}
	for _, f := range change {
		f(&cfg)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		err := Run(ctx, cfg)
		outW.Close()
		c.done <- err
	}()
	go func() {
		defer close(c.out)
		r := bufio.NewReader(outR)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			c.out <- line
		}
	}()
	w.t.Cleanup(func() { cancel(); inW.Close(); outR.Close() })
	return c
}

func (c *client) send(lines ...string) {
	c.t.Helper()
	for _, l := range lines {
		if _, err := io.WriteString(c.in, l+"\n"); err != nil {
			c.t.Fatal(err)
		}
	}
}

// hear reads lines until a line contains all the wanted strings. It returns that line and the lines before it.
func (c *client) hear(want ...string) (line string, before []string) {
	c.t.Helper()
	late := time.After(60 * time.Second)
	for {
		select {
		case l, ok := <-c.out:
			if !ok {
				c.t.Fatalf("the bridge ended (%v), before %q; heard %q", <-c.done, want, before)
			}
			all := true
			for _, w := range want {
				all = all && strings.Contains(l, w)
			}
			if all {
				return l, before
			}
			before = append(before, l)
		case <-late:
			c.t.Fatalf("%q did not arrive; heard %q", want, before)
		}
	}
}

// finish closes the input and returns the result of Run.
func (c *client) finish() error {
	c.t.Helper()
	c.in.Close()
	select {
	case err := <-c.done:
		return err
	case <-time.After(60 * time.Second):
		c.t.Fatal("the bridge does not end with its input")
		return nil
	}
}

const (
	hello = `{"jsonrpc":"2.0","id":"hi","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	ready = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	meta  = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	inbox  = "resource://inbox/Ann?project=/p"
	update = `"method":"notifications/resources/updated"`
)

// call returns a tools/call message. Pass ","+meta as m for a message of the newer era.
func call(id, tool, args, m string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + m + `}}`
}

const toAnn = `{"project_key":"/p","from_agent":"Ann","to":["Ann"],"subject":"s","body_md":"b"}`

// TestSession checks that an older-era client keeps its subscriptions, however the server ends and whichever process
// starts the next one.
func TestSession(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]func(w *world){
		"stopped":            (*world).stop,
		"killed":             (*world).kill,
		"started by another": func(w *world) { w.kill(); w.start() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.bridge()
			c.send(hello)
			c.hear(`"id":"hi"`, `"protocolVersion":"2025-06-18"`)
			c.send(ready, `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"`+inbox+`"}}`)
			c.hear(`"id":1`, `"result":{}`)
			for round := range 2 {
				heard := func() {
					t.Helper()
					for found := false; !found; { // repeat the call, because Run may not be watching yet
						c.send(call("2", "send_message", toAnn, ""))
						line, before := c.hear(`"id":2,"result"`)
						if strings.Contains(line, `"isError":true`) {
							t.Fatalf("round %d: %s", round, line)
						}
						for _, l := range append(before, drain(c.out)...) {
							found = found || strings.Contains(l, update) && strings.Contains(l, inbox)
						}
					}
				}
				heard()
				drain(c.out)
				restart(w)
				if name == "started by another" {
					c.hear(update, inbox) // the client is notified, although it has sent nothing
				}
			}
			c.send(call("3", "whois", `{"project_key":"/p","agent_name":"Ann"}`, ""))
			c.hear(`"id":3`, `"name":"Ann"`)
			if err := c.finish(); err != nil {
				t.Error(err)
			}
			if name == "started by another" && w.started() != 1 {
				t.Errorf("the bridge started %d servers", w.started())
			}
		})
	}
}

// drain returns the lines that are already available.
func drain(out chan string) (all []string) {
	for {
		select {
		case l := <-out:
			all = append(all, l)
		default:
			return all
		}
	}
}

// await waits until a condition is true.
func await(t *testing.T, ok func() bool) {
	t.Helper()
	waits.Until(t, "the awaited condition holds", ok)
}
