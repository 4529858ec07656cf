package peeruid

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"mailtree/fixtures/guesttest"
)

// dialEnv is an environment variable that makes the test binary act as another user's process. The process connects to
// the address in the variable, reports that it has connected, and keeps the connection open until its input ends.
const dialEnv = "PEERUID_DIAL"

func TestMain(m *testing.M) {
	if address := os.Getenv(dialEnv); address != "" {
		c, err := net.Dial("tcp", address)
		fmt.Println("connected", err)
		_, _ = io.Copy(io.Discard, os.Stdin)
		if err == nil {
			c.Close()
		}
		return
	}
	os.Exit(m.Run())
}

// listen listens on an address until the test ends.
func listen(t testing.TB, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// connect returns both ends of a new connection to l.
func connect(t testing.TB, l net.Listener, address string) (client, server net.Conn) {
	t.Helper()
	client, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return client, server
}

func TestCheck(t *testing.T) {
	t.Parallel()
	if err := Check(); err != nil {
		t.Error(err)
	}
}

// TestOwn checks that the lookup finds the current user over IPv4, over IPv6, and over IPv4 with a dual-stack listener.
func TestOwn(t *testing.T) {
	t.Parallel()
	for _, at := range []struct{ listen, host string }{
		{"127.0.0.1:0", "127.0.0.1"}, {"127.0.0.1:0", "::ffff:127.0.0.1"}, {"[::1]:0", "::1"}, {"[::]:0", "127.0.0.1"}, {"[::]:0", "::1"},
	} {
		l := listen(t, at.listen)
		_, port, _ := net.SplitHostPort(l.Addr().String())
		_, server := connect(t, l, net.JoinHostPort(at.host, port))
		if uid, err := Of(server); uid != os.Geteuid() || err != nil {
			t.Errorf("%+v: %d %v", at, uid, err)
		}
	}
}

// TestMapped checks that the lookup finds a client whose IPv6 socket is connected to an IPv4 address.
func TestMapped(t *testing.T) {
	t.Parallel()
	l := listen(t, "127.0.0.1:0")
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	to := &unix.SockaddrInet6{Port: l.Addr().(*net.TCPAddr).Port}
	copy(to.Addr[:], net.IPv4(127, 0, 0, 1).To16())
	if err := unix.Connect(fd, to); err != nil {
		t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if uid, err := Of(server); uid != os.Geteuid() || err != nil {
		t.Errorf("%d %v", uid, err)
	}
}

// TestGone checks that Of returns an error, and not root's uid, if the other end has been closed or no process has it
// open. The test does not run in parallel with TestOther, because a child process has a copy of each socket until it
// calls exec.
func TestGone(t *testing.T) {
	l := listen(t, "127.0.0.1:0")
	client, server := connect(t, l, l.Addr().String())
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if uid, err := Of(server); !errors.Is(err, errUnknown) {
		t.Errorf("closed: %d %v", uid, err)
	}
	half, server := connect(t, l, l.Addr().String())
	if err := half.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if uid, err := Of(server); !errors.Is(err, errUnknown) {
		t.Errorf("half closed: %d %v", uid, err)
	}
	here, err := addrPort(l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	if uid, err := lookup(here, here); !errors.Is(err, errUnknown) {
		t.Errorf("a listening socket: %d %v", uid, err)
	}
}

// TestReused checks that Of does not confuse two connections from the same port. The first client resets its
// connection, and the second client's connection is waiting to be accepted. The clients use a loopback address that no
// other program uses, so their port is free. The test does not run in parallel with TestOther, for the same reason as
// TestGone.
func TestReused(t *testing.T) {
	l := listen(t, "127.0.0.1:0")
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 77)}, Control: func(_, _ string, c syscall.RawConn) (err error) {
		if controlErr := c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		}); controlErr != nil {
			return controlErr
		}
		return err
	}}
	first, err := dialer.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Write([]byte("a request")); err != nil {
		t.Fatal(err)
	}
	if err := first.(*net.TCPConn).SetLinger(0); err != nil { // makes Close reset the connection
		t.Fatal(err)
	}
	first.Close()
	dialer.LocalAddr = first.LocalAddr()
	next, err := dialer.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	reset, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer reset.Close()
	if uid, err := Of(reset); !errors.Is(err, errUnknown) {
		t.Errorf("reset: %d %v", uid, err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if uid, err := Of(server); uid != os.Geteuid() || err != nil {
		t.Errorf("next: %d %v", uid, err)
	}
}

// TestOther checks that the lookup identifies another user's process.
func TestOther(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to run a process as another user")
	}
	l := listen(t, "127.0.0.1:0")
	cmd := exec.CommandContext(t.Context(), guesttest.Program(t, guesttest.Dir(t)))
	cmd.Dir, cmd.Env = filepath.Dir(cmd.Path), append(os.Environ(), dialEnv+"="+l.Addr().String())
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if uid, err := Of(server); uid != 65534 || err != nil {
		t.Errorf("%d %v", uid, err)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, &out)
	}
}

// BenchmarkOf measures the lookup while there are up to 4,000 other connections.
func BenchmarkOf(b *testing.B) {
	for _, others := range []int{0, 4_000} {
		b.Run(fmt.Sprint(others), func(b *testing.B) {
			l := listen(b, "127.0.0.1:0")
			for range others {
				connect(b, l, l.Addr().String())
			}
			_, server := connect(b, l, l.Addr().String())
			for b.Loop() {
				if _, err := Of(server); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
