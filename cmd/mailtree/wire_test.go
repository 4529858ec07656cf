package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"mailtree/fixtures/inmemory"
	"mailtree/maildir/storedir"
	"mailtree/mcp/protocol"
	"mailtree/mcp/socket"
	"mailtree/mcp/tool"
)

// update is the flag -update, which makes the tests rewrite the responses in the transcripts. A transcript records the
// messages between clients and the server: fixtures/wire/TOOLSET/NAME.txtar contains the messages that clients send to
// a toolset, and the exact responses. There is at least one file for each tool. Its sections are
//
//	-- setup [CALLER] [project=KEY] [2026-07-28] -- JSON-RPC messages, one per line, that must not be refused
//	-- client [CALLER] [project=KEY] [2026-07-28] -- one message
//	-- server --     the response to that message
//
// CALLER is the caller's name in an address or in --as. A message of revision 2026-07-28 is sent without a session, and
// with the _meta field that this revision requires. A connection with a session begins with initialize, before the
// transcript.
//
// Placeholders replace values that differ between runs. In responses, <msg 1> is the first message id that the
// transcript sees, <cursor 1> the first cursor, <time> any time, <day> the folders of a day, and <store> the store's
// folder. <auth> is how the server identified the sender, which differs between transports, <seal> is a seal, and
// <commits> are an agent's commits. In clients' messages, <msg 1> and <cursor 1> are replaced with those values.
var update = flag.Bool("update", false, "rewrite the answers in the wire transcripts, and the generated parts of docs/reference")

const transcripts = "../../fixtures/wire"

// wire is a transport over which clients reach a server's toolsets.
type wire interface {
	// dial connects a caller to a toolset. The connection is closed when the test ends or the peer is closed.
	dial(d *daemon, toolset string, who caller) (peer, error)
}

// caller identifies who is calling over a connection. Both names may be empty.
type caller struct {
	name, project string
	stateless     bool // speaks protocol.NewEra, without a session
}

// peer is one client's connection.
type peer interface {
	// exchange sends a message and returns the response. For a notification, it returns nil.
	exchange(message []byte) ([]byte, error)
	close() error
}

// wires lists all transports. Each transcript is replayed over every transport. With -update, the first transport
// writes the transcript.
var wires = []struct {
	name string
	wire
}{{"http", httpWire{}}, {"stdio", stdioWire{}}}

// TestWire checks that the released program returns the responses in the transcripts.
func TestWire(t *testing.T) {
	files, err := filepath.Glob(transcripts + "/*/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d transcripts, %v", len(files), err)
	}
	for _, file := range files {
		toolset := filepath.Base(filepath.Dir(file))
		for i, w := range wires {
			if i > 0 && *update {
				continue
			}
			t.Run(w.name+"/"+toolset+"/"+strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
				t.Parallel()
				d := newDaemon(t, filepath.Join(inmemory.Dir(t), "store"))
				d.real = true
				d.start()
				replay(t, d, w.wire, toolset, file)
				d.check(nil)
			})
		}
	}
}

// TestWireCovers checks that there is a transcript for every tool.
func TestWireCovers(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, filepath.Join(inmemory.Dir(t), "store"))
	d.real = true
	d.start()
	for _, toolset := range []string{"mail", "postal", "aimx", "agentmail"} {
		r := &replayer{t: t, d: d, wire: stdioWire{}, toolset: toolset, peers: map[caller]peer{}}
		var list struct {
			Result struct{ Tools []struct{ Name string } }
		}
		answer := r.exchange(caller{name: "alice"}, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		if err := json.Unmarshal(answer, &list); err != nil || len(list.Result.Tools) == 0 {
			t.Errorf("%s: %v: %s", toolset, err, answer)
		}
		for _, tl := range list.Result.Tools {
			data, err := os.ReadFile(filepath.Join(transcripts, toolset, tl.Name+".txtar"))
			if err != nil || !bytes.Contains(data, []byte(`"method":"tools/call","params":{"name":"`+tl.Name+`"`)) {
				t.Errorf("no transcript calls %s of %s: %v", tl.Name, toolset, err)
			}
		}
	}
}

// replayer replays one transcript.
type replayer struct {
	t       *testing.T
	d       *daemon
	wire    wire
	toolset string
	peers   map[caller]peer
	seen    []string // kind and value of each placeholder, in order: the first message id is <msg 1>
}

