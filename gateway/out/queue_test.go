package out

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mailtree/gateway/message"
	"mailtree/maildir/outgoing"
)

// peer is a mail server for tests. The map answers contains its reply to each command and, under the key "end", its
// reply to the end of a message. If the reply is "drop", the peer closes the connection instead of replying.
type peer struct {
	answers map[string]string
	tls     *tls.Config // if not nil, STARTTLS is offered
	caps    string

	mu    sync.Mutex
	taken []string // messages accepted with 250
	whole int      // number of messages that were received completely
	said  []string
}

func (p *peer) listen(t *testing.T, wrap func(net.Listener) net.Listener) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if wrap != nil {
		l = wrap(l)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return l.Addr().String()
}

func (p *peer) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	io.WriteString(c, "220 peer\r\n")
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimSpace(line)
		verb, _, _ := strings.Cut(line, " ")
		p.mu.Lock()
		p.said = append(p.said, line)
		p.mu.Unlock()
		answer := map[string]string{"DATA": "354 go on", "QUIT": "221 bye", "STARTTLS": "220 go on", "AUTH": "235 welcome"}[verb]
		if verb == "EHLO" {
			answer = "250-peer\r\n250-" + p.caps + "\r\n250 SIZE"
			if _, private := c.(*tls.Conn); p.tls != nil && !private {
				answer = "250-peer\r\n250-STARTTLS\r\n" + answer
			}
		}
		if a := p.answer(verb); a != "" {
			answer = a
		} else if answer == "" {
			answer = "250 ok"
		}
		if answer == "drop" {
			return
		}
		io.WriteString(c, answer+"\r\n")
		switch {
		case verb == "STARTTLS":
			c = tls.Server(c, p.tls)
			r = bufio.NewReader(c)
		case verb == "DATA" && strings.HasPrefix(answer, "354"):
			if !p.message(c, r) {
				return
			}
		}
	}
}

func (p *peer) answer(verb string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answers[verb]
}

// say replaces the peer's replies.
func (p *peer) say(answers map[string]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers = answers
}

// ended returns the number of messages that were received completely.
func (p *peer) ended() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.whole
}

// takes returns the number of messages that the peer has accepted with 250.
func (p *peer) takes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.taken)
}

// heard returns the commands that clients have sent since the last call.
func (p *peer) heard() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	said := strings.Join(p.said, "\n")
	p.said = nil
	return said
}

// message receives a message. It returns false if the connection must end.
func (p *peer) message(c net.Conn, r *bufio.Reader) bool {
	var text strings.Builder
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return false
		}
		if line == ".\r\n" {
			break
		}
		text.WriteString(line)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.whole++
	answer := p.answers["end"]
	if answer == "drop" {
		return false
	}
	if answer == "" {
		answer = "250 2.0.0 kept as 1"
	}
	if answer[0] == '2' {
		p.taken = append(p.taken, text.String())
	}
	io.WriteString(c, answer+"\r\n")
	return true
}

// memory is a store for tests. If failAt is positive, write number failAt and all later writes fail.
type memory struct {
	mu      sync.Mutex
	items   map[string]outgoing.Item
	reports []string
	writes  int
	failAt  int
	raw     error // error returned by Raw
}

func (s *memory) Open(context.Context) (all []outgoing.Item, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.items {
		if !i.Ended() {
			all = append(all, i)
		}
	}
	return all, nil
}

func (s *memory) Find(_ context.Context, id string) (all []outgoing.Item, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.items {
		if i.MessageID == id {
			all = append(all, i)
		}
	}
	return all, nil
}

func (s *memory) Get(_ context.Context, id string) (outgoing.Item, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.items[id]
	if !ok {
		return i, ErrNoItem
	}
	return i, nil
}

func (s *memory) write() error {
	if s.writes++; s.failAt > 0 && s.writes >= s.failAt {
		return errors.New("killed")
	}
	return nil
}

func (s *memory) Save(_ context.Context, i outgoing.Item) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.write(); err != nil {
		return err
	}
	s.items[i.ID] = i
	return nil
}

func (s *memory) Raw(_ context.Context, i outgoing.Item) ([]byte, error) {
	if s.raw != nil {
		return nil, s.raw
	}
	return []byte("From: " + i.From + "\r\n\r\nHi.\r\n"), nil
}

