package dns

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// TestKey checks that MakeKey writes a key to a new file that only its owner can read, and that LoadKey reads it
// back. MakeKey must not overwrite a file, and LoadKey must refuse a file that is readable by others or contains no
// key.
func TestKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key.pem")
	made, err := MakeKey(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if read, err := LoadKey(path); err != nil || !read.Equal(made) || read.N.BitLen() != 2048 {
		t.Errorf("%v", err)
	}
	if _, err := MakeKey(path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("the key was overwritten: %v", err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadKey(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Error(err)
	}
	if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, []byte("no key"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadKey(path); err == nil {
		t.Error("a file without a key was accepted")
	}
	if s := Selector(time.Date(2026, 12, 31, 23, 0, 0, 0, time.UTC)); s != "mt2026" {
		t.Error(s)
	}
}

// TestRecords checks that a name server accepts the printed records, and that Check finds each of them. Check must fail
// if a record is missing or replaced.
func TestRecords(t *testing.T) {
	t.Parallel()
	key, err := MakeKey(filepath.Join(t.TempDir(), "a"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := MakeKey(filepath.Join(t.TempDir(), "b"))
	if err != nil {
		t.Fatal(err)
	}
	records, err := Records("mail.example.net", "mx.example.net", "mt2026", &key.PublicKey)
	if err != nil || len(records) != 4 {
		t.Fatal(records, err)
	}
	check := func(zone ...string) (bad []string) {
		resolver := serve(t, zone)
		for _, r := range records {
			if err := r.Check(t.Context(), resolver); err != nil {
				bad = append(bad, err.Error())
			}
		}
		return bad
	}
	lines := func(all []Record) (zone []string) {
		for _, r := range all {
			zone = append(zone, r.String())
		}
		return zone
	}
	if bad := check(lines(records)...); len(bad) > 0 {
		t.Errorf("%q", bad)
	}
	if bad := check(); len(bad) != 4 {
		t.Errorf("%q", bad)
	}
	wrong, err := Records("mail.example.net", "mx.elsewhere.example", "mt2026", &other.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	if bad := strings.Join(check(lines(wrong)...), "\n"); !strings.Contains(bad, "point to mx.elsewhere.example") || !strings.Contains(bad, "different key") {
		t.Error(bad)
	}
	twice := append(lines(records), `mail.example.net. IN TXT "v=spf1 -all"`, `mail.example.net. IN TXT "something else"`)
	if bad := strings.Join(check(twice...), "\n"); !strings.Contains(bad, "2 TXT records at mail.example.net begin with v=spf1") {
		t.Error(bad)
	}
}

// serve starts a DNS server for a zone and returns a resolver that uses it.
func serve(t *testing.T, zone []string) *net.Resolver {
	t.Helper()
	var all []dns.RR
	for _, line := range zone {
		r, err := dns.NewRR(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all = append(all, r)
	}
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		answer := new(dns.Msg).SetReply(q)
		answer.Authoritative = true
		for _, r := range all {
			if strings.EqualFold(r.Header().Name, q.Question[0].Name) && r.Header().Rrtype == q.Question[0].Qtype {
				answer.Answer = append(answer.Answer, r)
			}
		}
		if len(answer.Answer) == 0 {
			answer.Rcode = dns.RcodeNameError
		}
		w.WriteMsg(answer) // a client that has disconnected needs no reply
	})}
	go server.ActivateAndServe()
	t.Cleanup(func() { conn.Close() })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}
