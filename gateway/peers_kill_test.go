package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	netmail "net/mail"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"mailtree/fixtures/waits"
)

const kills = 100

// load sends mail in both directions while the test kills the server.
type load struct {
	*office

	mu       sync.Mutex
	begun    int             // number of emails in both directions
	answered map[string]bool // whether an email was accepted, by subject
	taken    map[string]int  // number of times the smarthost accepted an email, by subject
}

// next returns the subject for the next email.
func (o *load) next(direction string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.begun++
	return direction + strconv.Itoa(o.begun)
}

// answer records that an email with the given subject was accepted.
func (o *load) answer(subject string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answered[subject] = true
}

func (o *load) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.answered)
}

// deliver delivers one email after another, as a mail server does. It repeats each email until it has been accepted.
func (o *load) deliver(ctx context.Context) {
	for ctx.Err() == nil {
		subject := o.next("in")
		raw := fmt.Sprintf("From: ann@%[1]s\r\nTo: build@%[2]s\r\nMessage-ID: <%[3]s@%[1]s>\r\nSubject: %[3]s\r\n\r\nHello.\r\n", theirs, ours, subject)
		for o.try(raw) != nil {
			waits.Pace(10 * time.Millisecond)
		}
		o.answer(subject)
	}
}

// try delivers an email over LMTP. It returns nil if the reply is 250.
func (o *load) try(raw string) error {
	conn, err := net.Dial("unix", o.socket())
	if err != nil {
		return err
	}
	c := smtp.NewClientLMTP(conn)
	defer c.Close()
	if err := errors.Join(c.Mail("ann@"+theirs, nil), c.Rcpt("build@"+ours, nil)); err != nil {
		return err
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, raw); err != nil {
		return err
	}
	answers, err := w.CloseWithLMTPResponse()
	if err == nil && answers["build@"+ours] == nil {
		err = errors.New("no reply")
	}
	return err
}

// send calls the tool to send one email after another. It does not repeat calls that got no response.
func (o *load) send(ctx context.Context) {
	for ctx.Err() == nil {
		one, cancel := context.WithTimeout(ctx, time.Minute)
		c := o.tools(one)
		in, err := c.StdinPipe()
		out, err2 := c.StdoutPipe()
		if err := errors.Join(err, err2, c.Start()); err != nil {
			o.t.Error(err)
		}
		for answers := bufio.NewReader(out); ; {
			subject := o.next("out")
			args := fmt.Sprintf(`{"from_mailbox":"build","to":"ann@%s","subject":%q,"body":"Hello."}`, theirs, subject)
			io.WriteString(in, request("email_send", args))
			line, err := answers.ReadBytes('\n')
			var reply struct {
				Result *struct{ IsError bool }
			}
			if err != nil || json.Unmarshal(line, &reply) != nil || reply.Result == nil || reply.Result.IsError {
				break
			}
			o.answer(subject)
		}
		cancel()
		c.Wait()
	}
}

// NewSession starts a smarthost session.
func (o *load) NewSession(*smtp.Conn) (smtp.Session, error) { return hop{o}, nil }

// hop is a session with the smarthost. It accepts everything.
type hop struct{ o *load }

func (hop) Mail(string, *smtp.MailOptions) error { return nil }
func (hop) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (hop) Reset()                               {}
func (hop) Logout() error                        { return nil }

func (h hop) Data(r io.Reader) error {
	m, err := netmail.ReadMessage(r)
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, m.Body); err != nil {
		return err
	}
	h.o.mu.Lock()
	defer h.o.mu.Unlock()
	h.o.taken[m.Header.Get("Subject")]++
	return nil
}

// newLoad starts an office, and a smarthost that accepts the office's outgoing mail.
func newLoad(t *testing.T) *load {
	t.Helper()
	o := &load{answered: map[string]bool{}, taken: map[string]int{}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	smarthost := smtp.NewServer(o)
	smarthost.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	go smarthost.Serve(l)
	t.Cleanup(func() { smarthost.Close() })
	o.office = newOffice(t, "LOG_LEVEL=warn", "GATEWAY_ALLOW="+theirs, "GATEWAY_RATE=100000", "GATEWAY_SMARTHOST=smtp://"+l.Addr().String(),
		"GATEWAY_RESOLVER="+names(t))
	return o
}

// TestPeerKilled checks that the server loses no mail when it is killed a hundred times under load. Every email that
// was accepted with 250 must be in the tree exactly once. The smarthost must have received every sent email exactly
// once, except for emails whose state is unknown.
func TestPeerKilled(t *testing.T) {
	peers(t)
	o := newLoad(t)
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for range 3 {
		clients.Go(func() { o.deliver(ctx) })
	}
	for range 2 {
		clients.Go(func() { o.send(ctx) })
	}
	for range kills {
		want := o.count() + 1 + rand.N(8)
		until(t, "answers", func() bool { return o.count() >= want })
		waits.Pace(rand.N(15 * time.Millisecond))
		o.kill()
		o.start()
	}
	stop()
	clients.Wait()

	kept := map[string]int{}
	for _, m := range o.box(t, "inbox") {
		kept[m.Subject]++
		if !strings.HasPrefix(m.Subject, "in") { // a report from Postmaster
			continue
		}
		if _, err := m.raw(); err != nil {
			t.Error(err)
		}
	}
	o.settle(t)
	sent, unknown := o.sent(t)
	in, out := 0, 0
	for _, s := range slices.Sorted(maps.Keys(o.answered)) {
		switch {
		case strings.HasPrefix(s, "in"):
			if in++; kept[s] != 1 {
				t.Errorf("%s was accepted with 250 and is stored %d times", s, kept[s])
			}
		default:
			if out++; !sent[s] || o.taken[s] == 0 && !unknown[s] {
				t.Errorf("%s was answered: in the outbox %t, taken %d times, unknown %t", s, sent[s], o.taken[s], unknown[s])
			}
		}
	}
	for s, n := range o.taken {
		if n != 1 {
			t.Errorf("%s was sent %d times", s, n)
		}
	}
	if in < kills {
		t.Errorf("only %d emails were received: there was no load", in)
	}
	t.Logf("%d kills: %d emails received, %d sent, %d of them with an unknown result", kills, in, out, len(unknown))
}

// settle waits until the queue is empty.
func (o *load) settle(t *testing.T) {
	t.Helper()
	until(t, "the end of the queue", func() bool { return len(o.files(t, `/\.mailtree/queue/[^/]*\.json$`)) == 0 })
}

// sent returns the subjects of all emails in the outbox, and the subjects of the emails whose result is unknown.
func (o *load) sent(t *testing.T) (all, unknown map[string]bool) {
	t.Helper()
	all, unknown = map[string]bool{}, map[string]bool{}
	ids := map[string]string{}
	for _, m := range o.box(t, "outbox") {
		ids[m.ID], all[m.Subject] = m.Subject, true
	}
	for path, data := range o.files(t, `/\.mailtree/queue/ended/`) {
		id := filepath.Base(path)[:len("msg_20260101_0123456789abcdef")]
		if bytes.Contains(data, []byte(`"unknown"`)) {
			unknown[ids[id]] = true
		}
	}
	return all, unknown
}
