package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// reads is a Python program that parses a message with Python's standard library.
const reads = `
import email, email.policy, json, sys
m = email.message_from_binary_file(sys.stdin.buffer, policy=email.policy.default)
text = lambda kind: m.get_body((kind,)).get_content()
print(json.dumps(dict(subject=m["subject"], sender=str(m["from"].addresses[0]), to=str(m["to"]), reply=m["in-reply-to"], text=text("plain"),
    html=text("html"), files=[(a.get_filename(), a.get_content_type(), a.get_payload(decode=True).hex()) for a in m.iter_attachments()],
    defects=[str(d) for part in m.walk() for d in part.defects])))
`

// TestPeerPython checks that Python's email package finds the original fields in our messages, and reports no
// defects.
func TestPeerPython(t *testing.T) {
	peers(t)
	_, private, _ := domain(t, ours)
	m, raw := letter(t, private)
	var got struct {
		Subject, Sender, To, Reply, Text, HTML string
		Files                                  [][3]string
		Defects                                []string
	}
	if err := json.Unmarshal([]byte(run(t, string(raw), "python3", "-c", reads)), &got); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got.HTML, "<h1>Grüße</h1>") || !strings.Contains(got.HTML, "<strong>out</strong>") {
		t.Error(got.HTML)
	}
	files := []string{"Bericht für Ärzte.pdf", "application/pdf", "2550444600ff0d0a0a", "plain.txt", "text/plain", "6f6e650a74776f0a"}
	want := append([]string{m.Subject, "Büro <build@mail.ours.example>", "ann@peer.example", "<0@peer.example>", m.Body}, files...)
	read := []string{got.Subject, got.Sender, got.To, got.Reply, strings.ReplaceAll(got.Text, "\r\n", "\n")}
	for _, f := range got.Files {
		read = append(read, f[:]...)
	}
	if d := cmp.Diff(want, read); d != "" || len(got.Defects) > 0 {
		t.Errorf("%s %q", d, got.Defects)
	}
}

// TestPeerMutt checks that Mutt shows the text of our messages and saves attachments under their names.
func TestPeerMutt(t *testing.T) {
	peers(t)
	_, private, _ := domain(t, ours)
	m, raw := letter(t, private)
	dir := open(t)
	for _, folder := range []string{"box/cur", "box/tmp", "files"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, dir+"/box/new/1.1.here", strings.ReplaceAll(string(raw), "\r\n", "\n"))
	write(t, dir+"/rc", strings.ReplaceAll(`
set folder=DIR spoolfile=DIR/box record=DIR/sent
set charset=utf-8 pipe_decode=yes wait_key=no confirmappend=no mark_old=no delete=no move=no quit=yes
unset help header_cache
ignore *
unignore subject from
hdr_order from subject
alternative_order text/plain
macro index X "<pipe-message>cat >DIR/text<enter><view-attachments>Y"
macro attach Y "<last-entry><save-entry><bol>DIR/files/<enter><previous-entry><save-entry><bol>DIR/files/<enter><exit>Z"
macro index Z "<exit>"
push X
`, "DIR", dir))
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	c := exec.CommandContext(ctx, "script", "-qec", "mutt -n -F "+dir+"/rc -f "+dir+"/box", "/dev/null")
	c.Env = append(os.Environ(), "TERM=xterm", "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "HOME="+dir)
	screen, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, screen)
	}
	text, err := os.ReadFile(dir + "/text")
	want := "From: Büro <build@mail.ours.example>\nSubject: " + m.Subject + "\n"
	if err != nil || !strings.HasPrefix(string(text), want) || !strings.Contains(string(text), m.Body) {
		t.Errorf("%v\n%s\n%s", err, text, screen)
	}
	for _, a := range m.Attachments {
		data, err := os.ReadFile(filepath.Join(dir, "files", a.Name))
		if err != nil || !bytes.Equal(data, a.Data) {
			t.Errorf("%s: %v %q\n%s", a.Name, err, data, screen)
		}
	}
}