func (s *memory) Report(_ context.Context, items []outgoing.Item) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.write(); err != nil {
		return err
	}
	s.reports = append(s.reports, fmt.Sprint(len(items), items[0].State))
	return nil
}

// scene contains a store with one item, a clock and a peer.
type scene struct {
	*peer
	store *memory
	now   time.Time
	smart *Smarthost
}

var start = time.Date(2026, 2, 3, 9, 0, 0, 0, time.UTC)

func newScene(t *testing.T, p *peer) *scene {
	host, port, _ := net.SplitHostPort(p.listen(t, nil))
	return &scene{p, &memory{items: map[string]outgoing.Item{"1": {
		ID: "1", Message: "m", MessageID: "m@mail.example.net", From: "build@mail.example.net", To: "ann@example.org", State: outgoing.Queued, Queued: start, Next: start,
	}}}, start, &Smarthost{Host: host, Port: port, Name: "mx.example.net"}}
}

// pass processes the due items in a new queue, as if the server had restarted.
func (s *scene) pass(t *testing.T) {
	t.Helper()
	q := s.queue()
	for range 3 { // the first pass starts the items, the second reports them, and the third finds nothing
		q.pass(t.Context())
		q.wg.Wait()
	}
}

func (s *scene) queue() *Queue {
	return NewQueue(s.store, s.smart, func() time.Time { return s.now }, slog.New(slog.DiscardHandler))
}

// TestStates checks that the remote server's reply determines the item's state.
func TestStates(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers map[string]string
		state   outgoing.State
		reply   string
		reports int
	}{
		"taken":               {nil, outgoing.Sent, "250 2.0.0 kept as 1", 0},
		"end without a reply": {map[string]string{"end": "drop"}, outgoing.Unknown, "did not confirm", 1},
		"refused at the end":  {map[string]string{"end": "554 5.7.1 spam"}, outgoing.Failed, "554 5.7.1 spam", 1},
		"busy at the end":     {map[string]string{"end": "451 4.3.0 later"}, outgoing.Deferred, "451 4.3.0 later", 0},
		"no such recipient":   {map[string]string{"RCPT": "550-5.1.1 no such\r\n550 5.1.1 \u202euser"}, outgoing.Failed, "550 5.1.1 no such user", 1},
		"greylisted":          {map[string]string{"RCPT": "450 4.2.0 greylisted"}, outgoing.Deferred, "450 4.2.0 greylisted", 0},
		"sender refused":      {map[string]string{"MAIL": "553 5.1.8 go away"}, outgoing.Failed, "553 5.1.8 go away", 1},
		"dropped at DATA":     {map[string]string{"DATA": "drop"}, outgoing.Deferred, "EOF", 0},
		"dropped at greeting": {map[string]string{"EHLO": "drop"}, outgoing.Deferred, "EOF", 0},
		"greeting refused":    {map[string]string{"EHLO": "554 5.0.0 not you"}, outgoing.Deferred, "not you", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, &peer{answers: c.answers})
			s.pass(t)
			s.pass(t)
			i := s.store.items["1"]
			if i.State != c.state || !strings.Contains(i.Reply, c.reply) || len(s.store.reports) != c.reports || i.Attempts != 1 {
				t.Errorf("%+v, reports %v", i, s.store.reports)
			}
			if s.ended() > 1 {
				t.Errorf("sent %d times", s.ended())
			}
		})
	}
}

// TestNoEmail checks that the item of an undone message fails without a report, and that there is a report if an email
// cannot be composed.
func TestNoEmail(t *testing.T) {
	t.Parallel()
	for err, reports := range map[error]int{ErrTakenBack: 0, &Refusal{"to: cannot be written in a header"}: 1} {
		s := newScene(t, &peer{})
		s.store.raw = err
		s.pass(t)
		if i := s.store.items["1"]; i.State != outgoing.Failed || !i.Ended() || len(s.store.reports) != reports || s.ended() > 0 {
			t.Errorf("%v: %+v %v", err, i, s.store.reports)
		}
		if i := s.store.items["1"]; reports == 0 && !strings.Contains(i.Reply, "If you restored it, send it again") {
			t.Errorf("a receipt says %q", i.Reply)
		}
	}
}

