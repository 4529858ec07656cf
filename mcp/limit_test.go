package mcp

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"mailtree/fixtures/storetest"
)

const (
	plainPost  = "POST /agents/%s/mcp\nContent-Type: application/json"
	plainWait  = `{"tool":"check_mail","args":{"wait_seconds":50}}`
	plainCheck = `{"tool":"check_mail","args":{}}`
)

// waiter is a call that waits for an agent's mail.
type waiter struct{ agent, head, body string }

// waiters returns one waiter for each way in which a client can call a tool.
func waiters(t *testing.T, url string) []waiter {
	t.Helper()
	const check = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"check_my_messages","arguments":{"project_key":"default","agent_name":"%s","wait_seconds":50}%s}}`
	return []waiter{
		{"plain", fmt.Sprintf(plainPost, "plain"), plainWait},
		{"bare", post, fmt.Sprintf(check, "bare", "")},
		{"session", inSession(begin(t, url)), fmt.Sprintf(check, "session", "")},
		{"stateless", post + "\nMcp-Protocol-Version: 2026-07-28\nMcp-Method: tools/call\nMcp-Name: check_my_messages", fmt.Sprintf(check, "stateless", ","+newEraMeta)},
		{"batch", post, "[" + fmt.Sprintf(check, "batch", "") + "]"},
	}
}

// TestWaitingIsNoRequest checks that calls that wait for mail do not prevent other clients from sending mail. A waiting
// call over the limit must be refused, and the refusal must give the reason.
func TestWaitingIsNoRequest(t *testing.T) {
	t.Parallel()
	const streams = 5
	s, url := serve(t, Config{Store: storetest.Open(t, storetest.Config{}).Store, MaxRequests: 2, MaxStreams: streams})
	all := waiters(t, url)
	for _, w := range append(all, waiter{agent: "late"}) {
		if res, body := request(t, url, fmt.Sprintf(plainPost, w.agent), plainCheck); res.StatusCode != 200 {
			t.Fatalf("%s is created: %d %s", w.agent, res.StatusCode, body)
		}
	}
	answered := make(chan string, len(all))
	var waiting sync.WaitGroup
	defer waiting.Wait()
	for i, w := range all {
		waiting.Go(func() {
			res, body := request(t, url, w.head, w.body)
			if answered <- w.agent; res.StatusCode != 200 || !strings.Contains(body, "for "+w.agent) {
				t.Errorf("%s is waiting: %d %s", w.agent, res.StatusCode, body)
			}
		})
		await(t, func() bool {
			return s.requests.used.Load() == 0 && s.streams.used.Load() == int64(i+1) || len(answered) > 0
		})
	}
	if len(answered) > 0 {
		t.Fatalf("%s is no longer waiting for mail", <-answered)
	}

	late := fmt.Sprintf(plainPost, "late")
	const noRoom = `There is no mail, and the server cannot wait for new mail: 5 calls are already waiting or holding a stream open, which is the limit. Leave out wait_seconds to get an answer at once`
	if res, body := request(t, url, late, plainWait); res.StatusCode != 503 || !strings.Contains(body, noRoom) || !strings.Contains(body, `"code":"unavailable"`) {
		t.Errorf("one waiting call too many: %d %s", res.StatusCode, body)
	}
	for _, w := range append(all, waiter{agent: "late"}) {
		send := fmt.Sprintf(`{"tool":"send_to_agent","args":{"name":"%[1]s","msg":"for %[1]s"}}`, w.agent)
		if res, body := request(t, url, fmt.Sprintf(plainPost, "sender"), send); res.StatusCode != 200 {
			t.Errorf("a send to %s, who is waiting: %d %s", w.agent, res.StatusCode, body)
		}
	}
	if res, body := request(t, url, late, plainWait); res.StatusCode != 200 || !strings.Contains(body, "for late") {
		t.Errorf("a call that does not need to wait: %d %s", res.StatusCode, body)
	}
	waiting.Wait()
	await(t, func() bool { return s.streams.used.Load() == 0 && s.requests.used.Load() == 0 })
}

// upload is a POST whose body is sent in parts.
type upload struct {
	net.Conn
	t *testing.T
}

// startUpload declares a body of n bytes but sends none of it.
func startUpload(t *testing.T, url string, n int) *upload {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	u := &upload{c, t}
	u.send(fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", n))
	return u
}

func (u *upload) send(text string) {
	u.t.Helper()
	if _, err := io.WriteString(u, text); err != nil {
		u.t.Fatal(err)
	}
}

func (u *upload) answer() (status int, body string) {
	u.t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(u), nil)
	if err != nil {
		u.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		u.t.Fatal(err)
	}
	return res.StatusCode, string(data)
}

// padded returns a request with a length of n bytes.
func padded(method string, n int) string {
	text := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"pad":""}}`
	return strings.Replace(text, `""`, `"`+strings.Repeat("x", n-len(text))+`"`, 1)
}

