package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailtree/mcp/socket"
)

// TestRenewSockets checks that if a removed socket cannot be recreated because something else is in its place, the
// failure is reported once. The failure is reported again only if the obstacle disappears and comes back.
func TestRenewSockets(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	a := &app{log: slog.New(slog.NewTextHandler(&said, nil))}
	path := filepath.Join(t.TempDir(), "s.sock")
	l, err := socket.Listen(t.Context(), socket.Config{Path: path, Log: a.log})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a.sockets = []*socket.Listener{l}
	blocked := map[*socket.Listener]bool{}
	for n := 1; n < 3; n++ {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			a.renewSockets(t.Context(), blocked)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			a.renewSockets(t.Context(), blocked)
		}
		if got := strings.Count(said.String(), "exists and is not a socket"); got != n {
			t.Errorf("reported %d times, want %d:\n%s", got, n, &said)
		}
		if got := strings.Count(said.String(), "recreated it"); got != n {
			t.Errorf("recreated %d times, want %d:\n%s", got, n, &said)
		}
	}
}
