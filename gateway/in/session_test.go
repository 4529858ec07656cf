package in

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"mailtree/fixtures/waits"
	"mailtree/gateway/auth"
	"mailtree/gateway/spool"
)

// store is a store for tests. It has the mailboxes build and ops, a full mailbox, and a mailbox for which Lookup fails.
type store struct {
	mu   sync.Mutex
	kept []*Delivery
}

func (*store) Lookup(_ context.Context, local, _ string) (string, error) {
	switch local {
	case "build", "ops", "full":
		return local, nil
	case "down":
		return "", errors.New("the disk is on fire")
	}
	return "", ErrUnknown
}

func (s *store) Deliver(_ context.Context, d *Delivery) []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	errs := make([]error, len(d.To))
	for i, to := range d.To {
		if to.Mailbox == "full" {
			errs[i] = ErrFull
			continue
		}
		one := *d
		one.To = []Recipient{to}
		s.kept = append(s.kept, &one)
	}
	return errs
}

// deliveries returns the stored messages, one per line.
func (s *store) deliveries() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, d := range s.kept {
		fmt.Fprintf(&b, "%s %s %s %q\n", d.To[0].Mailbox, d.To[0].Address, d.Sender, d.Message.Subject)
	}
	return b.String()
}

// nowhere is a DNS resolver that never finds anything.
type nowhere struct{}

func (nowhere) LookupTXT(_ context.Context, name string) ([]string, error) {
	return nil, &net.DNSError{Name: name, IsNotFound: true}
}

func (nowhere) LookupMX(context.Context, string) ([]*net.MX, error) { return nil, nil }

func (nowhere) LookupIPAddr(context.Context, string) ([]net.IPAddr, error) { return nil, nil }

func (nowhere) LookupAddr(context.Context, string) ([]string, error) { return nil, nil }

// serve starts a server that runs until the test ends, and returns its addresses.
func serve(t testing.TB, change func(*Config)) ([]net.Addr, *store) {
	t.Helper()
	at, kept, _ := serveUntil(t, change)
	return at, kept
}

