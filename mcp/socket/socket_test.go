package socket

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"mailtree/fixtures/guesttest"
)

// TestMain also lets the test binary act as another user's process. This process connects SOCKET_GUEST times, prints
// how many of these connections the listener has accepted, and waits until its input ends.
func TestMain(m *testing.M) {
	if n, err := strconv.Atoi(os.Getenv("SOCKET_GUEST")); err == nil {
		in := 0
		for range n {
			c, err := Dial(context.Background(), os.Args[1])
			if err != nil {
				os.Stdout.WriteString(err.Error() + "\n")
				os.Exit(1)
			}
			if n, _ := c.Read(make([]byte, 1)); n == 1 {
				in++
			}
		}
		os.Stdout.WriteString(strconv.Itoa(in) + "\n")
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func listen(t *testing.T, cfg Config) *Listener {
	t.Helper()
	l, err := Listen(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// greet accepts connections until the listener is closed, and sends one byte to each client.
func greet(l *Listener) chan *Conn {
	all := make(chan *Conn, 1000)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				close(all)
				return
			}
			c.Write([]byte{'.'})
			all <- c.(*Conn)
		}
	}()
	return all
}

// TestWithdraw checks that Accept still returns clients that connected before Withdraw, and that no client can connect
// after it.
func TestWithdraw(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l := listen(t, Config{Path: path})
	c, err := Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l.Withdraw()
	if _, err := Dial(t.Context(), path); err == nil {
		t.Error("a client could connect to a withdrawn socket")
	}
	greet(l)
	if n, err := c.Read(make([]byte, 1)); n != 1 {
		t.Error("a connected client is not accepted:", err)
	}
}

// greeted reports whether a connection to path receives the byte from greet.
func greeted(t *testing.T, path string) bool {
	t.Helper()
	c, err := Dial(t.Context(), path)
	if err != nil {
		return false
	}
	defer c.Close()
	n, _ := c.Read(make([]byte, 1))
	return n == 1
}

// leave creates a stale socket, like one left behind by a killed server.
func leave(t *testing.T, path string) {
	t.Helper()
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	ln.Close()
}

func TestListen(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before func(t *testing.T, path string)
		open   bool
		want   string // text that the error must contain; "" if no error is expected
	}{
		{"new", func(*testing.T, string) {}, false, ""},
		{"open", func(*testing.T, string) {}, true, ""},
		{"left by a server that was killed", leave, false, ""},
		{"open, left by a server that was killed", leave, true, ""},
		{"live", func(t *testing.T, path string) { greet(listen(t, Config{Path: path})) }, false, "another server is listening"},
		{"open, live", func(t *testing.T, path string) { greet(listen(t, Config{Path: path, Open: true})) }, true, "another server is listening"},
		{"open, of another program", func(t *testing.T, path string) { greet(listen(t, Config{Path: path})) }, true, "another server is listening"},
		{"a file", func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, false, "is not a socket"},
		{"no folder", func(t *testing.T, path string) { os.RemoveAll(filepath.Dir(path)) }, false, "no such file"},
		{"open, no folder", func(t *testing.T, path string) { os.RemoveAll(filepath.Dir(path)) }, true, "no such file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s.sock")
			tt.before(t, path)
			before, _ := os.Lstat(path)
			l, err := Listen(t.Context(), Config{Path: path, Open: tt.open})
			if tt.want != "" {
				after, _ := os.Lstat(path)
				if err == nil || !strings.Contains(err.Error(), tt.want) || before != nil && !os.SameFile(before, after) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			mode := os.FileMode(0o600)
			if tt.open {
				mode = 0o666
			}
			if fi, err := os.Lstat(path); err != nil || fi.Mode() != os.ModeSocket|mode {
				t.Errorf("%v, %v", fi.Mode(), err)
			}
			conns := greet(l)
			if !greeted(t, path) {
				t.Error("the server does not answer")
			}
			if c := <-conns; c.UID != os.Geteuid() {
				t.Errorf("the peer is %d", c.UID)
			}
			l.Close()
			if _, err := os.Lstat(path); !os.IsNotExist(err) {
				t.Errorf("the socket of a closed listener: %v", err)
			}
			if again, err := Listen(t.Context(), Config{Path: path, Open: tt.open}); err != nil {
				t.Error(err)
			} else {
				l.Close() // calling Close again has no effect
				if _, err := os.Lstat(path); err != nil {
					t.Errorf("closed twice, a listener removed another's socket: %v", err)
				}
				again.Close()
			}
		})
	}
}

