package main

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"mailtree/mcp/socket"
)

// TestOpenPageKeepsServer checks that a server in the background is not idle while a browser is connected to its page.
// Once the server has decided to exit, it accepts no more browsers.
func TestOpenPageKeepsServer(t *testing.T) {
	t.Parallel()
	users, err := socket.Listen(t.Context(), socket.Config{Path: filepath.Join(t.TempDir(), "s.sock")})
	if err != nil {
		t.Fatal(err)
	}
	defer users.Close()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &countedListener{tcp, users}
	defer l.Close()
	browser, err := net.Dial("tcp", tcp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer browser.Close()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if users.AwaitIdle(ctx, time.Microsecond) == nil {
		t.Error("idle although a page is open")
	}
	c.Close()
	c.Close() // the second Close is ignored
	if err := users.AwaitIdle(t.Context(), time.Microsecond); err != nil {
		t.Error(err)
	}
	go l.Accept()
	late, err := net.Dial("tcp", tcp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	if n, err := late.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Errorf("a browser was let in after the server decided to end: %d bytes, %v", n, err)
	}
}
