package service

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func config(t *testing.T, system string) Config {
	t.Helper()
	return Config{
		OS:      system,
		Home:    t.TempDir(),
		UID:     501,
		Program: `/opt/100%n mine/$HOME/mailtree`,
		Env:     []string{"MCP_MAIL_STORE=/mail <&> store", "MAIL_DOMAIN=", `SUMMARY_COMMAND=a="b" \n 50%q`, "PATH=/bin:/usr/bin"},
	}
}

// TestSystems checks that each supported system gets the right file and commands, and that other systems are rejected.
func TestSystems(t *testing.T) {
	t.Parallel()
	for system, want := range map[string][2]string{
		"linux":  {"/.config/systemd/user/mailtree.service", "systemctl --user "},
		"darwin": {"/Library/LaunchAgents/internal.mailtree.mailtree.plist", "launchctl boot"},
	} {
		cfg := config(t, system)
		s, err := New(cfg)
		if err != nil || s.Path != cfg.Home+want[0] || !strings.HasPrefix(s.Start, want[1]) || !strings.HasPrefix(s.Stop, want[1]) {
			t.Errorf("%s: %+v, %v", system, s, err)
		}
	}
	if _, err := New(Config{OS: "plan9"}); !errors.Is(err, ErrSystem) {
		t.Errorf("plan9: %v", err)
	}
}

// TestUnit checks that systemd reads the unit as intended, regardless of the characters in paths and settings.
func TestUnit(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("systemd runs only on Linux")
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("not checked here: systemd-analyze is not installed")
	}
	cfg := config(t, "linux")
	cfg.Program = filepath.Join(cfg.Home, `100%n mine $HOME`)
	if err := os.WriteFile(cfg.Program, nil, 0o700); err != nil { //nolint:gosec // systemd expects to find a program
		t.Fatal(err)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(cfg.Home, unitName)
	if err := os.WriteFile(file, []byte(s.Text), 0o600); err != nil {
		t.Fatal(err)
	}
	// The command exits with status 0 even if it reports a line that it could not parse.
	verify := exec.CommandContext(t.Context(), analyze, "--user", "--man=no", "verify", file)
	verify.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
	out, err := verify.CombinedOutput()
	if err != nil || strings.Contains(string(out), unitName) {
		t.Errorf("%v\n%s\n%s", err, out, s.Text)
	}
}

// TestAgent checks that the launchd file is XML with the intended content.
func TestAgent(t *testing.T) {
	t.Parallel()
	cfg := config(t, "darwin")
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	d := xml.NewDecoder(strings.NewReader(s.Text))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, s.Text)
		}
		if text, ok := token.(xml.CharData); ok && strings.TrimSpace(string(text)) != "" {
			said = append(said, string(text))
		}
	}
	all := "\x00" + strings.Join(said, "\x00") + "\x00"
	for _, pair := range append(cfg.Env[:1:1], cfg.Env[2:]...) {
		if want := strings.Replace(pair, "=", "\x00", 1); !strings.Contains(all, "\x00"+want+"\x00") {
			t.Errorf("no %q in %q", want, said)
		}
	}
	if !strings.Contains(all, "\x00"+cfg.Program+"\x00serve\x00") {
		t.Errorf("no program in %q", said)
	}
}
