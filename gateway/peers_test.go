package gateway

import (
	"bytes"
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/smtp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-message/mail"
	miekg "github.com/miekg/dns"

	"mailtree/fixtures/waits"
	"mailtree/gateway/auth"
	"mailtree/gateway/dns"
	"mailtree/gateway/in"
	"mailtree/gateway/message"
	"mailtree/gateway/out"
	"mailtree/gateway/spool"
	"mailtree/maildir/outgoing"
)

// These tests run other programs, which .ci/campaign installs: postfix, opendkim, swaks, mutt and python3. They need
// root, and run only if MAILTREE_PEERS is set to the path of the mailtree binary.
const (
	ours   = "mail.ours.example"
	theirs = "peer.example"
)

// peers skips the test unless MAILTREE_PEERS is set.
func peers(t *testing.T) {
	t.Helper()
	if os.Getenv("MAILTREE_PEERS") == "" {
		t.Skip("runs other programs as root: set MAILTREE_PEERS to the path of our program")
	}
}

// open creates a folder that other users can enter. Its path is short enough for a socket address.
func open(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "peers")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// run runs a program and returns its output.
func run(t *testing.T, stdin string, program string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), program, args...)
	c.Stdin = strings.NewReader(stdin)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", program, err, out)
	}
	return string(out)
}

// port returns a free port.
func port(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, p, _ := net.SplitHostPort(l.Addr().String())
	return p
}

// until waits until done returns true.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	waits.Until(t, what, done)
}

func answers(address string) bool {
	c, err := net.Dial("tcp", address)
	if err == nil {
		c.Close()
	}
	return err == nil
}

// names starts a DNS server with the given records and returns its address.
func names(t *testing.T, records ...string) string {
	t.Helper()
	all := map[string][]miekg.RR{}
	for _, r := range records {
		rr, err := miekg.NewRR(r)
		if err != nil {
			t.Fatal(err)
		}
		all[rr.Header().Name] = append(all[rr.Header().Name], rr)
	}
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &miekg.Server{PacketConn: conn, Handler: miekg.HandlerFunc(func(w miekg.ResponseWriter, q *miekg.Msg) {
		a := new(miekg.Msg).SetReply(q)
		known := all[strings.ToLower(q.Question[0].Name)]
		if len(known) == 0 {
			a.Rcode = miekg.RcodeNameError
		}
		for _, rr := range known {
			if rr.Header().Rrtype == q.Question[0].Qtype {
				a.Answer = append(a.Answer, rr)
			}
		}
		w.WriteMsg(a)
	})}
	go server.ActivateAndServe()
	t.Cleanup(func() { server.Shutdown() })
	return conn.LocalAddr().String()
}

// domain creates a key for a domain. It returns the key's file, the key, and the domain's DNS records.
func domain(t *testing.T, name string) (path string, private *rsa.PrivateKey, records []string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	private, err := dns.MakeKey(path)
	if err != nil {
		t.Fatal(err)
	}
	all, err := dns.Records(name, "mx."+name, "sel", &private.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		records = append(records, r.String())
	}
	return path, private, append(records, "mx."+name+". IN A 127.0.0.1")
}

// inbox collects the mail received by a server.
type inbox struct {
	mu   sync.Mutex
	kept []*in.Delivery
}

func (*inbox) Lookup(_ context.Context, local, _ string) (string, error) {
	if local == "build" || local == "ops" {
		return local, nil
	}
	return "", in.ErrUnknown
}

func (b *inbox) Deliver(_ context.Context, d *in.Delivery) []error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, to := range d.To {
		one := *d
		one.To = []in.Recipient{to}
		b.kept = append(b.kept, &one)
	}
	return make([]error, len(d.To))
}

func (b *inbox) all() []*in.Delivery {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kept
}

