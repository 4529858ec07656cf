package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/fixtures/waits"
	"mailtree/maildir/format"
)

// TestFaultStop checks that a server exits on its own within stopTime while it is waiting for something that hangs. It
// tests each thing that can hang separately, and then all of them together. No mail is lost. An email that was not sent
// is sent after the next start, and an email that may have been sent is reported.
func TestFaultStop(t *testing.T) {
	t.Parallel()
	all := hanging
	if *faults == "least" {
		all = all[len(all)-1:]
	}
	for _, h := range all {
		t.Run(h.name, func(t *testing.T) {
			s := newStopping(t)
			h.hang(s)
			began := time.Now()
			s.interrupt()
			waits.Limit(t, "a stop with "+h.name, time.Since(began), stopTime)
			s.goOn()
			s.start()
			for _, subject := range s.due {
				until(t, subject+" to arrive", time.Minute, func() bool { return s.arrived(subject) == 1 })
			}
			for _, subject := range s.unknown {
				s.awaitReport("Possibly not delivered: " + subject)
				if n := s.arrived(subject); n != 1 {
					t.Errorf("%s was sent %d times", subject, n)
				}
			}
			s.stop()
			for _, p := range storetest.CheckEdited(t.Context(), s.store) {
				t.Error(p)
			}
		})
	}
}

// hanging lists the things that can hang. The last entry combines all the others.
var hanging = []struct {
	name string
	hang func(s *stopping)
}{
	{"nothing that hangs", func(*stopping) {}},
	{"a hook that ignores TERM", func(s *stopping) { s.hangHook("hook") }},
	{"a hook whose child left its group", func(s *stopping) { s.hangHook("parent") }},
	{"a mail server that does not greet", (*stopping).hangGreeting},
	{"a mail server that does not answer for a message", (*stopping).hangMessage},
	{"a mail client within a message", (*stopping).hangIncoming},
	{"a shared repository that does not answer", (*stopping).hangSync},
	{"a half-sent request", (*stopping).hangRequest},
	{"an open stream", (*stopping).hangStream},
	{"a call that waits", (*stopping).hangCall},
	{"a summary", (*stopping).hangSummary},
	{"everything", func(s *stopping) {
		s.hangSync()
		s.hangHook("parent")
		s.hangMessage()
		s.hangIncoming()
		s.hangRequest()
		s.hangStream()
		s.hangCall()
		s.hangSummary()
	}},
}

// stopping is a server with the project /p/shop and its agent Ann. Its programs and peers can hang.
type stopping struct {
	*daemon
	dir          string
	peer         *smtpPeer
	due, unknown []string // subjects of the emails that the next server must send (due) or report (unknown)
}

// ignoring is a program that ignores SIGTERM and exits when the test ends.
const ignoring = `#!/bin/sh
trap "" TERM
cd %q
echo $$ >>%s.began
while [ -e hang ]; do sleep 1; done
`

func newStopping(t *testing.T) *stopping {
	t.Helper()
	dir := t.TempDir()
	s := &stopping{daemon: newDaemon(t, filepath.Join(dir, "store")), dir: dir, peer: newPeer(t)}
	s.write("hang", "")
	t.Cleanup(func() { s.goOn() })
	for _, name := range []string{"hook", "ssh", "summary"} {
		s.write(name, fmt.Sprintf(ignoring, dir, name))
	}
	s.write("parent", fmt.Sprintf("#!/bin/sh\ntrap '' TERM\nsetsid %q &\nwait\n", filepath.Join(dir, "hook")))
	s.write("store/hooks.json", "[]")
	s.real = true
	s.env = []string{
		"GATEWAY_ALLOW=*", "GATEWAY_SMARTHOST=smtp://" + s.peer.address, "GATEWAY_LISTEN=lmtp+unix:" + filepath.Join(dir, "lmtp"),
		"GATEWAY_POSTMASTER=Ann", "MAIL_DOMAIN=mail.example.net", "SYNC_INTERVAL=1s", "SUMMARY_COMMAND=" + filepath.Join(dir, "summary"),
	}
	s.start()
	s.must("create_agent", map[string]any{"project_key": "/p/shop", "program": "x", "model": "y", "task_description": "t", "name_hint": "Ann"})
	return s
}

// restart starts the server again with additional settings.
func (s *stopping) restart(settings ...string) {
	s.t.Helper()
	s.interrupt()
	s.env = append(s.env, settings...)
	s.start()
}

// write writes an executable file below s.dir.
func (s *stopping) write(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o700)); err != nil {
		s.t.Fatal(err)
	}
}

// goOn ends everything that hangs: the programs exit, and the mail server responds.
func (s *stopping) goOn() {
	os.Remove(filepath.Join(s.dir, "hang")) // already gone in later calls
	s.peer.mu.Lock()
	defer s.peer.mu.Unlock()
	if s.peer.hold != nil {
		close(s.peer.hold)
		s.peer.hold = nil
	}
	s.env = append(s.env, "GATEWAY_SMARTHOST=smtp://"+s.peer.address, "GIT_SSH_COMMAND=false")
}

// awaits calls do, which makes the server run a program that hangs, and waits until that program has started.
func (s *stopping) awaits(name string, do func()) {
	s.t.Helper()
	ran := func() int {
		data, _ := os.ReadFile(filepath.Join(s.dir, name+".began")) // the file is missing before the first run
		return strings.Count(string(data), "\n")
	}
	before := ran()
	do()
	until(s.t, name+" to run", time.Minute, func() bool { return ran() > before })
}

