package out

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-message/mail"
	"github.com/emersion/go-msgauth/dkim"
	"github.com/google/go-cmp/cmp"

	"mailtree/gateway/message"
)

func letter() *Mail {
	return &Mail{
		From: mail.Address{Name: "Bü \"ild\" <x@evil.example>\r\nBcc: y", Address: "build@mail.example.net"}, To: []string{"ann@example.org", "bob@example.org"},
		Cc: []string{"eve@example.com"}, Subject: "Prüfung\r\nBcc: z@evil.example", Date: time.Date(2026, 2, 3, 9, 15, 0, 0, time.UTC),
		MessageID: "msg_1@mail.example.net", InReplyTo: "2@example.org", References: []string{"1@example.org"}, Automatic: "auto-replied",
		Body:        "# Grüße\n\nIt is **out**: https://example.org\n\n<script>alert(1)</script> [x](javascript:alert(1))\n\n.\nFrom here\n" + strings.Repeat("long ", 400),
		Attachments: []Attachment{{"Bericht für Ärzte.pdf", "application/pdf", []byte("%PDF\x00\xff")}, {"a\"b;c.txt", "multipart/mixed", []byte("x")}},
	}
}

// TestCompose checks that parsing a composed message returns the original fields. The message must contain only ASCII
// and short lines, and composing it twice must produce the same bytes.
func TestCompose(t *testing.T) {
	t.Parallel()
	raw, err := letter().Compose()
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := letter().Compose(); !bytes.Equal(raw, again) {
		t.Error("the second composition differs")
	}
	for line := range strings.SplitSeq(string(raw), "\r\n") {
		if len(line) > 998 || !ascii(line) || strings.ContainsAny(line, "\r\n") {
			t.Errorf("bad line %q", line)
		}
	}
	m, err := message.Parse(raw)
	// The only problem must be the letter's misleading display name.
	if err != nil || len(m.Problems) != 1 || !strings.Contains(m.Problems[0], "the display name may be misleading") {
		t.Fatalf("%v %q", err, m.Problems)
	}
	got := []string{m.From, strings.Join(append(m.To, m.Cc...), " "), m.Subject, m.Date.String(), m.MessageID, m.InReplyTo,
		strings.Join(m.References, " "), m.AutoSubmitted, m.Body}
	want := []string{"build@mail.example.net", "ann@example.org bob@example.org eve@example.com", "Prüfung Bcc: z@evil.example", "2026-02-03 09:15:00 +0000 UTC",
		"msg_1@mail.example.net", "2@example.org", "1@example.org 2@example.org", "auto-replied", strings.TrimRight(letter().Body, " ")}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if strings.Contains(m.HTML, "<script") || strings.Contains(m.HTML, "\"javascript:") || !strings.Contains(m.HTML, "<strong>out</strong>") {
		t.Error(m.HTML)
	}
	if d := cmp.Diff([]message.Attachment{{Name: "Bericht für Ärzte.pdf", Type: "application/pdf", Data: []byte("%PDF\x00\xff")},
		{Name: "a_b;c.txt", Type: "application/octet-stream", Data: []byte("x")}}, m.Attachments); d != "" {
		t.Error(d)
	}
}

// TestComposeText checks that a body can be sent as plain text only, and that HTML is sent unchanged.
func TestComposeText(t *testing.T) {
	t.Parallel()
	m := letter()
	m.Attachments, m.TextOnly = nil, true
	raw, _ := m.Compose()
	if p, err := message.Parse(raw); err != nil || p.HTML != "" || !strings.HasPrefix(p.Body, "# Grüße") {
		t.Errorf("%v %q", err, raw)
	}
	m.TextOnly, m.HTML = false, "<p style='color:red'>as it is</p>"
	raw, _ = m.Compose()
	if p, err := message.Parse(raw); err != nil || p.HTML != m.HTML {
		t.Errorf("%v %q", err, raw)
	}
	for _, bad := range []func(*Mail){
		func(m *Mail) { m.To[0] = "a@b\r\nBcc: c@d" }, func(m *Mail) { m.From.Address = "a b@c" }, func(m *Mail) { m.MessageID = "a> <b" },
		func(m *Mail) { m.Cc = []string{"a@b,c@d"} },
	} {
		m := letter()
		bad(m)
		if raw, err := m.Compose(); err == nil {
			t.Errorf("%q", raw)
		}
	}
	strange := letter()
	strange.InReplyTo, strange.References = "abc,def@example.org", []string{"a\nb", "café@example.org", "1@example.org"}
	raw, err := strange.Compose()
	if p, perr := message.Parse(raw); err != nil || perr != nil || p.InReplyTo != "" || !slices.Equal(p.References, []string{"1@example.org"}) {
		t.Errorf("ids that cannot be written: %v %v %q", err, perr, raw)
	}
}

// TestSign checks that the signature is valid. Adding or changing a field, or changing the body, must break it.
func TestSign(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := letter().Compose()
	if err != nil {
		t.Fatal(err)
	}
	raw, err = (&Signer{"mail.example.net", "mt2026", key}).Sign(raw)
	if err != nil || bytes.Contains(raw[:2000], []byte(" l=")) {
		t.Fatalf("%v\n%s", err, raw[:2000])
	}
	valid := func(raw []byte) bool {
		v, err := dkim.VerifyWithOptions(bytes.NewReader(raw), &dkim.VerifyOptions{LookupTXT: func(name string) ([]string, error) {
			if name != "mt2026._domainkey.mail.example.net" {
				t.Errorf("looked up %s", name)
			}
			return []string{"v=DKIM1; p=" + base64.StdEncoding.EncodeToString(der)}, nil
		}})
		return err == nil && len(v) == 1 && v[0].Err == nil
	}
	if !valid(raw) {
		t.Fatal("the signature is not valid")
	}
	for _, name := range signed {
		if valid(append([]byte(name+": x\r\n"), raw...)) {
			t.Errorf("the signature is still valid after a %s field was added", name)
		}
	}
	if valid(bytes.Replace(raw, []byte("ann@"), []byte("zoe@"), 1)) || valid(append(raw, "more\r\n"...)) {
		t.Error("the signature of a changed message is valid")
	}
}
