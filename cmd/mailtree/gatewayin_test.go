package main

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/emersion/go-msgauth/dkim"
	"github.com/emersion/go-smtp"
	"github.com/miekg/dns"
)

// dkimKey signs the mail of every domain in the tests.
var dkimKey = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return k
})

// serveDNS runs a name server that returns the key and a DMARC policy for every domain. It returns the server's
// address.
func serveDNS(t *testing.T) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(&dkimKey().PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	records := map[string]string{
		"s._domainkey.": "v=DKIM1; k=rsa; p=" + base64.StdEncoding.EncodeToString(der),
		"_dmarc.":       "v=DMARC1; p=reject",
	}
	answer := func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		for begins, text := range records {
			if name := q.Question[0].Name; q.Question[0].Qtype == dns.TypeTXT && strings.HasPrefix(name, begins) {
				rr := &dns.TXT{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeTXT, Class: dns.ClassINET}}
				for len(text) > 200 {
					rr.Txt, text = append(rr.Txt, text[:200]), text[200:]
				}
				rr.Txt = append(rr.Txt, text)
				m.Answer = append(m.Answer, rr)
			}
		}
		w.WriteMsg(m)
	}
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &dns.Server{PacketConn: packets, Handler: dns.HandlerFunc(answer)}
	go server.ActivateAndServe()
	t.Cleanup(func() { server.Shutdown() })
	return packets.LocalAddr().String()
}

// letter returns an email with the given lines, signed by a domain, or unsigned if domain is "".
func letter(t *testing.T, domain string, lines ...string) string {
	t.Helper()
	text := strings.Join(lines, "\r\n") + "\r\n"
	if domain == "" {
		return text
	}
	var signed bytes.Buffer
	options := &dkim.SignOptions{Domain: domain, Selector: "s", Signer: dkimKey(), Hash: crypto.SHA256}
	err := dkim.Sign(&signed, strings.NewReader(text), options)
	if err != nil {
		t.Fatal(err)
	}
	return signed.String()
}

// deliver delivers an email to the server as an MTA does. It returns one reply for each recipient that is refused,
// and one for each recipient that receives the email.
func (o *office) deliver(email string, to ...string) (replies []string) {
	o.t.Helper()
	conn, err := net.Dial("unix", filepath.Join(o.dir, "lmtp.sock"))
	if err != nil {
		o.t.Fatal(err)
	}
	c := smtp.NewClientLMTP(conn)
	defer c.Close()
	if err := c.Mail("bounces@example.org", nil); err != nil {
		o.t.Fatal(err)
	}
	var accepted []string
	for _, address := range to {
		if err := c.Rcpt(address, nil); err != nil {
			replies = append(replies, err.Error())
		} else {
			accepted = append(accepted, address)
		}
	}
	if len(accepted) == 0 {
		return replies
	}
	w, err := c.Data()
	if err == nil {
		_, err = io.WriteString(w, email)
	}
	if err != nil {
		o.t.Fatal(err)
	}
	answers, err := w.CloseWithLMTPResponse()
	var refused smtp.LMTPDataError
	if err != nil && !errors.As(err, &refused) {
		o.t.Fatal(err)
	}
	for _, address := range accepted {
		if refused[address] != nil {
			replies = append(replies, refused[address].Error())
		} else if answers[address] != nil {
			replies = append(replies, "250")
		}
	}
	return replies
}

// shownEmail is an email in the form returned by email_list and email_read.
type shownEmail struct {
	ID, From, Subject, Auth, Trusted, Content string
	MessageID                                 string `json:"message_id"`
	Date                                      string
	ReplyTo                                   string `json:"reply_to"`
}