// TestRetries checks that the waits between attempts grow from five minutes to four hours, and that the attempts end
// with a report after five days.
func TestRetries(t *testing.T) {
	t.Parallel()
	s := newScene(t, &peer{answers: map[string]string{"RCPT": "450 later"}})
	var waits []time.Duration
	for s.store.items["1"].State != outgoing.Failed {
		before := s.now
		s.pass(t)
		if i := s.store.items["1"]; i.State == outgoing.Deferred {
			waits = append(waits, i.Next.Sub(before))
			s.now = i.Next
		}
		if len(waits) > 100 {
			t.Fatal("the retries do not end")
		}
	}
	if fmt.Sprint(waits[:8]) != "[5m0s 10m0s 20m0s 40m0s 1h20m0s 2h40m0s 4h0m0s 4h0m0s]" {
		t.Error(waits)
	}
	if age := s.now.Sub(start); age > tooOld || age < tooOld-longestWait {
		t.Errorf("the retries ended after %s", age)
	}
	if i := s.store.items["1"]; !strings.HasPrefix(i.Reply, "gave up after five days: 450 later") || len(s.store.reports) != 1 {
		t.Errorf("%+v %v", i, s.store.reports)
	}
}

// TestKilled checks what happens if the server is killed at each write and another server takes over. An accepted
// message must be sent once, a message that may have been accepted must not be sent again, and the sender must be
// notified about unsent messages.
func TestKilled(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string]map[string]string{"taken": nil, "refused": {"end": "554 no"}, "unanswered": {"end": "drop"}} {
		for n := 1; n <= 5; n++ {
			s := newScene(t, &peer{answers: answers})
			s.store.failAt = n
			s.pass(t)
			s.store.failAt = 0
			s.pass(t)
			s.pass(t)
			i := s.store.items["1"]
			if s.ended() != 1 || i.State == outgoing.Sent != (s.takes() == 1 && i.State != outgoing.Unknown) || !i.Ended() {
				t.Errorf("%s, killed at write %d: ended %d times, taken %d, %+v", name, n, s.ended(), s.takes(), i)
			}
			if i.State != outgoing.Sent && len(s.store.reports) == 0 {
				t.Errorf("%s, killed at write %d: %s, and no one was notified", name, n, i.State)
			}
		}
	}
}

// TestBounce checks that a delivery status report marks sent items as failed, but only for recipients listed as
// failed.
func TestBounce(t *testing.T) {
	t.Parallel()
	s := newScene(t, &peer{})
	s.pass(t)
	bounce := func(id, address, action string) outgoing.State {
		if err := s.queue().Bounce(t.Context(), &message.Bounce{MessageID: id, Recipients: []message.Recipient{{Address: address, Action: action, Status: "5.1.1"}}}); err != nil {
			t.Fatal(err)
		}
		return s.store.items["1"].State
	}
	if bounce("x@mail.example.net", "ann@example.org", "failed") != outgoing.Sent || bounce("m@mail.example.net", "bob@example.org", "failed") != outgoing.Sent ||
		bounce("m@mail.example.net", "ann@example.org", "delayed") != outgoing.Sent || bounce("", "ann@example.org", "failed") != outgoing.Sent {
		t.Error("a report about something else changed the state")
	}
	if bounce("m@mail.example.net", "Ann@example.org", "failed") != outgoing.Failed || s.store.items["1"].Reply != "5.1.1" {
		t.Errorf("%+v", s.store.items["1"])
	}
}

// TestReports checks that failed recipients are reported once every recipient has been tried. Recipients that are tried
// again are reported separately, when their attempts end.
func TestReports(t *testing.T) {
	t.Parallel()
	s := newScene(t, &peer{answers: map[string]string{"RCPT": "550 no"}})
	for n := range 2 {
		i := s.store.items["1"]
		i.ID, i.Next, i.Attempts = fmt.Sprint(n+2), start.Add(time.Hour), 5
		if n == 0 {
			i.State = outgoing.Deferred
		}
		s.store.items[i.ID] = i
	}
	s.pass(t)
	if len(s.store.reports) != 0 {
		t.Errorf("reported before every recipient was tried: %v", s.store.reports)
	}
	if err := s.queue().Drop(t.Context(), "3"); err != nil {
		t.Fatal(err)
	}
	s.pass(t)
	if fmt.Sprint(s.store.reports) != "[1failed]" {
		t.Errorf("a recipient that is still being retried was reported: %v", s.store.reports)
	}
	s.now = start.Add(time.Hour)
	s.pass(t)
	if fmt.Sprint(s.store.reports) != "[1failed 1failed]" {
		t.Errorf("after the last attempt: %v", s.store.reports)
	}
}