// receive starts our server and returns its inbox and its addresses.
func receive(t *testing.T, c in.Config) (*inbox, []net.Addr) {
	t.Helper()
	b := &inbox{}
	var err error
	if c.Spool, err = spool.New(t.TempDir(), spool.FileLimit); err != nil {
		t.Fatal(err)
	}
	c.Host, c.Domains, c.Postmaster, c.MaxConnsPerHost = ours, []string{ours}, "admin", 100
	c.Now, c.Log = time.Now, slog.New(slog.DiscardHandler)
	c.Directory, c.Deliverer = b, b
	server := in.New(c)
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan []net.Listener, 1), make(chan error, 1)
	go func() { done <- server.Run(ctx, func(l []net.Listener) { ready <- l }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	select {
	case all := <-ready:
		var at []net.Addr
		for _, l := range all {
			at = append(at, l.Addr())
		}
		return b, at
	case err := <-done:
		done <- nil
		t.Fatal(err)
		return nil, nil
	}
}

// postfix is another mail server. It accepts mail from this machine, delivers mail for our domain to an LMTP socket,
// and delivers mail for ann@ and bob@ in its own domain to a Maildir.
type postfix struct{ dir, port string }

// newPostfix starts Postfix. Unless milter is "", Postfix uses the milter at that address.
func newPostfix(t *testing.T, socket, milter string) *postfix {
	t.Helper()
	p := &postfix{open(t), port(t)}
	own := filepath.Join(p.dir, "mail")
	for _, dir := range []string{"queue", "data", "mail"} {
		if err := os.Mkdir(filepath.Join(p.dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"data", "mail"} {
		run(t, "", "chown", "postfix", filepath.Join(p.dir, dir))
	}
	write(t, p.dir+"/etc/transport", ours+" lmtp:unix:"+socket+"\n")
	write(t, p.dir+"/etc/boxes", "ann@"+theirs+" ann/\nbob@"+theirs+" bob/\n")
	write(t, p.dir+"/etc/main.cf", strings.NewReplacer("DIR", p.dir, "OWN", own, "OURS", ours, "THEIRS", theirs, "MILTER", milter).Replace(`
compatibility_level = 3.6
queue_directory = DIR/queue
data_directory = DIR/data
maillog_file = DIR/log
maillog_file_prefixes = DIR
myhostname = mx.THEIRS
mydestination =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
mynetworks = 127.0.0.0/8
disable_dns_lookups = yes
smtp_dns_support_level = disabled
alias_maps =
alias_database =
relay_domains = OURS
transport_maps = texthash:DIR/etc/transport
virtual_mailbox_domains = THEIRS
virtual_mailbox_base = OWN
virtual_mailbox_maps = texthash:DIR/etc/boxes
virtual_minimum_uid = 1
virtual_uid_maps = static:`+strings.TrimSpace(run(t, "", "id", "-u", "postfix"))+`
virtual_gid_maps = static:`+strings.TrimSpace(run(t, "", "id", "-g", "postfix"))+`
smtpd_milters = MILTER
smtpd_data_restrictions = check_sender_access
 inline:{{pal@friend.example=PREPEND Authentication-Results: mx.THEIRS; dmarc=pass header.from=friend.example}}
milter_default_action = tempfail
`))
	master := "127.0.0.1:" + p.port + " inet n - n - - smtpd\n"
	for _, service := range []string{"pickup unix n - n 60 1 pickup", "cleanup unix n - n - 0 cleanup", "qmgr unix n - n 300 1 qmgr",
		"rewrite unix - - n - - trivial-rewrite", "bounce unix - - n - 0 bounce", "defer unix - - n - 0 bounce", "trace unix - - n - 0 bounce",
		"proxymap unix - - n - - proxymap", "smtp unix - - n - - smtp", "error unix - - n - - error", "retry unix - - n - - error",
		"virtual unix - n n - - virtual", "lmtp unix - - n - - lmtp", "anvil unix - - n - 1 anvil", "postlog unix-dgram n - n - 1 postlogd"} {
		master += service + "\n"
	}
	write(t, p.dir+"/etc/master.cf", master)
	t.Cleanup(func() {
		exec.Command("postfix", "-c", p.dir+"/etc", "stop").Run()
		if log, err := os.ReadFile(p.dir + "/log"); err == nil && t.Failed() {
			t.Logf("postfix:\n%s", log)
		}
	})
	run(t, "", "postfix", "-c", p.dir+"/etc", "start")
	until(t, "postfix", func() bool { return answers("127.0.0.1:" + p.port) })
	return p
}

// send submits a message to Postfix, as a user's mail program does.
func (p *postfix) send(t *testing.T, from, to, raw string) {
	t.Helper()
	if err := smtp.SendMail("127.0.0.1:"+p.port, nil, from, []string{to}, []byte(raw)); err != nil {
		t.Fatal(err)
	}
}

// box waits until there are n messages in the mailbox of a Postfix user.
func (p *postfix) box(t *testing.T, user string, n int) (paths []string) {
	t.Helper()
	until(t, "mail for "+user, func() bool {
		paths, _ = filepath.Glob(filepath.Join(p.dir, "mail", user, "new", "*"))
		return len(paths) >= n
	})
	return paths
}

// milter starts OpenDKIM, which signs mail from Postfix's domain. It returns the milter's address in Postfix's
// notation.
func milter(t *testing.T, keyFile string) string {
	t.Helper()
	at, conf := port(t), filepath.Join(t.TempDir(), "opendkim.conf")
	write(t, conf, "Socket inet:"+at+"@127.0.0.1\nDomain "+theirs+"\nSelector sel\nKeyFile "+keyFile+"\nMode s\nInternalHosts 127.0.0.1\n"+
		"Syslog no\nRequireSafeKeys no\nBackground no\n")
	c := exec.Command("opendkim", "-f", "-x", conf)
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	until(t, "opendkim", func() bool { return answers("127.0.0.1:" + at) })
	return "inet:127.0.0.1:" + at
}

// opendkim makes OpenDKIM verify a message, and returns OpenDKIM's verdict.
func opendkim(t *testing.T, message string, records []string) string {
	t.Helper()
	dir := t.TempDir()
	var known strings.Builder
	for _, r := range records {
		rr, err := miekg.NewRR(r)
		if err != nil {
			t.Fatal(err)
		}
		if txt, ok := rr.(*miekg.TXT); ok {
			fmt.Fprintf(&known, "%s %s\n", strings.TrimSuffix(txt.Hdr.Name, "."), strings.Join(txt.Txt, ""))
		}
	}
	write(t, dir+"/dns", known.String())
	write(t, dir+"/conf", "TestDNSData refile:"+dir+"/dns\nMode v\nSyslog no\n")
	out, err := exec.CommandContext(t.Context(), "opendkim", "-x", dir+"/conf", "-v", "-v", "-t", message).CombinedOutput()
	return fmt.Sprintf("%s%v", out, err)
}

// letter returns a message from our domain, and the signed email composed from it. The message contains everything
// that needs encoding.
func letter(t *testing.T, private *rsa.PrivateKey) (m *out.Mail, raw []byte) {
	t.Helper()
	m = &out.Mail{
		From: mail.Address{Name: "Büro", Address: "build@" + ours}, To: []string{"ann@" + theirs}, Subject: "Prüfung der Größe",
		Date: time.Date(2026, 2, 3, 9, 15, 0, 0, time.UTC), MessageID: "msg_1@" + ours, InReplyTo: "0@" + theirs,
		Body: "# Grüße\n\nIt is **out**.\n\n.\nFrom here it goes on " + strings.Repeat("and on ", 300) + "\n\n日本語 = 50 %\n",
		Attachments: []out.Attachment{{Name: "Bericht für Ärzte.pdf", Type: "application/pdf", Data: []byte("%PDF\x00\xff\r\n\n")},
			{Name: "plain.txt", Type: "text/plain", Data: []byte("one\ntwo\n")}},
	}
	raw, err := m.Compose()
	if err == nil {
		raw, err = (&out.Signer{Domain: ours, Selector: "sel", Key: private}).Sign(raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m, raw
}

// TestPeerPostfix checks which mail from Postfix passes our check of the sender. Mail signed by OpenDKIM and mail
// with a result from Postfix must pass, but mail with a forged result must not.
func TestPeerPostfix(t *testing.T) {
	peers(t)
	file, _, records := domain(t, theirs)
	resolver := names(t, records...)
	o := newOffice(t, "GATEWAY_MTA_USER=postfix", "TRUSTED_AUTHSERV=mx."+theirs, "GATEWAY_RESOLVER="+resolver)
	p := newPostfix(t, o.socket(), milter(t, file))
	const forged = "Authentication-Results: mx.peer.example; dmarc=pass header.from=bank.example\r\n"
	var signed string
	for i, c := range []struct{ sender, from, raw, auth string }{
		{"ann@" + theirs, "ann@" + theirs, "Subject: Grüße\r\n\r\n.\r\nHello =\r\n", "dmarc:" + theirs},
		{"eve@evil.example", "ann@bank.example", forged + "Subject: Pay\r\n\r\nNow.\r\n", "none"},
		{"pal@friend.example", "pal@friend.example", "Subject: Hi\r\n\r\nIt is me.\r\n", "dmarc:friend.example"}, // based on Postfix's result
		{"", "daemon@bank.example", "Subject: Returned\r\n\r\nNo.\r\n", "none"},
	} {
		p.send(t, c.sender, "build@"+ours, "From: <"+c.from+">\r\n"+c.raw)
		until(t, "mail over LMTP", func() bool { return len(o.box(t, "inbox")) == i+1 })
		for _, m := range o.box(t, "inbox") {
			if !strings.Contains(c.raw, m.Subject) {
				continue
			}
			raw, err := m.raw()
			if err != nil || m.Auth != c.auth || m.From != c.from || !strings.HasSuffix(string(raw), c.raw[strings.Index(c.raw, "\r\n\r\n"):]) {
				t.Errorf("%v %+v\n%s", err, m, raw)
			}
			if i == 0 {
				signed = string(raw)
			}
		}
	}
	checker := &auth.Checker{Resolver: (&Config{DNS: resolver}).NameServer()}
	for _, c := range []struct{ old, changed, want string }{
		{"", "", "dmarc:" + theirs}, {"Hello", "Hullo", "none"}, {"From: <ann", "From: <eve", "none"},
	} {
		raw := []byte(strings.Replace(signed, c.old, c.changed, 1))
		m, err := message.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if r := checker.Check(t.Context(), bytes.NewReader(raw), m, auth.Peer{}); r.Auth() != c.want {
			t.Errorf("%s: %+v", c.changed, r)
		}
	}
	p.send(t, "ann@"+theirs, "nobody@"+ours, "From: ann@peer.example\r\n\r\n")
	bounced, err := os.ReadFile(p.box(t, "ann", 1)[0]) // Postfix quotes our reply
	if err != nil || !bytes.Contains(bounced, []byte("550 5.1.1 There is no such mailbox")) {
		t.Errorf("%v\n%s", err, bounced)
	}
}

// TestPeerSmarthost checks that Postfix accepts our signed mail. OpenDKIM must consider the signature valid, and
// invalid after any change to the mail.
func TestPeerSmarthost(t *testing.T) {
	peers(t)
	_, private, records := domain(t, ours)
	p := newPostfix(t, "/nowhere", "")
	_, raw := letter(t, private)
	host := &out.Smarthost{Host: "127.0.0.1", Port: p.port, Name: ours}
	reply, err := host.Deliver(t.Context(), &outgoing.Item{From: "build@" + ours, To: "bob@" + theirs}, raw, func() error { return nil })
	if err != nil || !strings.HasPrefix(reply, "250 ") {
		t.Fatal(reply, err)
	}
	arrived := p.box(t, "bob", 1)[0]
	if says := opendkim(t, arrived, records); !strings.Contains(says, "verification (s=sel, d="+ours+", 2048-bit key) succeeded") {
		t.Error(says)
	}
	text, err := os.ReadFile(arrived)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{{"Subject: ", "Subject: No "}, {"It is", "It was"}, {"Subject: ", "Subject: x\nSubject: "}} {
		write(t, arrived+".changed", strings.Replace(string(text), change[0], change[1], 1))
		if says := opendkim(t, arrived+".changed", records); strings.Contains(says, "succeeded") {
			t.Errorf("%s: %s", change[1], says)
		}
	}
	var refusal *out.Refusal
	_, err = host.Deliver(t.Context(), &outgoing.Item{From: "build@" + ours, To: "zoe@" + theirs}, raw, func() error { return nil })
	if !errors.As(err, &refusal) || !strings.HasPrefix(refusal.Reply, "550 5.1.1 ") {
		t.Error(err)
	}
}
