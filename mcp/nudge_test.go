package mcp

import (
	"bufio"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"mailtree/mcp/socket"
	"mailtree/mcp/tool"
)

// TestNudge checks that the caller gets one line for each notified agent. Without watch, the response must end after
// one pass. With watch, it must last until the server stops.
func TestNudge(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.sock")
	watching := make(chan bool, 1)
	s := serveSocket(t, path, false, Config{Nudge: func(ctx context.Context, by tool.Caller, watch bool, told func(any)) error {
		told(map[string]string{"tmux": by.Tmux})
		if by.Tmux == "" {
			return errors.New("a fault")
		}
		if watch {
			watching <- true
			<-ctx.Done()
			return ctx.Err()
		}
		told(map[string]string{"agent": "<bob>"})
		return nil
	}})
	const hello = "\nMailtree-Hello: " + `{"tmux":"/tmp/s,1,0"}`
	want := []asked{
		{"POST /mailtree/nudge" + hello, "", 200, "{\"tmux\":\"/tmp/s,1,0\"}\n{\"agent\":\"<bob>\"}\n"},
		{"POST /mailtree/nudge", "", 200, "{\"tmux\":\"\"}\n{\"error\":\"a fault\"}\n"},
		{"GET /mailtree/nudge" + hello, "", 404, ""},
		{"POST /mailtree/nudge\nOrigin: https://evil.example", "", 403, ""},
	}
	checkAnswers(t, ask(path, append([]asked(nil), want...)...), want)
	c, err := socket.Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "POST /mailtree/nudge HTTP/1.0\r\nHost: x\r\nContent-Length: 14"+strings.ReplaceAll(hello, "\n", "\r\n")+"\r\n\r\n"+`{"watch":true}`); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(c)
	for line := ""; !strings.HasPrefix(line, `{"tmux":"/tmp/s,1,0"}`); { // the line arrives as soon as it has been written
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	<-watching
	s.end()
	if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
		t.Errorf("%q %v", rest, err)
	}
	await(t, func() bool { return s.streams.used.Load() == 0 })
	cut := filepath.Join(t.TempDir(), "s.sock")
	var s2 *Server
	s2 = serveSocket(t, cut, false, Config{Nudge: func(ctx context.Context, _ tool.Caller, _ bool, _ func(any)) error {
		s2.end() // stop the server while the client is watching
		<-ctx.Done()
		return ctx.Err()
	}})
	want = []asked{{"POST /mailtree/nudge" + hello, "", 200, "{\"error\":\"the server stopped before it had checked all agents: try again\"}\n"}}
	checkAnswers(t, ask(cut, asked{
		Head:   "POST /mailtree/nudge" + hello,
		Body:   "",
		Status: 0,
		Answer: "",
	}), want)
	without := filepath.Join(t.TempDir(), "s.sock")
	serveSocket(t, without, false, Config{})
	want = []asked{{"POST /mailtree/nudge" + hello, "", 404, ""}}
	checkAnswers(t, ask(without, want[0]), want)
}