// TestReplaced checks that a listener does not remove another socket that has replaced its own.
func TestReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.sock")
	l := listen(t, Config{Path: path})
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	greet(listen(t, Config{Path: path}))
	l.Close()
	if !greeted(t, path) {
		t.Error("the server no longer answers")
	}
}

// TestLongPath checks that a path that is too long for a socket address works on Linux. On other systems, the error
// must say what to do.
func TestLongPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long/", 40))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s.sock")
	l, err := Listen(t.Context(), Config{Path: path})
	if _, _, no := shorten(path); no != nil {
		if err == nil || !strings.Contains(err.Error(), "Set MCP_MAIL_STORE") {
			t.Error(err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	greet(l)
	if !greeted(t, path) {
		t.Error("the server does not answer")
	}
	if _, err := Listen(t.Context(), Config{Path: path}); err == nil {
		t.Error("a live socket was replaced")
	}
	l.Close()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Error(err)
	}
}

func TestAwaitIdle(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.sock")
	var busy atomic.Bool
	l := listen(t, Config{Path: path, Busy: busy.Load})
	conns := greet(l)
	client, err := Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c := <-conns
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := l.AwaitIdle(ctx, time.Microsecond); err == nil {
		t.Error("idle although a client is connected")
	}
	if !greeted(t, path) {
		t.Error("the server does not answer although it is not idle")
	}
	(<-conns).Close()
	c.Close()
	c.Close() // closing c again must not change the number of connections
	busy.Store(true)
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := l.AwaitIdle(ctx, time.Microsecond); err == nil {
		t.Error("idle although the server is busy")
	}
	busy.Store(false)
	if err := l.AwaitIdle(t.Context(), time.Millisecond); err != nil {
		t.Error(err)
	}
	if greeted(t, path) {
		t.Error("a client was accepted after the listener reported that it was idle")
	}
}

// TestAwaitIdleOfLateStart checks that clients that connect while the server is starting are served, however long the
// server takes to start.
func TestAwaitIdleOfLateStart(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var l *Listener
	serving := sync.OnceFunc(func() {
		go func() {
			<-greet(l)
			cancel()
		}()
	})
	path := filepath.Join(t.TempDir(), "s.sock")
	l = listen(t, Config{Path: path, Busy: func() bool { serving(); return false }}) // Busy is called only while no client is connected
	c, err := Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const idle = time.Minute
	l.since = time.Now().Add(-idle) // pretend that starting the server took as long as idle
	if err := l.AwaitIdle(ctx, idle); err == nil {
		t.Error("idle although a client is connected")
	}
}

// TestGuests checks that the listener identifies another user's process, and that another user cannot have more than
// MaxGuestConns connections.
func TestGuests(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not done here: running as two users needs root")
	}
	const guest = 65533
	path := filepath.Join(guesttest.Dir(t), "s.sock")
	conns := greet(listen(t, Config{Path: path, Open: true}))
	cmd := exec.CommandContext(t.Context(), guesttest.Program(t, filepath.Dir(path)), path)
	cmd.Env = []string{"SOCKET_GUEST=" + strconv.Itoa(MaxGuestConns+5)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: guest, Gid: guest}}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 100)
	n, _ := out.Read(said)
	if got := strings.TrimSpace(string(said[:n])); got != strconv.Itoa(MaxGuestConns) {
		t.Errorf("accepted: %s, want %d", got, MaxGuestConns)
	}
	for range MaxGuestConns {
		if c := <-conns; c.UID != guest {
			t.Fatalf("the peer is %d", c.UID)
		}
	}
	if !greeted(t, path) {
		t.Error("the guest's connections keep this user out")
	}
	in.Close()
	cmd.Wait()
}