// serveUntil is like serve, but also returns a function that stops the server and waits for its sessions to end.
func serveUntil(t testing.TB, change func(*Config)) (at []net.Addr, kept *store, stop func()) {
	t.Helper()
	kept = &store{}
	room, err := spool.New(t.TempDir(), spool.FileLimit)
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{
		Listen: []Address{{"tcp", "127.0.0.1:0", false}, {"tcp", "127.0.0.1:0", true}}, Host: "mx.example.net", Domains: []string{"mail.example.net"},
		Postmaster: "admin", MTAUser: -1, MaxConnsPerHost: 100, Spool: room, Directory: kept, Deliverer: kept,
		Checker: &auth.Checker{Resolver: nowhere{}}, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&cfg)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready := make(chan []net.Addr, 1)
	done := make(chan error, 1)
	go func() {
		done <- New(cfg).Run(ctx, func(all []net.Listener) {
			var at []net.Addr
			for _, l := range all {
				at = append(at, l.Addr())
			}
			ready <- at
		})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	select {
	case at := <-ready:
		return at, kept, stop
	case err := <-done:
		done <- nil
		t.Fatal(err)
		return nil, nil, nil
	}
}

// TestSessions plays the sessions in testdata/sessions, and checks the replies and the stored messages. Each file
// contains the lines that the client sends ("> line", or ">> bytes" in Go syntax), the beginning of each reply
// ("< 250"), and the messages that must be stored.
func TestSessions(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/sessions/*.txtar")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d sessions, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			at, kept, stop := serveUntil(t, nil)
			play(t, at[map[string]int{"smtp": 0, "lmtp": 1}[a.Files[0].Name]], string(a.Files[0].Data))
			stop()
			if got := kept.deliveries(); got != string(a.Files[1].Data) {
				t.Errorf("kept:\n%s\nwant:\n%s", got, a.Files[1].Data)
			}
		})
	}
}

// long replaces placeholders with strings that are too long to write in the test files.
var long = strings.NewReplacer(
	"{{x*9000}}", strings.Repeat("x", 9000),
	"{{header}}\n", strings.Repeat("> X: "+strings.Repeat("x", 900)+"\n", 300),
	"{{received}}\n", strings.Repeat("> Received: by a\n", 51),
	"{{recipients}}\n", strings.Repeat("> RCPT TO:<build@mail.example.net>\n< 250\n", maxRecipients),
)

// play performs the client's part of a session and checks the server's replies.
func play(t *testing.T, at net.Addr, session string) {
	t.Helper()
	c, err := net.Dial(at.Network(), at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	r := bufio.NewReader(c)
	for i, line := range strings.Split(strings.TrimSuffix(long.Replace(session), "\n"), "\n") {
		switch what, text, _ := strings.Cut(line, " "); {
		case line == "< closed":
			if rest, err := io.ReadAll(r); len(rest) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("step %d: %q, %v instead of the end", i, rest, err)
			}
		case line == "< hang up":
			c.Close()
		case what == "<":
			if got, err := reply(r); !strings.HasPrefix(got, text) {
				t.Fatalf("step %d: %q, %v; want %s", i, got, err, text)
			}
		case what == ">":
			io.WriteString(c, text+"\r\n") // if this fails, so does reading the next reply
		case what == ">>":
			raw, err := strconv.Unquote(`"` + text + `"`)
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(c, raw)
		default:
			t.Fatalf("step %d: %q is not a step", i, line)
		}
	}
}

// reply reads one reply and returns its last line.
func reply(r *bufio.Reader) (string, error) {
	for {
		line, err := r.ReadString('\n')
		if err != nil || len(line) < 4 || line[3] != '-' {
			return strings.TrimRight(line, "\r\n"), err
		}
	}
}

// TestListen checks that addresses are parsed, and that the error for an invalid address says what to write instead.
func TestListen(t *testing.T) {
	t.Parallel()
	got, err := ParseListen("lmtp+unix:/run/m.sock, lmtp://127.0.0.1:2400,smtp://:25,")
	want := []Address{{"unix", "/run/m.sock", true}, {"tcp", "127.0.0.1:2400", true}, {"tcp", ":25", false}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"smtp", "smtp://", "smtp://host", "lmtp+unix:relative", "http://a:1", "smtp://a:25/x", "smtp://u@a:25", ":25"} {
		if got, err := ParseListen(bad); err == nil {
			t.Errorf("%s: %v", bad, got)
		}
	}
}

// TestUnix checks that the server replaces a stale socket with one of mode 0660. It must identify the user at the
// other end, and trust only the mail server's user.
func TestUnix(t *testing.T) {
	t.Parallel()
	for _, uid := range []int{os.Getuid(), os.Getuid() + 1, -1} {
		path := filepath.Join(t.TempDir(), "lmtp.sock")
		stale, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		stale.(*net.UnixListener).SetUnlinkOnClose(false)
		stale.Close()
		at, kept := serve(t, func(c *Config) {
			c.Listen, c.MTAUser, c.Checker.Trusted = []Address{{"unix", path, true}}, uid, "mx.example.net"
		})
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o660 {
			t.Errorf("%v %v", info.Mode(), err)
		}
		play(t, at[0], "< 220\n> LHLO c\n< 250\n> MAIL FROM:<>\n< 250\n> RCPT TO:<build@mail.example.net>\n< 250\n> DATA\n< 354\n"+
			"> Authentication-Results: mx.example.net; dmarc=pass header.from=example.org\n> Received: by mx.example.net\n"+
			"> From: a@example.org\n> \n> .\n< 250\n> QUIT\n< 221\n< closed")
		if got := kept.kept[0].Auth.Auth(); got != map[bool]string{true: "dmarc:example.org", false: "none"}[uid == os.Getuid()] {
			t.Errorf("uid %d: %s", uid, got)
		}
		if raw := string(kept.kept[0].Raw); !strings.HasPrefix(raw, "Return-Path: <>\r\nReceived: from c\r\n\tby mx.example.net with LMTP; ") ||
			!strings.HasSuffix(raw, "\r\nFrom: a@example.org\r\n\r\n") {
			t.Errorf("%q", raw)
		}
	}
}

// TestTooMany checks that connections beyond a limit are closed, and that the server accepts connections again once
// earlier ones have ended.
func TestTooMany(t *testing.T) {
	t.Parallel()
	for _, change := range []func(*Config){func(c *Config) { c.MaxConns = 2 }, func(c *Config) { c.MaxConnsPerHost = 2 }} {
		at, _ := serve(t, change)
		greeting := func() (net.Conn, string) {
			c, err := net.Dial(at[0].Network(), at[0].String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			c.SetDeadline(time.Now().Add(time.Minute))
			line, _ := reply(bufio.NewReader(c))
			return c, line[:min(3, len(line))]
		}
		first, a := greeting()
		_, b := greeting()
		_, third := greeting()
		if a != "220" || b != "220" || third != "421" {
			t.Errorf("%s %s %s", a, b, third)
		}
		first.Close()
		for got := ""; got != "220"; {
			_, got = greeting()
			if got != "421" && got != "220" {
				t.Fatalf("%q", got)
			}
		}
	}
}

// TestUnfinished checks that an incoming message is stored in a temporary file, and that the file's space is released
// no matter how the transfer ends. If there is no space left, the reply must ask the sender to try again later.
func TestUnfinished(t *testing.T) {
	t.Parallel()
	room, err := spool.New(t.TempDir(), 4<<20)
	if err != nil {
		t.Fatal(err)
	}
	at, kept := serve(t, func(c *Config) { c.Spool = room })
	begin := func(lines int) (net.Conn, *bufio.Reader) {
		c, err := net.Dial(at[0].Network(), at[0].String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(time.Minute))
		r := bufio.NewReader(c)
		io.WriteString(c, "HELO c\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<build@mail.example.net>\r\nDATA\r\n")
		for range 5 {
			reply(r)
		}
		io.WriteString(c, "From: a@b.example\r\n\r\n"+strings.Repeat(strings.Repeat("x", 1022)+"\r\n", lines))
		return c, r
	}
	used := func(files int64, memory int64) func() bool {
		return func() bool { return room.Usage() == spool.Usage{Files: files, Memory: memory} }
	}
	first, _ := begin(2500)
	until(t, used(3<<20, spool.BufferBytes))
	second, answers := begin(2500)
	io.WriteString(second, ".\r\n")
	if got, _ := reply(answers); !strings.HasPrefix(got, "452 4.3.1") {
		t.Errorf("%q over the limit", got)
	}
	small, answers := begin(10)
	io.WriteString(small, ".\r\n")
	if got, _ := reply(answers); !strings.HasPrefix(got, "250") {
		t.Errorf("%q for a small message", got)
	}
	first.Close()
	until(t, used(0, 0))
	third, answers := begin(2500)
	io.WriteString(third, ".\r\n")
	if got, _ := reply(answers); !strings.HasPrefix(got, "250") {
		t.Errorf("%q after room was freed", got)
	}
	until(t, used(0, 0))
	if n := strings.Count(kept.deliveries(), "\n"); n != 2 {
		t.Errorf("%d messages", n)
	}
}

// until waits until ok returns true.
func until(t *testing.T, ok func() bool) {
	t.Helper()
	waits.Until(t, "the condition is met", ok)
}

// TestHosts checks that an IPv6 /64 is treated as one host.
func TestHosts(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"192.0.2.1:25": "192.0.2.1", "[::ffff:192.0.2.1]:25": "192.0.2.1", "[2001:db8:1:2:3:4:5:6]:25": "2001:db8:1:2::/64",
		"[2001:db8:1:2::1]:25": "2001:db8:1:2::/64", "[2001:db8:1:3::1]:25": "2001:db8:1:3::/64", "[fe80::1%eth0]:25": "fe80::/64",
	} {
		if got := hostOf(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address))); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
	if got := hostOf(&net.UnixAddr{Name: "/run/lmtp"}); got != "" {
		t.Errorf("the host of a Unix socket is %q", got)
	}
}

// pipes is a listener that accepts a single connection, which is one end of a pipe.
type pipes struct{ one chan net.Conn }

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p.one
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (pipes) Close() error { return nil }

func (pipes) Addr() net.Addr { return &net.TCPAddr{} }

// TestFirstCommand checks that a client that has not sent a complete line is disconnected after firstTime, and that an
// idle client is disconnected after commandTime.
func TestFirstCommand(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]time.Duration{"": firstTime, "EHL": firstTime, "NOOP\r\n": commandTime} {
		synctest.Test(t, func(t *testing.T) {
			s := New(Config{Host: "mx.example.net", Log: slog.New(slog.DiscardHandler)})
			client, server := net.Pipe()
			one := make(chan net.Conn, 1)
			one <- server
			smtp := s.server(t.Context(), Address{})
			go smtp.Serve(&limited{Listener: pipes{one}, server: s, hosts: map[string]int{}})
			began := time.Now()
			r := bufio.NewReader(client)
			reply(r)
			io.WriteString(client, said)
			io.Copy(io.Discard, r)
			if took := time.Since(began); took != want {
				t.Errorf("after %q the connection ended in %s, want %s", said, took, want)
			}
			close(one)
			client.Close()
			smtp.Close()
		})
	}
}

// TestSTARTTLS checks that after STARTTLS, the server accepts a valid message, refuses a message with invalid line
// endings, and discards plain text that it received before TLS started.
func TestSTARTTLS(t *testing.T) {
	t.Parallel()
	web := httptest.NewTLSServer(nil) // only its certificate is used
	defer web.Close()
	at, kept := serve(t, func(c *Config) { c.TLS = web.TLS })
	for _, c := range []struct{ text, want string }{{"Hi", "250"}, {"Hi\n.\r\nMAIL FROM:<a@b.example>", "550 5.6.0"}, {"H\x00i", "550 5.6.0"}} {
		plain, err := net.Dial("tcp", at[0].String())
		if err != nil {
			t.Fatal(err)
		}
		defer plain.Close()
		plain.SetDeadline(time.Now().Add(time.Minute))
		r := bufio.NewReader(plain)
		io.WriteString(plain, "EHLO c\r\nMAIL FROM:<first@example.org>\r\nSTARTTLS\r\n")
		for range 4 {
			reply(r)
		}
		private := tls.Client(plain, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // a test certificate
		r = bufio.NewReader(private)
		io.WriteString(private, "RCPT TO:<build@mail.example.net>\r\nEHLO c\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<build@mail.example.net>\r\nDATA\r\n"+
			"From: a@b.example\r\n\r\n"+c.text+"\r\n.\r\n")
		for i, want := range []string{"502", "250", "250", "250", "354", c.want} {
			if got, err := reply(r); !strings.HasPrefix(got, want) {
				t.Fatalf("%q: reply %d: %q, %v; want %s", c.text, i, got, err, want)
			}
		}
	}
	if got := kept.deliveries(); got != "build build@mail.example.net a@b.example \"\"\n" {
		t.Error(got)
	}
}

// FuzzSession checks that the server keeps running no matter what a client sends, and that it stores only complete
// messages with valid line endings.
func FuzzSession(f *testing.F) {
	files, err := filepath.Glob("testdata/sessions/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var said strings.Builder
		for line := range strings.Lines(string(a.Files[0].Data)) {
			if raw, ok := strings.CutPrefix(strings.TrimSpace(line), ">> "); ok {
				raw, _ = strconv.Unquote(`"` + raw + `"`)
				said.WriteString(raw)
			} else if text, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "> "); ok {
				said.WriteString(text + "\r\n")
			}
		}
		f.Add([]byte(said.String()))
	}
	at, kept := serve(f, nil)
	f.Fuzz(func(t *testing.T, said []byte) {
		c, err := net.Dial(at[0].Network(), at[0].String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(time.Minute))
		c.Write(said)
		c.(*net.TCPConn).CloseWrite()
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("the server does not end the connection")
		}
		kept.mu.Lock()
		defer kept.mu.Unlock()
		for _, d := range kept.kept {
			if (&lines{}).scan(d.Raw) != nil || !slices.Contains([]string{"build", "ops", "admin"}, d.To[0].Mailbox) {
				t.Fatalf("kept for %s: %q", d.To[0].Mailbox, d.Raw)
			}
		}
		kept.kept = nil
	})
}
