package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"mailtree/fixtures/guesttest"
	"mailtree/fixtures/storetest"
	"mailtree/mcp/protocol"
	"mailtree/mcp/socket"
	"mailtree/mcp/tool"
)

// asked is a request on a socket, with its response.
type asked struct {
	Head, Body string // the request, in the form that request expects
	Status     int
	Answer     string
}

// overSocket returns a client for the server at path, which is a socket's path or a TCP address. The client opens a new
// connection for each request.
func overSocket(path string) *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		if filepath.IsAbs(path) {
			return socket.Dial(ctx, path)
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", path)
	}
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}
}

// ask sends the requests on the socket as the user who runs this process.
func ask(path string, all ...asked) []asked {
	c := overSocket(path)
	for i := range all {
		if err := all[i].ask(c); err != nil {
			all[i].Answer = err.Error()
		}
	}
	return all
}

func (a *asked) ask(c *http.Client) error {
	lines := strings.Split(a.Head, "\n")
	method, target, _ := strings.Cut(lines[0], " ")
	r, err := http.NewRequest(method, "http://mailtree"+target, strings.NewReader(a.Body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", protocol.AcceptBoth)
	for _, l := range lines[1:] {
		k, v, _ := strings.Cut(l, ": ")
		if k == "Host" {
			r.Host = v
		}
		r.Header.Set(k, v)
	}
	res, err := c.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	a.Status, a.Answer = res.StatusCode, ""
	if strings.HasSuffix(target, "/hold") && res.StatusCode == http.StatusOK {
		return nil
	}
	data, err := io.ReadAll(res.Body)
	a.Answer = string(data)
	return err
}

// askEnv is an environment variable that makes the test binary act as another user's process. That process sends the
// requests that it reads from its input.
const askEnv = "MAILTREE_ASK"

func askAsGuest() {
	var all []asked
	if err := json.NewDecoder(os.Stdin).Decode(&all); err != nil {
		panic(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(ask(os.Getenv(askEnv), all...)); err != nil {
		panic(err)
	}
}

// serveSocket serves whoami on a socket in two ways: as "whoami" for the server's own user, and as "open" for every
// user.
func serveSocket(t *testing.T, path string, open bool, cfg Config) *Server {
	t.Helper()
	l, err := socket.Listen(t.Context(), socket.Config{Path: path, Open: open})
	if err != nil {
		t.Fatal(err)
	}
	s := New(cfg)
	s.mount(&route{name: "whoami", set: whoami(tool.Config{})}, &route{name: "open", set: whoami(tool.Config{}), guests: true})
	srv := s.SocketServer()
	go srv.Serve(l)
	t.Cleanup(func() { srv.Close() })
	t.Cleanup(s.end)
	return s
}

// checkAnswers compares the actual responses with the expected ones.
func checkAnswers(t *testing.T, got, want []asked) {
	t.Helper()
	for i, w := range want {
		if g := got[i]; g.Status != w.Status || !strings.Contains(g.Answer, w.Answer) {
			t.Errorf("%q %s: %d %s\nwant %d %s", w.Head, w.Body, g.Status, g.Answer, w.Status, w.Answer)
		}
	}
}

const callWhoami = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami","arguments":{}}}`

// TestSocket checks that the caller depends only on the connection's user and on the bridge's own header.
func TestSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.sock")
	yielded := make(chan bool, 1)
	s := serveSocket(t, path, false, Config{Token: "tok", RequireToken: true, Yield: func() { yielded <- true }})
	uid := strconv.Itoa(os.Geteuid())
	me := `"structuredContent":{"auth":"uid:` + uid + `","door":"stdio","uid":` + uid + `,"root":` + strconv.FormatBool(uid == "0") + `,"via":"socket","here":true`
	want := []asked{
		{"POST /toolset/whoami/mcp", callWhoami, 200, me + `}`},
		{"POST /toolset/open/mcp", callWhoami, 200, me + `}`},
		{"POST /toolset/whoami/mcp\nMailtree-Hello: " + `{"agent":"ann","project":"/p","work_tree":"/w","dir":"/w/d","tmux":"t","pane":"%1","uid":7,"auth":"uid:7","door":"page","root":true,"via":""}`, callWhoami,
			200, me + `,"agent":"ann","project":"/p","work_tree":"/w","dir":"/w/d","tmux":"t","pane":"%1"}`},
		{"POST /toolset/whoami/mcp\nMailtree-Hello: x", callWhoami, 400, "not JSON"},
		{"POST /toolset/whoami/mcp\nMailtree-Caller: " + `{"agent":"ann"}`, callWhoami, 200, me + `}`},
		// For a bridge, the server sets the headers that repeat parts of the body.
		{"POST /toolset/whoami/mcp\nMcp-Protocol-Version: 2026-07-28", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami","arguments":{},` + newEraMeta + `}}`, 200, me + `}`},
		{"POST /toolset/mail/mcp\nMcp-Protocol-Version: 2026-07-28", `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"resource://nothing/\u00e9\nx",` + newEraMeta + `}}`, 400, "There is no resource"},
		{"GET /toolset/whoami/hold", "", 200, ""},
		{"GET /toolset/nobody/hold", "", 404, `unknown toolset \"nobody\": use mail, postal, aimx, agentmail, whoami, open`},
		{"GET /toolset/whoami/mcp", "", 405, ""},
		{"GET /health", "", 200, `"status":"ok"`},
		{"POST /toolset/open/mcp\nOrigin: https://evil.example", callWhoami, 403, ""},
		{"POST /mcp", callWhoami, 404, ""},
		{"GET /yield", "", 404, ""},
		{"POST /yield", "", 202, ""},
	}
	checkAnswers(t, ask(path, append([]asked(nil), want...)...), want)
	<-yielded
	await(t, func() bool { return s.streams.used.Load() == 0 })
	foreground := filepath.Join(t.TempDir(), "s.sock")
	serveSocket(t, foreground, false, Config{})
	want = []asked{{"POST /yield", "", 409, "stop it where it was started"}}
	checkAnswers(t, ask(foreground, want[0]), want)
}

// TestNoProject checks that a verb that needs a project refuses a request that does not specify one.
func TestNoProject(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.sock")
	serveSocket(t, path, false, Config{Explain: error.Error})
	for _, verb := range []string{"agent", "amend", "amendable", "archive", "decide", "delete", "desk", "draft", "forward", "go", "hold",
		"later", "log", "looking", "prepare", "raise-format", "redo", "sync", "undo", "undoable", "waiting"} {
		want := []asked{{"POST /mailtree/" + verb, "", 409, "the request does not specify a project"}}
		checkAnswers(t, ask(path, want[0]), want)
	}
}

// TestLooking checks that the server learns which thread the user's screen shows.
func TestLooking(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.sock")
	looked := make(chan string, 1)
	store := storetest.Open(t, storetest.Config{NoWatcher: true}).Store
	serveSocket(t, path, false, Config{Store: store, Looked: func(project, thread string) { looked <- project + " " + thread }})
	p, err := store.EnsureProject(t.Context(), "/p/shop")
	if err != nil {
		t.Fatal(err)
	}
	want := []asked{{"POST /mailtree/looking?project=" + p.Slug, `{"thread":"t"}`, 200, "{}"}}
	checkAnswers(t, ask(path, want[0]), want)
	if got := <-looked; got != p.Slug+" t" {
		t.Errorf("the thread is %s", got)
	}
}

// TestHold checks that a hold request lasts until the server stops, and then ends without an error.
func TestHold(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.sock")
	s := serveSocket(t, path, false, Config{})
	c, err := socket.Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET /toolset/mail/hold HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	head := make([]byte, len("HTTP/1.1 200 OK"))
	if _, err := io.ReadFull(c, head); err != nil || string(head) != "HTTP/1.1 200 OK" || s.streams.used.Load() != 1 {
		t.Fatalf("%s, %v, %d streams", head, err, s.streams.used.Load())
	}
	s.end()
	if rest, err := io.ReadAll(c); err != nil || !bytes.HasSuffix(rest, []byte("0\r\n\r\n")) {
		t.Errorf("ended with %q, %v", rest, err)
	}
}

// TestOtherUser checks that another user can use only the multi-user toolsets, under their own uid and within separate
// limits.
func TestOtherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not done here: running as two users needs root")
	}
	t.Parallel()
	const guest = 65533
	dir := guesttest.Dir(t)
	path := filepath.Join(dir, "s.sock")
	s := serveSocket(t, path, true, Config{Yield: func() { t.Error("a guest stopped the server") }})
	const me = `"structuredContent":{"auth":"uid:65533","door":"stdio","uid":65533,"root":false,"via":"socket","here":true`
	want := []asked{
		{"POST /toolset/open/mcp", callWhoami, 200, me + `}`},
		{"POST /toolset/open/mcp\nMailtree-Hello: " + `{"agent":"ann","uid":0,"root":true,"auth":"uid:0"}`, callWhoami, 200, me + `,"agent":"ann"}`},
		{"GET /toolset/open/hold", "", 200, ""},
		{"POST /toolset/whoami/mcp", callWhoami, 403, `you are user 65533. Use --toolset aimx`},
		{"POST /toolset/mail/mcp", callWhoami, 403, `only root and the user who runs the server may make this request`},
		{"GET /toolset/mail/hold", "", 403, ""},
		{"GET /health", "", 403, ""},
		{"POST /yield", "", 403, ""},
		{"POST /mailtree/watch", "", 403, ""},
		{"POST /toolset/open/mcp", initialize, 200, ""},
	}
	checkAnswers(t, askAs(t, guest, dir, path, want), want)
	await(t, func() bool {
		return s.guests.requests.used.Load() == 0 && s.guests.streams.used.Load() == 0 && s.guests.bodies.used.Load() == 0
	})
}

// askAs sends the requests from another user's process, which runs in a folder that all users can access.
func askAs(t *testing.T, uid uint32, dir, path string, all []asked) (got []asked) {
	t.Helper()
	data, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), guesttest.Program(t, dir))
	cmd.Env, cmd.Dir = []string{askEnv + "=" + path}, dir
	cmd.Stdin, cmd.Stderr = bytes.NewReader(data), os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	return got
}