// send sends a message from Ann.
func (s *stopping) send(subject, to string) {
	s.t.Helper()
	s.must("send_message", map[string]any{"project_key": "/p/shop", "from_agent": "Ann", "to": []string{to}, "subject": subject,
		"body_md": "b", "thread_id": "T"})
}

// arrived counts the emails with the given subject that the mail server received completely.
func (s *stopping) arrived(subject string) (n int) {
	for _, m := range s.peer.messages() {
		if strings.Contains(string(m), "Subject: "+subject+"\r\n") {
			n++
		}
	}
	return n
}

// hangHook makes one of Ann's hooks run the given program.
func (s *stopping) hangHook(program string) {
	if _, err := exec.LookPath("setsid"); program == "parent" && err != nil {
		s.t.Skip("needs setsid")
	}
	s.write("store/hooks.json", fmt.Sprintf(`[{"project": %q, "mailbox": "Ann", "name": "h", "event": "on_receive", "cmd": [%q],
		"timeout_secs": 600, "fire_on_untrusted": true, "created": "2020-01-01T00:00:00Z"}]`, format.Slug("/p/shop"), filepath.Join(s.dir, program)))
	s.awaits("hook", func() { s.send("hooked", "Ann") })
}

// hangGreeting makes an email wait for a mail server that accepts connections but sends nothing.
func (s *stopping) hangGreeting() {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { silent.Close() })
	s.restart("GATEWAY_SMARTHOST=smtp://" + silent.Addr().String())
	s.due = append(s.due, "ungreeted")
	s.send("ungreeted", "cat@example.org")
	conn, err := silent.Accept()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
}

// hangMessage makes a mail server receive an email without responding.
func (s *stopping) hangMessage() {
	s.peer.mu.Lock()
	s.peer.hold = make(chan struct{})
	s.peer.mu.Unlock()
	s.unknown = append(s.unknown, "unanswered")
	s.send("unanswered", "dan@example.org")
	until(s.t, "the email to arrive", time.Minute, func() bool { return s.arrived("unanswered") == 1 })
}

// hangIncoming makes one LMTP client send half a message, and another client send nothing.
func (s *stopping) hangIncoming() {
	s.mailtree("mailbox", "create", "Ann", "--project", "/p/shop")
	path := filepath.Join(s.dir, "lmtp")
	silent, err := net.Dial("unix", path)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { silent.Close() })
	half, err := dialLMTP(path, "Ann@mail.example.net")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { half.Close() })
	io.WriteString(half, "Subject: half\r\n\r\nThis is ")
}

// hangSync makes a sync wait for the shared repository. When the server stops, its last push waits too.
func (s *stopping) hangSync() {
	if out, err := exec.Command("git", "-C", s.tree(), "remote", "add", "origin", "ssh://mail.example/mail.git").CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
	s.restart("GIT_SSH_COMMAND=" + filepath.Join(s.dir, "ssh"))
	s.awaits("ssh", func() {
		go s.command("sync", "on", "--project", "/p/shop").Run() // waits for the first sync, and fails when the server exits
	})
}

// hangRequest sends only half of a request.
func (s *stopping) hangRequest() {
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"+
		"Content-Length: 1000\r\n\r\n")
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(line, " 100 ") {
		s.t.Fatalf("%q: %v", line, err)
	}
	io.WriteString(conn, `{"jsonrpc":`)
}

// hangStream opens a session's stream and leaves it open.
func (s *stopping) hangStream() {
	p := &httpPeer{url: s.url + "/mcp", client: s.client}
	first := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"t","version":"1"}}}`
	for _, step := range []struct{ method, body string }{
		{http.MethodPost, first}, {http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`}, {http.MethodGet, ""},
	} {
		resp, err := p.do(step.method, []byte(step.body))
		if err != nil || resp.StatusCode >= 300 {
			s.t.Fatalf("%s: %v", step.body, err)
		}
		s.t.Cleanup(func() { resp.Body.Close() })
		if p.session == "" {
			p.session = resp.Header.Get("Mcp-Session-Id")
		}
	}
}

// hangCall makes a call wait for mail.
func (s *stopping) hangCall() {
	s.must("create_agent", map[string]any{"project_key": "/p/shop", "program": "x", "model": "y", "task_description": "t", "name_hint": "Bob"})
	answered := make(chan error, 1)
	go func() {
		answered <- s.call("check_my_messages", map[string]any{"project_key": "/p/shop", "agent_name": "Bob", "wait_seconds": 50}, nil)
	}()
	s.t.Cleanup(func() {
		if err := <-answered; err != nil {
			s.t.Errorf("the call that waited: %v", err)
		}
	})
	until(s.t, "the call to wait", time.Minute, func() bool { return s.gauge("mailtree_waiting_calls") == 1 })
}

// hangSummary makes a call wait for a thread's summary.
func (s *stopping) hangSummary() {
	s.send("summarized", "Ann")
	s.awaits("summary", func() {
		go s.call("summarize_thread", map[string]any{"project_key": "/p/shop", "thread_id": "T"}, nil) // fails when the server exits
	})
}
