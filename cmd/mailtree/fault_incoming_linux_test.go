package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// largeEmail returns an email of nearly 25 MiB with one attachment. The attachment differs for each i.
func largeEmail(i int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "From: ann@example.org\r\nTo: ops@mailtree.local\r\nSubject: large %d\r\nMessage-ID: <%d@example.org>\r\nMIME-Version: 1.0\r\n"+
		"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nHi\r\n--b\r\nContent-Type: application/octet-stream; name=data.bin\r\n"+
		"Content-Transfer-Encoding: base64\r\n\r\n", i, i)
	noise := make([]byte, 54)
	for source := rand.NewChaCha8([32]byte{byte(i)}); b.Len() < 25<<20-200; {
		source.Read(noise)
		b.WriteString(base64.StdEncoding.EncodeToString(noise) + "\r\n")
	}
	b.WriteString("--b--\r\n")
	return b.Bytes()
}

// lmtpClient is an LMTP client that has sent DATA.
type lmtpClient struct {
	net.Conn
	r *bufio.Reader
}

// dialLMTP connects to the socket at path, and begins a message to an address.
func dialLMTP(path, to string) (*lmtpClient, error) {
	c, err := net.Dial("unix", path)
	if err != nil {
		return nil, err
	}
	if err := c.SetDeadline(time.Now().Add(10 * time.Minute)); err != nil {
		return nil, err
	}
	l := &lmtpClient{c, bufio.NewReader(c)}
	for _, step := range []struct{ say, want string }{
		{"", "220"}, {"LHLO c\r\n", "250"}, {"MAIL FROM:<ann@example.org>\r\n", "250"}, {"RCPT TO:<" + to + ">\r\n", "250"}, {"DATA\r\n", "354"},
	} {
		io.WriteString(c, step.say) // if this write fails, there is no reply
		if got, err := l.reply(); err != nil || !strings.HasPrefix(got, step.want) {
			return nil, fmt.Errorf("the reply to %q is %q: %v", step.say, got, err)
		}
	}
	return l, nil
}

// reply reads a reply and returns its last line.
func (l *lmtpClient) reply() (string, error) {
	for {
		line, err := l.r.ReadString('\n')
		if err != nil || len(line) < 4 || line[3] != '-' {
			return strings.TrimSpace(line), err
		}
	}
}

// gauge returns the value of one of the server's metrics.
func (d *daemon) gauge(name string) int64 {
	d.t.Helper()
	resp, err := d.client.Get(d.url + "/metrics")
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		d.t.Fatal(resp.Status, err)
	}
	_, rest, ok := strings.Cut(string(text), "\n"+name+" ")
	if !ok {
		d.t.Fatalf("no metric %s", name)
	}
	line, _, _ := strings.Cut(rest, "\n")
	value, err := strconv.ParseFloat(line, 64)
	if err != nil {
		d.t.Fatal(err)
	}
	return int64(value)
}

// TestFaultIncoming checks that the server uses little memory while some clients send large messages without finishing
// them and others finish theirs. Every finished message is delivered, or its sender is asked to try again later.
// Afterwards, the memory that the messages used is released.
func TestFaultIncoming(t *testing.T) {
	longer(t)
	t.Parallel()
	unfinished, finishing := extent(18, 100), extent(1, 12)
	dir := t.TempDir()
	d := newDaemon(t, filepath.Join(dir, "store"))
	d.real = true
	d.start()
	d.mailtree("mailbox", "create", "ops")
	d.interrupt()
	hostile, friendly := filepath.Join(dir, "a.sock"), filepath.Join(dir, "b.sock")
	d.env = append(d.env, "GATEWAY_LISTEN=lmtp+unix:"+hostile+",lmtp+unix:"+friendly, "GATEWAY_POSTMASTER=ops")
	d.start()
	began := time.Now()
	email := largeEmail(0)
	var senders sync.WaitGroup
	var hanging []*lmtpClient
	for range unfinished {
		l, err := dialLMTP(hostile, "ops@mailtree.local")
		if err != nil {
			t.Fatal(err)
		}
		hanging = append(hanging, l)
		senders.Go(func() { l.Write(email) }) // the end of the message is never sent
	}
	files := int64(0) // the maximum at any time: on a slow machine, the first messages time out before the last arrive
	sent, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for {
			files = max(files, d.gauge("mailtree_incoming_file_bytes"))
			select {
			case <-sent:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	first := finish(t, friendly, finishing)
	senders.Wait()
	close(sent)
	<-watched
	if files == 0 || files > d.gauge("mailtree_incoming_file_limit_bytes") {
		t.Errorf("the temporary files have %d bytes", files)
	}
	// On a slow machine, receiving a message may exceed the time limit. The reply is then 451.
	if got := d.gauge("mailtree_messages"); got != int64(first["250"]) || first["250"]+first["451"]+first["452"] != finishing {
		t.Errorf("%d messages in the store, the replies were %v", got, first)
	}
	for _, l := range hanging {
		l.Close()
	}
	returned := func() bool {
		return d.gauge("mailtree_incoming_file_bytes") == 0 && d.gauge("mailtree_incoming_memory_bytes") == 0
	}
	until(t, "the memory of the unfinished messages to be released", time.Minute, returned)
	again := finish(t, friendly, finishing) // messages that were already delivered are not delivered again
	if again["250"] != finishing || d.gauge("mailtree_messages") != int64(finishing) {
		t.Errorf("after memory was released, the replies are %v", again)
	}
	until(t, "the memory of the finished messages to be released", time.Minute, returned)
	peak := peakMemory(t, d.cmd.Process.Pid)
	t.Logf("%d unfinished, %d finishing (%v, then %v): VmHWM %d MB, at most %d MB of files, %s", unfinished, finishing, first, again,
		peak>>20, files>>20, time.Since(began).Round(time.Millisecond))
	if peak > maxResident {
		t.Errorf("over the limit of %d MB", maxResident>>20)
	}
}

// finish sends n large messages to ops concurrently, and counts the reply codes.
func finish(t *testing.T, path string, n int) map[string]int {
	t.Helper()
	var mu sync.Mutex
	var senders sync.WaitGroup
	codes := map[string]int{}
	for i := range n {
		senders.Go(func() {
			l, err := dialLMTP(path, "ops@mailtree.local")
			if err != nil {
				t.Error(err)
				return
			}
			defer l.Close()
			l.Write(largeEmail(i + 1))
			io.WriteString(l, ".\r\n")
			got, err := l.reply()
			mu.Lock()
			defer mu.Unlock()
			if codes[got[:min(3, len(got))]]++; err != nil {
				t.Error(err)
			}
		})
	}
	senders.Wait()
	return codes
}