func replay(t *testing.T, d *daemon, w wire, toolset, file string) {
	r := &replayer{t: t, d: d, wire: w, toolset: toolset, peers: map[caller]peer{}}
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var answer string
	for i := range a.Files {
		f := &a.Files[i]
		who, words := caller{}, strings.Fields(f.Name)
		for _, word := range words[1:] {
			if key, ok := strings.CutPrefix(word, "project="); ok {
				who.project = key
			} else if word == protocol.NewEra {
				who.stateless = true
			} else {
				who.name = word
			}
		}
		switch words[0] {
		case "setup":
			for line := range bytes.Lines(f.Data) {
				r.setup(who, line)
			}
		case "client":
			answer = r.shown(r.exchange(who, r.meant(f.Data)))
			if i+1 == len(a.Files) || a.Files[i+1].Name != "server" {
				if answer != "" {
					t.Errorf("%s: section %d is answered, but no section server follows:\n%s", file, i+1, answer)
				}
			}
		case "server":
			if !*update && answer != string(f.Data) {
				t.Errorf("section %d:\n%s", i+1, cmp.Diff(strings.Split(string(f.Data), "\n"), strings.Split(answer, "\n")))
			}
			f.Data = []byte(answer)
		default:
			t.Errorf("%s: unknown section %q", file, f.Name)
		}
	}
	for _, p := range r.peers {
		if err := p.close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if *update && !t.Failed() {
		if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
			t.Error(err)
		}
	}
}

// setup sends a message that must succeed.
func (r *replayer) setup(who caller, line []byte) {
	r.t.Helper()
	answer := r.shown(r.exchange(who, r.meant(line)))
	var a struct {
		Result struct{ IsError bool }
		Error  any
	}
	if json.Unmarshal([]byte(answer), &a) != nil || a.Error != nil || a.Result.IsError {
		r.t.Fatalf("setup: %s%s", line, answer)
	}
}

// exchange sends a message over the caller's connection. If there is no connection yet, it creates one and begins the
// session.
func (r *replayer) exchange(who caller, message []byte) []byte {
	r.t.Helper()
	p := r.peers[who]
	if p == nil {
		var err error
		if p, err = r.wire.dial(r.d, r.toolset, who); err == nil && !who.stateless {
			err = begin(p)
		}
		if err != nil {
			r.t.Fatalf("connect %+v to %s: %v", who, r.toolset, err)
		}
		r.peers[who] = p
	}
	message = bytes.TrimSpace(message)
	if who.stateless {
		message = r.withMeta(message)
	}
	answer, err := p.exchange(message)
	if err != nil {
		r.t.Fatalf("%s: %v", message, err)
	}
	return answer
}

// withMeta adds the _meta field to a message. In this field, every request of protocol.NewEra describes its client.
func (r *replayer) withMeta(message []byte) []byte {
	r.t.Helper()
	m := map[string]any{}
	if err := json.Unmarshal(message, &m); err != nil {
		r.t.Fatalf("%s: %v", message, err)
	}
	params, _ := m["params"].(map[string]any)
	if params == nil {
		params = map[string]any{}
	}
	params["_meta"] = map[string]any{
		"io.modelcontextprotocol/protocolVersion":    protocol.NewEra,
		"io.modelcontextprotocol/clientInfo":         map[string]string{"name": "transcript", "version": "1"},
		"io.modelcontextprotocol/clientCapabilities": struct{}{},
	}
	m["params"] = params
	return tool.Encode(m)
}

