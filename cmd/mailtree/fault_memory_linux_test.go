package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mailtree/maildir/storedir"
	"mailtree/mcp/protocol"
	"mailtree/mcp/socket"
)

// maxResident is the maximum memory, in bytes, that the server may use regardless of the requests that it gets. The
// limit is higher with the race detector, which needs additional memory.
const maxResident = (400 << 20) * (1 + (slower-1)/2)

// TestFaultMemory checks that the server uses little memory while many clients request large mail at the same time, in
// every possible way. The limit was determined with the long form, which stores 40 messages of 8 MB. The short form
// uses four messages and fewer clients.
func TestFaultMemory(t *testing.T) {
	longer(t)
	many := extent(8, 64)
	d := newDaemon(t, filepath.Join(t.TempDir(), "store"))
	d.real = true
	d.start()
	const project = "/abs/memory"
	for _, name := range []string{"Ann", "Bob", "Cat"} {
		if err := d.call("create_agent", map[string]any{"project_key": project, "program": "p", "model": "m",
			"task_description": "t", "name_hint": name}, nil); err != nil {
			t.Fatal(err)
		}
	}
	line := "The plan <b>says</b> \"first\" the schema & then the rest of it.\n"
	var ids []string
	for to, m := range map[string]struct{ count, size int }{"Bob": {extent(4, 40), 8_300_000}, "Cat": {20, 1_000_000}} {
		body := strings.Repeat(line, m.size/len(line))
		for i := range m.count {
			var sent struct{ ID string }
			if err := d.call("send_message", map[string]any{"project_key": project, "from_agent": "Ann", "to": to,
				"subject": fmt.Sprint("large ", i), "body_md": body, "thread_id": "large"}, &sent); err != nil {
				t.Fatal(err)
			}
			if to == "Bob" {
				ids = append(ids, sent.ID)
			}
		}
	}
	d.stop()
	local := &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 64,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return socket.Dial(ctx, storedir.SocketPath(d.store))
		}}}
	call := func(tool string, args map[string]any) []byte {
		return rpcRequest("tools/call", map[string]any{"name": tool, "arguments": args})
	}
	inbox := func(agent string) []byte {
		return call("check_my_messages", map[string]any{"project_key": project, "agent_name": agent, "include_bodies": true})
	}
	one := rpcRequest("resources/read", map[string]any{"uri": "resource://message/" + ids[0]})
	all := rpcRequest("resources/read", map[string]any{"uri": "resource://inbox/Bob?include_bodies=true"})
	letter := call("email_read", map[string]any{"mailbox": "Bob", "id": ids[1]})
	search := call("search_messages", map[string]any{"project_key": project, "query": "sche* plan"})
	summary := call("summarize_thread", map[string]any{"project_key": project, "thread_id": "large", "include_examples": true})
	for _, tt := range []struct {
		name           string
		clients, times int
		requests       [][]byte // each client begins with a different request
		local          bool     // the requests go over the socket, to aimx tools
	}{
		{"one client, 8 MB each", 1, 1, [][]byte{inbox("Bob")}, false},
		{"some clients, 1 MB each", min(many, 16), extent(1, 10), [][]byte{inbox("Cat")}, false},
		{"many clients, 8 MB each", many, extent(1, 3), [][]byte{inbox("Bob")}, false},
		{"many clients, resources", many, extent(1, 3), [][]byte{one, all}, false},
		{"many clients, search", many, extent(1, 3), [][]byte{search}, false},
		{"many clients, summaries", many, extent(1, 3), [][]byte{summary}, false},
		{"many clients, email_read", many, extent(1, 3), [][]byte{letter}, true},
	} {
		d.start()
		post := func(body []byte) error {
			if !tt.local {
				return discard(d.client.Post(d.url+"/mcp", "application/json", bytes.NewReader(body)))
			}
			req, err := http.NewRequest(http.MethodPost, "http://mailtree/toolset/aimx/mcp", bytes.NewReader(body))
			if err != nil {
				return err
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set(protocol.HelloHeader, `{"project":"`+project+`"}`)
			return discard(local.Do(req))
		}
		began := time.Now()
		var clients sync.WaitGroup
		var mu sync.Mutex
		largest, refused := int64(0), 0 // refused counts requests that got no memory in time, as happens on a busy machine
		for c := range tt.clients {
			clients.Go(func() {
				for i := range tt.times {
					err := post(tt.requests[(c+i)%len(tt.requests)])
					n, got := err.(received)
					mu.Lock()
					if largest = max(largest, int64(n)); !got {
						refused++
						if !strings.Contains(err.Error(), "The server is busy") {
							t.Errorf("%s: %v", tt.name, err)
						}
					}
					mu.Unlock()
				}
			})
		}
		clients.Wait()
		peak := peakMemory(t, d.cmd.Process.Pid)
		t.Logf("%s (%d of them): VmHWM %d MB, largest answer %d bytes, %d of %d without one, %s", tt.name, tt.clients, peak>>20,
			largest, refused, tt.clients*tt.times, time.Since(began).Round(time.Millisecond))
		if peak > maxResident || largest > 1<<20 || refused == tt.clients*tt.times {
			t.Errorf("%s: over the limits of %d MB and 1 MiB", tt.name, maxResident>>20)
		}
		local.CloseIdleConnections()
		if err := d.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		_ = d.cmd.Wait()
		d.cmd = nil
	}
}

// rpcRequest returns a JSON-RPC request.
func rpcRequest(method string, params any) []byte {
	b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		panic(err) // cannot fail: params contains only strings, numbers and booleans
	}
	return b
}

// received is the size in bytes of a complete response. It implements error only so that discard can return it.
type received int64

func (n received) Error() string { return fmt.Sprint(int64(n), " bytes") }

// discard reads a response to its end. If the response is complete and successful, discard returns the size as a
// received. Otherwise, it returns another error.
func discard(resp *http.Response, err error) error {
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var head bytes.Buffer
	n, err := io.Copy(io.Discard, io.TeeReader(resp.Body, &limitedWriter{&head, 300}))
	switch {
	case err != nil:
		return err
	case resp.StatusCode != http.StatusOK || strings.Contains(head.String(), `"isError":true`) || strings.Contains(head.String(), `"error":`):
		return fmt.Errorf("%s: %s", resp.Status, head.String())
	}
	return received(n)
}

// limitedWriter keeps the first bytes, and drops the rest.
type limitedWriter struct {
	to   *bytes.Buffer
	left int
}

func (w *limitedWriter) Write(p []byte) (int, error) {
	n := min(len(p), w.left)
	w.left -= n
	w.to.Write(p[:n])
	return len(p), nil
}

// peakMemory returns the maximum memory that the process has used, in bytes.
func peakMemory(t *testing.T, pid int) int64 {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "VmHWM:")
	n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}