// TestRenew checks that a listener recreates its socket if it has been removed or replaced, unless this would affect
// another program's file. Open connections must stay open.
func TestRenew(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, path string)
		want string // text that the error must contain; "" if no error is expected
		kept bool   // whether the original socket must remain
	}{
		{"untouched", func(*testing.T, string) {}, "", true},
		{"removed", func(t *testing.T, path string) { check(t, os.Remove(path)) }, "", false},
		{"moved", func(t *testing.T, path string) { check(t, os.Rename(path, path+".old")) }, "", false},
		{"moved and moved back", func(t *testing.T, path string) {
			check(t, os.Rename(path, path+".old"))
			check(t, os.Rename(path+".old", path))
		}, "", true},
		{"left by a server that was killed", func(t *testing.T, path string) { check(t, os.Remove(path)); leave(t, path) }, "", false},
		{"live", func(t *testing.T, path string) { check(t, os.Remove(path)); greet(listen(t, Config{Path: path})) }, "another server is listening", false},
		{"a file", func(t *testing.T, path string) {
			check(t, os.Remove(path))
			check(t, os.WriteFile(path, []byte("mine"), 0o600))
		}, "is not a socket", false},
		{"a folder", func(t *testing.T, path string) { check(t, os.Remove(path)); check(t, os.Mkdir(path, 0o700)) }, "is not a socket", false},
		{"no folder", func(t *testing.T, path string) { check(t, os.RemoveAll(filepath.Dir(path))) }, "no such file", false},
	} {
		for _, open := range []bool{false, true} {
			t.Run(tt.name+map[bool]string{true: ", open"}[open], func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "place", "s.sock")
				check(t, os.Mkdir(filepath.Dir(path), 0o700))
				l := listen(t, Config{Path: path, Open: open})
				conns := greet(l)
				client, err := Dial(t.Context(), path)
				check(t, err)
				defer client.Close()
				server := <-conns
				made, err := os.Lstat(path)
				check(t, err)
				tt.do(t, path)
				before, _ := os.Lstat(path)
				for range 2 { // calling Renew again must have the same result
					err := l.Renew(t.Context())
					after, gone := os.Lstat(path)
					switch {
					case tt.want != "":
						if err == nil || !strings.Contains(err.Error(), tt.want) || before != nil && !os.SameFile(before, after) {
							t.Fatalf("%v", err)
						}
					case err != nil || gone != nil || os.SameFile(made, after) != tt.kept || after.Mode() != made.Mode():
						t.Fatalf("%v, %v, %v", err, gone, after)
					case !greeted(t, path):
						t.Fatal("the server does not answer")
					}
				}
				check(t, os.RemoveAll(path))
				check(t, os.MkdirAll(filepath.Dir(path), 0o700))
				if err := l.Renew(t.Context()); err != nil || !greeted(t, path) {
					t.Errorf("after the obstacle is gone: %v", err)
				}
				if _, err := server.Write([]byte("still")); err != nil {
					t.Error(err)
				}
				if got := make([]byte, 6); read(client, got) != ".still" {
					t.Errorf("the connected client reads %q", got)
				}
				if err := l.Close(); err != nil {
					t.Error(err)
				}
				if err := l.Renew(t.Context()); err != nil {
					t.Error(err)
				}
				if _, err := os.Lstat(path); !os.IsNotExist(err) {
					t.Errorf("the socket of a closed listener: %v", err)
				}
			})
		}
	}
}

// TestUnsure checks that a socket is not replaced if it may belong to a live server.
func TestUnsure(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.sock")
	greet(listen(t, Config{Path: path}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Listen(ctx, Config{Path: path}); err == nil || !strings.Contains(err.Error(), "cannot check") {
		t.Fatal(err)
	}
	if !greeted(t, path) {
		t.Error("the server no longer answers")
	}
}

func read(c net.Conn, b []byte) string {
	n, _ := io.ReadFull(c, b)
	return string(b[:n])
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