// TestDeclaredBodies checks that bodies that are declared but never arrive do not use up the limits.
func TestDeclaredBodies(t *testing.T) {
	t.Parallel()
	const size, n = 1 << 20, 35
	s, url := serve(t, Config{MaxBody: size, MaxBodies: 4 * size, MaxRequests: 8})
	var all []*upload
	for range n {
		u := startUpload(t, url, size)
		u.send("{")
		all = append(all, u)
	}
	await(t, func() bool { return s.bodies.used.Load() >= n })
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 4 {
				var body io.Reader = strings.NewReader(padded("ping", smallBody))
				if i%2 == 0 {
					body = io.MultiReader(body) // hides the length, so that the client does not declare it
				}
				res, err := http.Post(url+"/mcp", "application/json", body)
				if err != nil {
					t.Error(err)
					continue
				}
				if res.Body.Close(); res.StatusCode != 200 {
					t.Errorf("a small request: %d", res.StatusCode)
				}
			}
		})
	}
	wg.Wait()
	for _, u := range all {
		u.Close()
	}
	await(t, func() bool { return s.bodies.used.Load() == 0 && s.requests.used.Load() == 0 })
}

// TestBodiesRunOut checks that a request is refused, and its memory released, if the rest of a large body does not fit
// within the limit. Small bodies must still be accepted.
func TestBodiesRunOut(t *testing.T) {
	t.Parallel()
	const size, sent = 1 << 20, 768 << 10
	s, url := serve(t, Config{MaxBody: size, MaxBodies: 4 * size})
	text := padded("ping", size)
	used := func(n int64) { t.Helper(); await(t, func() bool { return s.bodies.used.Load() == n }) }
	var all []*upload
	for range 4 { // together, these use three quarters of the limit for bodies
		u := startUpload(t, url, size)
		u.send(text[:sent])
		all = append(all, u)
	}
	used(4 * sent)
	over := startUpload(t, url, size)
	over.send("{")
	if status, body := over.answer(); status != 503 || !strings.Contains(body, "the server is busy (too many large requests at once): try again in a moment") {
		t.Errorf("a large request without room: %d %s", status, body)
	}
	used(4 * sent)
	if res, body := request(t, url, post, padded("ping", smallBody)); res.StatusCode != 200 {
		t.Errorf("a small request next to large ones: %d %s", res.StatusCode, body)
	}
	used(4 * sent)
	all[0].send(text[sent:])
	if status, _ := all[0].answer(); status != 503 {
		t.Errorf("a body that runs out of room: %d", status)
	}
	used(3 * sent)
	all[1].send(text[sent:])
	if status, body := all[1].answer(); status != 200 {
		t.Errorf("a body that has room again: %d %s", status, body)
	}
	used(2 * sent)
	all[2].Close()
	all[3].Close()
	used(0)
	if large := s.large.bodies.used.Load(); large != 0 {
		t.Errorf("%d bytes of large bodies are still counted", large)
	}
}

// TestRequestsForSmall checks that large requests leave a quarter of the slots free for small ones.
func TestRequestsForSmall(t *testing.T) {
	t.Parallel()
	s, url := serve(t, Config{MaxRequests: 4})
	started, _ := blocking(t, s)
	const large = smallBody + 1
	for range 3 {
		startUpload(t, url, large).send(padded("test/block", large))
		<-started
	}
	if res, body := request(t, url, post, padded("ping", large)); res.StatusCode != 503 {
		t.Errorf("a fourth large request of four: %d %s", res.StatusCode, body)
	}
	if res, body := request(t, url, post, padded("ping", smallBody)); res.StatusCode != 200 {
		t.Errorf("a small request next to three large ones: %d %s", res.StatusCode, body)
	}
}
