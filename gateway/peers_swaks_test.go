package gateway

import (
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"mailtree/gateway/auth"
	"mailtree/gateway/in"
)

// large replaces placeholders with strings that are too long to write in the file.
var large = strings.NewReplacer(
	"{{x*400}}", strings.Repeat("x", 400),
	"{{x*9000}}", strings.Repeat("x", 9000),
	"{{header}}", strings.Repeat("X: "+strings.Repeat("x", 900)+"\n", 300),
	"{{received}}", strings.Repeat("Received: by a\n", 51),
	"{{large}}", strings.Repeat(strings.Repeat("x", 1023)+"\n", 25<<10),
	"{{recipients}}", strings.TrimSuffix(strings.Repeat("build@"+ours+",", 101), ","),
)

// replied matches the last line of each server reply in the output of swaks.
var replied = regexp.MustCompile(`(?m)^<[-~*]+ +(\d{3} .*)$`)

// TestPeerSwaks checks that each session in testdata/swaks.txtar gets the expected replies, that the server stores
// only the expected mail, and that no domain vouches for a forged sender.
func TestPeerSwaks(t *testing.T) {
	peers(t)
	archive, err := txtar.ParseFile("testdata/swaks.txtar")
	if err != nil || len(archive.Files) < 40 {
		t.Fatalf("%d sessions, %v", len(archive.Files), err)
	}
	web := httptest.NewTLSServer(nil) // started only for its certificate
	defer web.Close()
	resolver := names(t, `friend.example. IN TXT "v=spf1 ip4:127.0.0.1 -all"`, `_dmarc.friend.example. IN TXT "v=DMARC1; p=reject"`,
		`bank.example. IN TXT "v=spf1 ip4:192.0.2.1 -all"`, `_dmarc.bank.example. IN TXT "v=DMARC1; p=reject"`)
	for _, f := range archive.Files {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			kept, at := receive(t, in.Config{Listen: []in.Address{{Network: "tcp", Addr: "127.0.0.1:0"}}, TLS: web.TLS, MTAUser: -1,
				Checker: &auth.Checker{Resolver: (&Config{DNS: resolver}).NameServer(), Trusted: ours}})
			said := strings.SplitN(large.Replace(string(f.Data)), "\n", 4)
			_, port, _ := strings.Cut(at[0].String(), ":")
			args := append(strings.Fields(said[0]), "--timeout", "10", "--server", "127.0.0.1", "--port", port)
			if data := said[3]; data != "" {
				if strings.Contains(said[0], "--no-data-fixup") {
					data = strings.NewReplacer("\n", "", `\r`, "\r", `\n`, "\n", `\0`, "\x00").Replace(data)
				}
				path := filepath.Join(t.TempDir(), "data")
				write(t, path, data)
				args = append(args, "--data", "@"+path)
			}
			c := exec.CommandContext(t.Context(), "swaks", args...)
			c.Env = append(os.Environ(), "HOME="+t.TempDir())
			screen, _ := c.CombinedOutput() // ignore the error, because swaks fails if the server refuses a command
			screen = regexp.MustCompile(`(?m)^ .*\n`).ReplaceAll(screen, nil)
			last := ""
			for _, reply := range replied.FindAllStringSubmatch(string(screen), -1) {
				if !strings.HasPrefix(reply[1], "221 ") {
					last = reply[1]
				}
			}
			got := ""
			for _, d := range kept.all() {
				got += strings.TrimSpace(fmt.Sprintf("%s %s", d.To[0].Mailbox, d.Auth.Auth()))
			}
			if !strings.HasPrefix(last, said[1]) || got != said[2] {
				t.Errorf("replied %q, want %s; kept %q, want %q\n%.3000s", last, said[1], got, said[2], screen)
			}
		})
	}
}