// begin initializes a connection, as every client does first.
func begin(p peer) error {
	answer, err := p.exchange([]byte(`{"jsonrpc":"2.0","id":"begin","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"transcript","version":"1"}}}`))
	if err == nil && !bytes.Contains(answer, []byte(`"protocolVersion":"2025-11-25"`)) {
		err = fmt.Errorf("initialize: %s", answer)
	}
	if err == nil {
		_, err = p.exchange([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	}
	return err
}

var (
	changing = regexp.MustCompile(`\b\d{4}/\d\d/\d\d/|msg_\d{8}_[0-9a-f]{16}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z|(next_cursor\\?": ?\\?")(\d+)|` +
		`(auth\\?": ?\\?")(?:none|self-asserted|token|uid[: ]\d+(?: \(program\))?)|(seal\\?": ?\\?")[0-9a-f]{16}:[A-Za-z0-9_-]{86}`)
	commits     = regexp.MustCompile(`(commits\\?": ?)\[[^\]]*\]`)                 // the commits may be created at any time
	unescaped   = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&") // equivalent JSON
	placeholder = regexp.MustCompile(`<(msg|cursor) \d+>`)
)

// shown returns a response in the form used in transcripts: indented, and with placeholders for values that differ
// between runs.
func (r *replayer) shown(answer []byte) string {
	if len(answer) == 0 {
		return ""
	}
	var b bytes.Buffer
	if err := json.Indent(&b, answer, "", "  "); err != nil {
		r.t.Fatalf("the answer is not JSON: %s", answer)
	}
	return r.named(unescaped.Replace(b.String())) + "\n"
}

// named replaces values that differ between runs with placeholders.
func (r *replayer) named(text string) string {
	text = commits.ReplaceAllString(text, "$1<commits>")
	return changing.ReplaceAllStringFunc(strings.ReplaceAll(text, r.d.store, "<store>"), func(s string) string {
		switch m := changing.FindStringSubmatch(s); {
		case m[3] != "":
			return m[2] + r.name("cursor", m[3])
		case m[4] != "":
			return m[4] + "<auth>"
		case m[5] != "":
			return m[5] + "<seal>"
		case strings.HasPrefix(s, "msg_"):
			return r.name("msg", s)
		case strings.HasSuffix(s, "/"):
			return "<day>/"
		}
		return "<time>"
	})
}

// name returns the placeholder for a value. Equal values get the same placeholder.
func (r *replayer) name(kind, value string) string {
	key := kind + "\n" + value
	n := 1
	for _, s := range r.seen {
		if s == key {
			return fmt.Sprintf("<%s %d>", kind, n)
		}
		if strings.HasPrefix(s, kind+"\n") {
			n++
		}
	}
	r.seen = append(r.seen, key)
	return fmt.Sprintf("<%s %d>", kind, n)
}

// meant replaces the placeholders in a client's message with their values.
func (r *replayer) meant(message []byte) []byte {
	return placeholder.ReplaceAllFunc(message, func(s []byte) []byte {
		kind, _, _ := strings.Cut(string(s[1:]), " ")
		i := slices.IndexFunc(r.seen, func(key string) bool {
			k, value, _ := strings.Cut(key, "\n")
			return k == kind && r.name(k, value) == string(s)
		})
		if i < 0 {
			r.t.Fatalf("no answer has shown %s", s)
		}
		_, value, _ := strings.Cut(r.seen[i], "\n")
		return []byte(value)
	})
}

// httpWire is Streamable HTTP. If a toolset has a path over TCP, httpWire uses that path, with a session. A toolset
// that must know the caller is reached over the socket, without a session.
type httpWire struct{}

func (httpWire) dial(d *daemon, toolset string, who caller) (peer, error) {
	if toolset == "aimx" || toolset == "agentmail" {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return socket.Dial(ctx, storedir.SocketPath(d.store))
			}}}
		return &httpPeer{client: client, url: "http://mailtree/toolset/" + toolset + "/mcp",
			hello: tool.Encode(tool.Caller{Agent: who.name, Project: who.project, Dir: "/"}), stateless: who.stateless}, nil
	}
	path := map[string]string{"mail": "/mcp", "postal": "/agents/" + who.name + "/mcp"}[toolset]
	if who.project != "" {
		path += "?project=" + url.QueryEscape(who.project)
	}
	return &httpPeer{client: d.client, url: d.url + path, stateless: who.stateless}, nil
}

type httpPeer struct {
	client    *http.Client
	url       string
	hello     []byte
	session   string
	stateless bool
}

func (p *httpPeer) exchange(message []byte) ([]byte, error) {
	resp, err := p.do(http.MethodPost, message)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		p.session = id
	}
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return body, err
}

func (p *httpPeer) close() error {
	if p.session == "" {
		return nil
	}
	resp, err := p.do(http.MethodDelete, nil)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		return fmt.Errorf("ending the session: %s", resp.Status)
	}
	return nil
}

func (p *httpPeer) do(method string, body []byte) (*http.Response, error) {
	req, err := http.NewRequest(method, p.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if p.hello != nil {
		req.Header.Set(protocol.HelloHeader, string(p.hello))
	}
	if p.stateless {
		req.Header.Set(protocol.VersionHeader, protocol.NewEra)
		var m struct {
			Method string
			Params struct{ Name, URI string }
		}
		if err := json.Unmarshal(body, &m); err != nil {
			return nil, err
		}
		req.Header.Set(protocol.MethodHeader, m.Method)
		req.Header.Set(protocol.NameHeader, m.Params.Name+m.Params.URI)
	}
	if p.session != "" {
		req.Header.Set("Mcp-Session-Id", p.session)
		req.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	}
	return p.client.Do(req)
}
