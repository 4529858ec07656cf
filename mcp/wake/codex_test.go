package wake

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
)

// TestIsExec checks that isExec recognizes `codex exec`, which drops everything that is queued for its thread.
func TestIsExec(t *testing.T) {
	for args, want := range map[string]bool{
		"codex\x00exec\x00hello\x00": true, "codex\x00-c\x00a=b\x00exec\x00hello\x00": true, "/x/codex\x00e\x00hello\x00": true,
		"codex\x00app-server\x00": false, "codex\x00--no-daemon\x00": false, "codex\x00": false, "": false,
	} {
		if got := isExec([]byte(args)); got != want {
			t.Errorf("%q: %v", args, got)
		}
	}
}

// TestStartQueue checks that Codex's background server, if there is one, gets a request to run a thread's queue.
func TestStartQueue(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if err := startQueue(t.Context(), home, "thread-1"); err != nil {
		t.Errorf("without a background server: %v", err)
	}
	if err := os.Mkdir(filepath.Join(home, "app-server-control"), 0o700); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(home, "app-server-control", "app-server-control.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	asked := make(chan string, 10)
	go func() {
		defer close(asked)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		if _, err := ws.Upgrade(conn); err != nil {
			return
		}
		for {
			text, err := wsutil.ReadClientText(conn)
			if err != nil {
				return
			}
			asked <- string(text)
			var ask struct{ ID *int }
			if json.Unmarshal(text, &ask) == nil && ask.ID != nil {
				_ = wsutil.WriteServerText(conn, []byte(`{"method":"configWarning","params":{}}`))
				_ = wsutil.WriteServerText(conn, fmt.Appendf(nil, `{"id":%d,"error":{"message":"queue is empty"}}`, *ask.ID))
			}
		}
	}()
	if err := startQueue(t.Context(), home, `thread-1`); err != nil {
		t.Fatal(err)
	}
	var all []string
	for text := range asked {
		all = append(all, text)
	}
	if len(all) != 3 || !strings.Contains(all[0], `"initialize"`) || all[2] != `{"id":1,"method":"thread/queue/start","params":{"threadId":"thread-1"}}` {
		t.Errorf("it was asked %q", all)
	}
}