// TestClockAhead checks that an item that was deferred while the clock was ahead is retried without waiting for the
// deferred time.
func TestClockAhead(t *testing.T) {
	t.Parallel()
	s := newScene(t, &peer{answers: map[string]string{"RCPT": "450 later"}})
	s.now = start.AddDate(1, 0, 0)
	for _, i := range s.store.items {
		i.Queued, i.Next = s.now, s.now
		s.store.items[i.ID] = i
	}
	s.pass(t)
	if i := s.store.items["1"]; i.State != outgoing.Deferred || !i.Next.After(s.now) {
		t.Fatalf("%+v", i)
	}
	s.say(nil)
	s.now = start
	s.pass(t)
	if i := s.store.items["1"]; i.State != outgoing.Sent {
		t.Errorf("%+v", i)
	}
}

// TestOperator checks that the user can send an item again or drop it, unless it has already been sent.
func TestOperator(t *testing.T) {
	t.Parallel()
	s := newScene(t, &peer{answers: map[string]string{"end": "drop"}})
	s.pass(t)
	s.say(nil)
	if err := s.queue().Retry(t.Context(), "1"); err != nil {
		t.Fatal(err)
	}
	s.pass(t)
	if s.store.items["1"].State != outgoing.Sent || s.ended() != 2 {
		t.Errorf("%+v", s.store.items["1"])
	}
	for want, err := range map[string]error{
		`The email "1" was already sent.`:                                        s.queue().Retry(t.Context(), "1"),
		"No queued email \"2\". Run `mailtree gateway queue` to list the queue.": s.queue().Drop(t.Context(), "2"),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
	}
	s = newScene(t, &peer{answers: map[string]string{"RCPT": "450 later"}})
	s.pass(t)
	if err := s.queue().Drop(t.Context(), "1"); err != nil || s.store.items["1"].State != outgoing.Failed {
		t.Errorf("%v %+v", err, s.store.items["1"])
	}
}

