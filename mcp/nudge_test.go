package mcp

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"mailtree/mcp/tool"
)

// TestNudge: whoever asks hears of each agent that was told, once, or with watch until the server ends.
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
		{"POST /nudge" + hello, "", 200, "{\"tmux\":\"/tmp/s,1,0\"}\n{\"agent\":\"<bob>\"}\n"},
		{"POST /nudge", "", 200, "{\"tmux\":\"\"}\n{\"error\":\"internal error, see the server's log\"}\n"},
		{"GET /nudge" + hello, "", 404, ""},
		{"POST /nudge?watch=1\nOrigin: https://evil.example", "", 403, ""},
	}
	checkAnswers(t, ask(path, append([]asked(nil), want...)...), want)
	go func() {
		<-watching
		s.end()
	}()
	want = []asked{{"POST /nudge?watch=1" + hello, "", 200, "{\"tmux\":\"/tmp/s,1,0\"}\n"}}
	got := ask(path, want[0])
	if checkAnswers(t, got, want); got[0].Answer != want[0].Answer {
		t.Errorf("%q", got[0].Answer)
	}
	await(t, func() bool { return s.streams.used.Load() == 0 })
	without := filepath.Join(t.TempDir(), "s.sock")
	serveSocket(t, without, false, Config{})
	want = []asked{{"POST /nudge" + hello, "", 404, ""}}
	checkAnswers(t, ask(without, want[0]), want)
}