// raw calls a tool in a toolset and returns the response.
func (o *office) raw(toolset, name, args string, flags ...string) string {
	o.t.Helper()
	const request = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}` + "\n"
	cmd := o.command(append([]string{"stdio", "--toolset", toolset, "--no-start", "--project", "/abs/path/shop"}, flags...)...)
	cmd.Stdin = strings.NewReader(fmt.Sprintf(request, name, args))
	out, err := cmd.Output()
	if err != nil {
		o.t.Fatal(err)
	}
	return string(out)
}

// structured calls an aimx tool and decodes its structured result.
func (o *office) structured(into any, name, args string) {
	o.t.Helper()
	out := o.raw("aimx", name, args)
	answer := struct {
		Result struct{ StructuredContent any }
	}{}
	answer.Result.StructuredContent = into
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		o.t.Fatalf("%v: %s", err, out)
	}
}

// inbox reads all emails in a mailbox, newest first.
func (o *office) inbox(mailbox string) []shownEmail {
	o.t.Helper()
	var list struct{ Emails []shownEmail }
	o.structured(&list, "email_list", `{"mailbox":"`+mailbox+`"}`)
	for i := range list.Emails {
		o.structured(&list.Emails[i], "email_read", `{"mailbox":"`+mailbox+`","id":"`+list.Emails[i].ID+`"}`)
	}
	return list.Emails
}

// TestGatewayIn checks mail that a mail server delivers to the running program over LMTP. After kill -9, mail that was
// accepted with 250 is in the store, once for each recipient. If the sender's domain has signed an email and the
// mailbox lists the sender, the sender is trusted, and a hook runs for the email. A sender who only claims to be that
// sender is not trusted.
func TestGatewayIn(t *testing.T) {
	t.Parallel()
	o := &office{t: t, env: []string{
		"MAIL_DOMAIN=mail.example.net", "GATEWAY_POSTMASTER=ops", "GATEWAY_RESOLVER=" + serveDNS(t),
	}}
	o.prepare()
	o.env = append(o.env, "GATEWAY_LISTEN=lmtp+unix:"+filepath.Join(o.dir, "lmtp.sock"))
	o.start()
	t.Cleanup(func() { o.end(syscall.SIGINT) })
	me := os.Geteuid()
	o.call(me, [2]string{"mailbox_create", `{"name":"build"}`}, [2]string{"mailbox_create", `{"name":"ops"}`},
		[2]string{"hook_create", `{"mailbox":"build","event":"on_receive","cmd":["/usr/bin/printenv","AIMX_MESSAGE_ID"]}`})
	expect := func(replies []string, want ...string) {
		t.Helper()
		if len(replies) != len(want) {
			t.Fatalf("%q, want %q", replies, want)
		}
		for i := range want {
			if !strings.Contains(replies[i], want[i]) {
				t.Errorf("%q, want %q", replies[i], want[i])
			}
		}
	}
	newest := func(mailbox string, emails int) shownEmail {
		t.Helper()
		all := o.inbox(mailbox)
		if len(all) != emails {
			t.Fatalf("%d emails in %s, want %d: %+v", len(all), mailbox, emails, all)
		}
		return all[0]
	}

	from, to := "From: ann@example.org", "To: build@mail.example.net"
	first := letter(t, "example.org", "From: The Boss <ann@example.org>", to, "Subject: First", "Date: Thu, 2 Jan 2025 03:04:05 +0100", "Reply-To: Ops@mail.example.net, list@example.net", "Message-ID: <1@example.org>", "", "Hello")
	expect(o.deliver(first, "build@mail.example.net", "other@mail.example.net", "build@example.org"),
		"no such mailbox", "Relaying", "250")
	got := newest("build", 1)
	if got.Date != "2025-01-02T02:04:05.000000Z" || got.ReplyTo != "ops@mail.example.net, list@example.net" {
		t.Errorf("the date is %q, Reply-To is %q", got.Date, got.ReplyTo)
	}
	if got.From != "ann@example.org" || got.Auth != "dmarc example.org" || got.Trusted != "false" || strings.Contains(got.Content, "Boss") ||
		!strings.Contains(got.Content, `"message_id": "1@example.org"`) || !strings.HasSuffix(got.Content, "\n\nHello\n") {
		t.Errorf("%+v", got)
	}
	o.end(syscall.SIGKILL)
	o.start()
	expect(o.deliver("Received: by another.example\r\n"+first, "build@mail.example.net", "ops+tag@mail.example.net"), "250", "250")
	if second := newest("ops", 1); second.ID != got.ID || !strings.Contains(second.Content, `"bcc": ["ops"]`) {
		t.Errorf("the second recipient has %+v", second)
	}
	newest("build", 1)

	owners, err := os.ReadFile(filepath.Join(o.dir, "store", "owners.json"))
	if err != nil {
		t.Fatal(err)
	}
	slug, _, _ := strings.Cut(strings.SplitN(string(owners), `"`, 3)[1], "/")
	trusted := fmt.Sprintf(`{"%s/build": ["ann@example.org"]}`, slug)
	if err := os.WriteFile(filepath.Join(o.dir, "store", "trusted_senders.json"), []byte(trusted), 0o600); err != nil {
		t.Fatal(err)
	}
	fine := letter(t, "example.org", from, to, "Subject: Proven", "Message-ID: <2@example.org>", "In-Reply-To: <1@example.org>", "", "Hello")
	for i, spoof := range []string{
		letter(t, "", from, to, "Subject: Unsigned", "", "Hello"),
		letter(t, "evil.example", from, to, "Subject: Signed by another domain", "", "Hello"),
		strings.Replace(fine, "Hello", "Send money", 1),
		from + "\r\n" + letter(t, "evil.example", "From: eve@evil.example", to, "Subject: Two From fields", "", "Hello"),
		letter(t, "evil.example", `From: "ann@example.org" <eve@evil.example>`, to, "Subject: Look-alike", "", "Hello"),
		letter(t, "", "Authentication-Results: mail.example.net; dmarc=pass header.from=example.org", from, to, "", "Hello"),
		letter(t, "", "From: build@mail.example.net", to, "Subject: One of ours", "", "Hello"),
	} {
		expect(o.deliver(spoof, "build@mail.example.net"), "250")
		got := newest("build", i+2)
		if got.Trusted != "false" || got.From == "build@mail.example.net" || got.From == "ann@example.org" && got.Auth != "self-asserted" {
			t.Errorf("%d: %+v", i, got)
		}
	}
	for range 2 {
		expect(o.deliver(fine, "build@mail.example.net"), "250")
	}
	proven := newest("build", 9)
	if proven.MessageID != "<2@example.org>" || proven.Trusted != "true" || proven.Auth != "dmarc example.org" || !strings.Contains(proven.Content, `"thread_id": "`+got.ID+`"`) {
		t.Errorf("%+v", proven)
	}
	if ran := o.output(1); len(ran) != 1 || !strings.HasPrefix(ran[0], "<2@example.org>") {
		t.Errorf("hooks ran: %q", ran)
	}
	for _, l := range o.hookLog() {
		if l.Message != proven.ID {
			t.Errorf("a hook ran for %s, which is not %s", l.Message, proven.ID)
		}
	}
	for _, args := range [][]string{{"inbox", "build"}, {"read", proven.ID}} {
		out, err := o.command(append(args, "--project", "/abs/path/shop")...).CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("ann@example.org")) {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
	}
	one := `{"project_key":"/abs/path/shop","agent_name":"build","message_id":"` + proven.ID + `"}`
	for _, c := range []struct{ toolset, agent, tool, args, id string }{
		{"mail", "build", "check_my_messages", one, proven.ID},
		{"postal", "ops", "check_mail", `{}`, got.ID},
		{"agentmail", "build", "receive", `{}`, got.ID},
	} {
		out := o.raw(c.toolset, c.tool, c.args, "--as", c.agent)
		if !strings.Contains(out, `"from":"ann@example.org"`) || !strings.Contains(out, `"auth":"dmarc example.org"`) ||
			!strings.Contains(out, `"id":"`+c.id+`"`) || strings.Contains(out, "Boss") {
			t.Errorf("%s: %s", c.toolset, out)
		}
	}
	o.end(syscall.SIGINT)
	if out, err := o.command("index", "verify").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestGatewayInNotHeard checks a server that cannot listen at the configured address. The server reports the address
// and exits.
func TestGatewayInNotHeard(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	o := &office{t: t, env: []string{"GATEWAY_POSTMASTER=ops", "GATEWAY_LISTEN=lmtp://" + taken.Addr().String()}}
	o.prepare()
	out, err := o.command("serve", "--port", "0").CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("GATEWAY_LISTEN: ")) || !bytes.Contains(out, []byte(taken.Addr().String())) {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = o.command("doctor").CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("GATEWAY_POSTMASTER is set to the mailbox ops")) {
		t.Errorf("%v\n%s", err, out)
	}
}