// TestSmarthost checks that TLS is verified and that the password is read from its file. Neither mail nor the password
// may be sent to a server with a wrong certificate.
func TestSmarthost(t *testing.T) {
	t.Parallel()
	web := httptest.NewTLSServer(nil)
	defer web.Close()
	roots := x509.NewCertPool()
	roots.AddCert(web.Certificate())
	secret := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(secret, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &peer{caps: "AUTH PLAIN"}
	host, port, _ := net.SplitHostPort(p.listen(t, func(l net.Listener) net.Listener { return tls.NewListener(l, web.TLS) }))
	item := &outgoing.Item{From: "build@mail.example.net", To: "ann@example.org"}
	none := func() error { return nil }
	smart := &Smarthost{Host: host, Port: port, TLS: true, User: "u", PasswordFile: secret, Name: "mx", Config: &tls.Config{RootCAs: roots}}
	if reply, err := smart.Deliver(t.Context(), item, []byte("From: a@b\r\n\r\n"), none); err != nil || !strings.HasPrefix(reply, "250") {
		t.Errorf("%s %v", reply, err)
	}
	if said := p.heard(); !strings.Contains(said, "AUTH PLAIN AHUAaHVudGVyMg==") {
		t.Error(said)
	}
	smart.Config = nil
	var refusal *Refusal
	if _, err := smart.Deliver(t.Context(), item, nil, none); err == nil || errors.As(err, &refusal) || p.heard() != "" {
		t.Errorf("%v", err)
	}
	conn, _ := net.Dial("tcp", (&peer{}).listen(t, nil))
	if _, err := connect(t.Context(), conn, "mx", &tls.Config{}, true); err == nil || !strings.Contains(err.Error(), "STARTTLS") {
		t.Error(err)
	}
	if _, err := smart.Deliver(t.Context(), &outgoing.Item{From: "a@b", To: "a@b"}, nil, none); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
	for _, bad := range []string{"", "host", "http://h", "smtps://u:p@h", "smtp://", "smtp://h/x"} {
		if s, err := ParseSmarthost(bad); err == nil || strings.Contains(err.Error(), ":p@") {
			t.Errorf("%s: %+v %v", bad, s, err)
		}
	}
}

// names is a DNS resolver for tests.
type names struct {
	mx  []*net.MX
	err error
	ip  string
}

func (n names) LookupMX(context.Context, string) ([]*net.MX, error) { return n.mx, n.err }

func (n names) LookupIPAddr(_ context.Context, host string) ([]net.IPAddr, error) {
	if n.ip == "" {
		return nil, &net.DNSError{Name: host, IsNotFound: true}
	}
	return []net.IPAddr{{IP: net.ParseIP(n.ip)}}, nil
}

// TestMX checks that mail goes to the domain's server, over TLS if the server offers it, and never to this machine.
func TestMX(t *testing.T) {
	t.Parallel()
	web := httptest.NewTLSServer(nil)
	defer web.Close()
	p := &peer{tls: web.TLS, caps: "SMTPUTF8"}
	at := p.listen(t, nil)
	missing := &net.DNSError{IsNotFound: true}
	for name, c := range map[string]struct {
		names names
		to    string
		want  string
	}{
		"server":       {names{mx: []*net.MX{{Host: "mx.example.org."}}, ip: "192.0.2.1"}, "ann@example.org", "250"},
		"no mx":        {names{err: missing, ip: "192.0.2.1"}, "ann@example.org", "250"},
		"letters":      {names{err: missing, ip: "192.0.2.1"}, "änn@example.org", "250"},
		"null mx":      {names{mx: []*net.MX{{Host: "."}}}, "ann@example.org", "refused"},
		"no domain":    {names{err: missing}, "ann@example.org", "refused"},
		"dns down":     {names{err: &net.DNSError{IsTemporary: true}}, "ann@example.org", "later"},
		"mx nowhere":   {names{mx: []*net.MX{{Host: "mx.example.org."}}}, "ann@example.org", "later"},
		"this machine": {names{mx: []*net.MX{{Host: "mx.example.org."}}, ip: "127.0.0.1"}, "ann@example.org", "later"},
		"private":      {names{mx: []*net.MX{{Host: "mx.example.org."}}, ip: "10.0.0.1"}, "ann@example.org", "later"},
		"private six":  {names{mx: []*net.MX{{Host: "mx.example.org."}}, ip: "fd00::1"}, "ann@example.org", "later"},
		"link local":   {names{mx: []*net.MX{{Host: "mx.example.org."}}, ip: "169.254.169.254"}, "ann@example.org", "later"},
		"mapped":       {names{mx: []*net.MX{{Host: "mx.example.org."}}, ip: "::ffff:192.168.1.1"}, "ann@example.org", "later"},
		"shared":       {names{mx: []*net.MX{{Host: "mx.example.org."}}, ip: "100.64.0.1"}, "ann@example.org", "later"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &MX{Resolver: c.names, Name: "mx.example.net", dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				if address != "192.0.2.1:25" {
					t.Errorf("connected to %s", address)
				}
				return dial(ctx, network, at)
			}}
			p.heard()
			reply, err := m.Deliver(t.Context(), &outgoing.Item{From: "build@mail.example.net", To: c.to}, []byte("From: a@b\r\n\r\n"), func() error { return nil })
			var refusal *Refusal
			switch {
			case c.want == "refused" && errors.As(err, &refusal), c.want == "later" && err != nil && !errors.As(err, &refusal):
			case err != nil || !strings.HasPrefix(reply, c.want):
				t.Errorf("%q %v", reply, err)
			case strings.Count(p.heard(), "STARTTLS") != 1:
				t.Error("TLS was not started")
			}
		})
	}
	old := &peer{}
	at = old.listen(t, nil)
	m := &MX{Resolver: names{ip: "192.0.2.1"}, dial: func(ctx context.Context, network, _ string) (net.Conn, error) { return dial(ctx, network, at) }, Name: "mx"}
	var refusal *Refusal
	if _, err := m.Deliver(t.Context(), &outgoing.Item{From: "a@b", To: "änn@example.org"}, nil, func() error { return nil }); !errors.As(err, &refusal) {
		t.Errorf("non-ASCII letters to a server without SMTPUTF8: %v", err)
	}
}
