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

// TestInstall: the first time the file is written and read, the second time nothing is written, a
// changed one is written anew, and afterwards nothing is left.
func TestInstall(t *testing.T) {
	t.Parallel()
	for _, system := range []string{"linux", "darwin"} {
		cfg := config(t, system)
		s, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		do := func(plan func() ([]Step, error)) (done string) {
			t.Helper()
			steps, err := plan()
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range steps {
				done += step.String() + "\n"
				err := s.Do(step, func([]string) (string, error) { return "", nil })
				if err != nil {
					t.Fatal(err)
				}
			}
			return done
		}
		if first := do(s.Install); !strings.HasPrefix(first, "write "+s.Path) {
			t.Errorf("%s, first: %s", system, first)
		}
		if data, err := os.ReadFile(s.Path); err != nil || string(data) != s.Text {
			t.Errorf("%s: %s (%v)", system, data, err)
		}
		if second := do(s.Install); strings.Contains(second, "write") || strings.Contains(second, "restart") || second == "" {
			t.Errorf("%s, second: %s", system, second)
		}
		cfg.Env = append(cfg.Env, "NUDGE=tmux")
		if s, err = New(cfg); err != nil {
			t.Fatal(err)
		}
		if third := do(s.Install); !strings.HasPrefix(third, "write ") {
			t.Errorf("%s, another: %s", system, third)
		}
		if last := do(s.Uninstall); !strings.Contains(last, "remove "+s.Path) {
			t.Errorf("%s, uninstall: %s", system, last)
		}
		if none := do(s.Uninstall); none != "" {
			t.Errorf("%s, uninstall again: %s", system, none)
		}
		if files, err := os.ReadDir(filepath.Dir(s.Path)); err != nil || len(files) > 0 {
			t.Errorf("%s: left %v (%v)", system, files, err)
		}
		if err := os.WriteFile(s.Path, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, plan := range []func() ([]Step, error){s.Install, s.Uninstall} {
			if steps, err := plan(); !errors.Is(err, ErrForeign) {
				t.Errorf("%s, a file of somebody else's: %v %v", system, steps, err)
			}
		}
	}
	if _, err := New(Config{OS: "plan9"}); !errors.Is(err, ErrSystem) {
		t.Errorf("plan9: %v", err)
	}
}

// TestFailedStep: what fails is told with what the command said, unless it may fail.
func TestFailedStep(t *testing.T) {
	t.Parallel()
	s, err := New(config(t, "linux"))
	if err != nil {
		t.Fatal(err)
	}
	fail := func([]string) (string, error) { return "no bus\n", errors.New("exit status 1") }
	if err := s.Do(Step{Run: []string{"systemctl", "x"}}, fail); err == nil || err.Error() != "systemctl x: exit status 1: no bus" {
		t.Errorf("%v", err)
	}
	if err := s.Do(Step{Run: []string{"systemctl", "x"}, MayFail: true}, fail); err != nil {
		t.Errorf("it may fail: %v", err)
	}
}

// TestUnit: systemd reads the unit as it was meant, whatever stands in a path or a setting.
func TestUnit(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("systemd is on Linux")
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("not checked here: systemd-analyze is not installed")
	}
	cfg := config(t, "linux")
	cfg.Program = filepath.Join(cfg.Home, `100%n mine $HOME`)
	if err := os.WriteFile(cfg.Program, nil, 0o700); err != nil { //nolint:gosec // systemd wants to find a program
		t.Fatal(err)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.write(); err != nil {
		t.Fatal(err)
	}
	// It exits with 0, and says what it could not read.
	verify := exec.CommandContext(t.Context(), analyze, "--user", "--man=no", "verify", s.Path)
	verify.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
	out, err := verify.CombinedOutput()
	if err != nil || strings.Contains(string(out), unitName) {
		t.Errorf("%v\n%s\n%s", err, out, s.Text)
	}
}

// TestAgent: the launchd file is XML that says what was meant.
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
