package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-msgauth/dkim"
	"github.com/emersion/go-smtp"

	"mailtree/fixtures/inmemory"
	"mailtree/gateway"
	"mailtree/gateway/dns"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// smtpPeer is a mail server that accepts and keeps all mail. If hold is set, it receives messages but does not
// respond.
type smtpPeer struct {
	address string

	mu    sync.Mutex
	taken [][]byte
	hold  chan struct{} // closed by the test; if nil, the server responds
}

func newPeer(t *testing.T) *smtpPeer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &smtpPeer{address: l.Addr().String()}
	s := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &peerSession{p}, nil }))
	s.Domain = "mx.example.org"
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return p
}

// messages returns the messages that arrived completely, whether or not the server responded.
func (p *smtpPeer) messages() [][]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([][]byte(nil), p.taken...)
}

type peerSession struct{ p *smtpPeer }

func (*peerSession) Reset()                               {}
func (*peerSession) Logout() error                        { return nil }
func (*peerSession) Mail(string, *smtp.MailOptions) error { return nil }
func (*peerSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	if strings.HasPrefix(to, "nobody@") {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
	}
	return nil
}

func (s *peerSession) Data(r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.p.mu.Lock()
	s.p.taken = append(s.p.taken, data)
	hold := s.p.hold
	s.p.mu.Unlock()
	if hold != nil {
		<-hold
	}
	return nil
}

// TestOutgoing checks that a message is signed and sent immediately. If the other server refuses the message, the
// refusal is reported in the message's thread. If our server is killed before the other server has answered, the
// message is not sent again, and the uncertain delivery is reported.
func TestOutgoing(t *testing.T) {
	t.Parallel()
	peer := newPeer(t)
	d := newDaemon(t, filepath.Join(inmemory.Dir(t), "store"))
	d.real = true
	d.env = []string{"GATEWAY_ALLOW=example.org", "GATEWAY_SMARTHOST=smtp://" + peer.address, "MAIL_DOMAIN=mail.example.net",
		"MAILTREE_ME=Ann"}
	d.start()
	folder := gateway.KeyFolder(d.store, "mail.example.net")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	key, err := dns.MakeKey(filepath.Join(folder, "mt2026.pem"))
	if err != nil {
		t.Fatal(err)
	}
	d.must("create_agent", map[string]any{"project_key": "/p/shop", "program": "x", "model": "y", "task_description": "t", "name_hint": "Ann"})
	d.must("create_agent", map[string]any{"project_key": "/p/shop", "program": "x", "model": "y", "task_description": "t", "name_hint": "Bob"})
	send := func(subject, bcc string, to ...string) (id string) {
		t.Helper()
		var made struct{ ID string }
		err := d.call("send_message", map[string]any{"project_key": "/p/shop", "from_agent": "Ann", "to": to, "bcc": strings.Fields(bcc),
			"subject": subject, "body_md": "It is **out**."}, &made)
		if err != nil {
			t.Fatal(err)
		}
		return made.ID
	}
	id := send("The first", "dan@example.org", "Bob", "cat@example.org")
	until(t, "the first message to arrive", time.Minute, func() bool { return len(peer.messages()) == 2 })
	until(t, "the receipts to show that both were sent", time.Minute, func() bool {
		said := d.receipts(id)
		return said == "Bob  true,cat@example.org sent true,dan@example.org sent true"
	})
	first := peer.messages()[0]
	if bytes.Contains(first, []byte("dan@")) {
		t.Errorf("the email names a bcc recipient:\n%s", first)
	}
	for _, want := range []string{"To: <Bob@mail.example.net>, <cat@example.org>\r\n", "Auto-Submitted: auto-generated\r\n", "<strong>out</strong>"} {
		if !bytes.Contains(first, []byte(want)) {
			t.Errorf("no %q in\n%s", want, first)
		}
	}
	if v, err := dkim.VerifyWithOptions(bytes.NewReader(first), &dkim.VerifyOptions{LookupTXT: func(name string) ([]string, error) {
		records, err := dns.Records("mail.example.net", "mx.example.net", "mt2026", &key.PublicKey)
		for _, r := range records {
			if strings.TrimSuffix(r.Name, ".") == name {
				return []string{r.Value}, nil
			}
		}
		return nil, err
	}}); err != nil || len(v) != 1 || v[0].Err != nil {
		t.Errorf("the signature: %v %+v", err, v)
	}

	const gone = "it was already sent to cat@example.org, dan@example.org and cannot be recalled\n"
	if said := d.mailtree("undo", id, "--project", "/p/shop"); !strings.Contains(said, gone) {
		t.Errorf("the undo says %s", said)
	}
	d.mailtree("redo", id, "--project", "/p/shop")
	if said := d.mailtree("rm", id, "--project", "/p/shop"); !strings.Contains(said, gone) {
		t.Errorf("the deletion says %s", said)
	}

	send("The second", "", "nobody@example.org")
	report := d.awaitReport("Not delivered: The second")
	if !strings.Contains(report, "nobody@example.org: failed. 550 5.1.1 no such user") {
		t.Errorf("the report says %q", report)
	}

	peer.mu.Lock()
	peer.hold = make(chan struct{})
	peer.mu.Unlock()
	id = send("The third", "", "cat@example.org")
	until(t, "the third message to arrive", time.Minute, func() bool { return len(peer.messages()) == 3 })
	d.kill()
	peer.mu.Lock()
	close(peer.hold)
	peer.hold = nil
	peer.mu.Unlock()
	d.start()
	d.awaitReport("Possibly not delivered: The third")
	if said := d.receipts(id); said != "cat@example.org unknown false" {
		t.Errorf("the receipt says %s", said)
	}
	if n := len(peer.messages()); n != 3 {
		t.Errorf("%d messages were sent", n)
	}
	until(t, "the queue to be empty", time.Minute, func() bool {
		open, _ := filepath.Glob(filepath.Join(d.tree(), format.QueueDir, "*.json"))
		return len(open) == 0
	})
	d.stop()
}

// receipts returns the states of the recipients of one of Ann's messages.
func (d *daemon) receipts(id string) string {
	d.t.Helper()
	var page struct {
		Messages []struct{ Receipts []index.Receipt }
	}
	if err := d.call("check_my_messages", map[string]any{"project_key": "/p/shop", "agent_name": "Ann", "message_id": id}, &page); err != nil {
		d.t.Fatal(err)
	}
	var all []string
	for _, r := range page.Messages[0].Receipts {
		all = append(all, fmt.Sprint(r.Agent, " ", r.Status, " ", r.Delivered))
	}
	return strings.Join(all, ",")
}

// must is like call, but the call must succeed.
func (d *daemon) must(tool string, args any) {
	d.t.Helper()
	if err := d.call(tool, args, nil); err != nil {
		d.t.Fatalf("%s: %v", tool, err)
	}
}

// awaitReport waits until Ann's inbox contains a message from Postmaster with the given subject, and returns the body.
func (d *daemon) awaitReport(subject string) (body string) {
	d.t.Helper()
	until(d.t, subject, time.Minute, func() bool {
		var page struct {
			Messages []struct {
				From, Subject string
				BodyMD        string `json:"body_md"`
				InReplyTo     string `json:"in_reply_to"`
			}
		}
		if err := d.call("check_my_messages", map[string]any{"project_key": "/p/shop", "agent_name": "Ann", "include_bodies": true}, &page); err != nil {
			d.t.Fatal(err)
		}
		for _, m := range page.Messages {
			if m.From == format.Postmaster && m.Subject == subject && m.InReplyTo != "" {
				body = m.BodyMD
				return true
			}
		}
		return false
	})
	return body
}
