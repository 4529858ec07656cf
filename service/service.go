// Package service has the server run as a service of its user: from login on, and again when it
// fails. The manager is systemd's of the user on Linux, launchd on macOS.
//
// A Service is one file, which the manager reads, and the commands that the manager takes. Install,
// Uninstall and State say what is to be done, as steps; nothing happens until a step is done. Doing
// the steps of Install twice changes nothing the second time, and starts what was stopped.
package service

import (
	"bytes"
	_ "embed"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"
)

var (
	//go:embed unit.service
	unitText string
	//go:embed agent.plist
	agentText string
)

// Names of the service, as systemd and launchd know it. No domain of anybody's stands in a label.
const (
	unitName = "mailtree.service"
	label    = "internal.mailtree.mailtree"
)

// marker stands in each file that Install writes.
const marker = "Written by `mailtree service install`"

// Errors of this package.
var (
	ErrSystem  = errors.New("there is no service manager that this program knows: systemd on Linux, launchd on macOS")
	ErrForeign = errors.New("the file was not written by `mailtree service install`: move it away first")
)

// Config says what is to run, and for whom.
type Config struct {
	OS         string   // as runtime.GOOS
	Home       string   // of the user
	ConfigHome string   // XDG_CONFIG_HOME; "": .config in Home
	UID        int      // of the user; for launchd
	Program    string   // the absolute path of mailtree
	Env        []string // NAME=value: the environment that the server is to have
}

// Service is the server as the manager of the user knows it.
type Service struct {
	Path string // of its file
	Text string // of its file

	load, again, unload []Step // when the file is new or another, the same, to be removed
	gone                []Step // after it was removed
	ask                 []string
}

// Step is one thing that Install or Uninstall does: it writes or removes the file, or runs a
// command.
type Step struct {
	Write, Remove string   // the file's path; "" where the step does not
	Run           []string // a command
	MayFail       bool     // the command fails where there is nothing to do
}

// String is the step in a line.
func (s Step) String() string {
	switch {
	case s.Write != "":
		return "write " + s.Write
	case s.Remove != "":
		return "remove " + s.Remove
	}
	return "run " + strings.Join(s.Run, " ")
}

// New describes the service. Errors: ErrSystem.
func New(cfg Config) (*Service, error) {
	switch cfg.OS {
	case "linux":
		return newUnit(cfg), nil
	case "darwin":
		return newAgent(cfg), nil
	}
	return nil, ErrSystem
}

func newUnit(cfg Config) *Service {
	config := cfg.ConfigHome
	if config == "" {
		config = filepath.Join(cfg.Home, ".config")
	}
	systemctl := func(args ...string) Step {
		return Step{Run: append([]string{"systemctl", "--user"}, args...)}
	}
	stop := systemctl("disable", "--now", unitName)
	stop.MayFail = true
	return &Service{
		Path:   filepath.Join(config, "systemd", "user", unitName),
		Text:   fill(unitText, cfg, nil),
		load:   []Step{systemctl("daemon-reload"), systemctl("enable", unitName), systemctl("restart", unitName)},
		again:  []Step{systemctl("enable", "--now", unitName)},
		unload: []Step{stop},
		gone:   []Step{systemctl("daemon-reload")},
		ask:    systemctl("is-active", unitName).Run,
	}
}

func newAgent(cfg Config) *Service {
	path := filepath.Join(cfg.Home, "Library", "LaunchAgents", label+".plist")
	domain := "gui/" + strconv.Itoa(cfg.UID)
	launchctl := func(args ...string) Step { return Step{Run: append([]string{"launchctl"}, args...)} }
	stop, start := launchctl("bootout", domain+"/"+label), launchctl("bootstrap", domain, path)
	stop.MayFail = true
	startAgain := start
	startAgain.MayFail = true
	return &Service{
		Path:   path,
		Text:   fill(agentText, cfg, map[string]string{"Label": label, "Log": filepath.Join(cfg.Home, "Library", "Logs", "mailtree.log")}),
		load:   []Step{stop, start},
		again:  []Step{startAgain, launchctl("kickstart", domain+"/"+label)},
		unload: []Step{stop},
		ask:    launchctl("print", domain+"/"+label).Run,
	}
}

// fill makes the text of a file.
func fill(text string, cfg Config, more map[string]string) string {
	values := map[string]any{"Program": cfg.Program, "Env": cfg.Env}
	for k, v := range more {
		values[k] = v
	}
	part := func(i int) func(string) string {
		return func(pair string) string { return strings.SplitN(pair, "=", 2)[i] }
	}
	t := template.Must(template.New("").Funcs(template.FuncMap{
		"unit":  quoteUnit,
		"xml":   quoteXML,
		"name":  part(0),
		"value": part(1),
	}).Parse(text))
	var b strings.Builder
	if err := t.Execute(&b, values); err != nil {
		panic(err) // the template is ours
	}
	return b.String()
}

// quoteUnit makes one word of a systemd unit, in which nothing stands for something else: see
// systemd.syntax(7), "Quoting", and systemd.unit(5), "Specifiers". In the path of a program systemd
// expands no variable, and takes no quotation mark.
func quoteUnit(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "%", "%%").Replace(s) + `"`
}

func quoteXML(s string) string {
	var b bytes.Buffer
	if err := xml.EscapeText(&b, []byte(s)); err != nil {
		panic(err) // a buffer takes all
	}
	return b.String()
}

// There reports whether the file is there, and whether it is as Install would write it. Errors:
// ErrForeign; what keeps it from being read.
func (s *Service) There() (there, same bool, err error) {
	data, err := os.ReadFile(s.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, false, nil
	case err != nil:
		return false, false, err
	case !strings.Contains(string(data), marker):
		return true, false, fmt.Errorf("%s: %w", s.Path, ErrForeign)
	}
	return true, string(data) == s.Text, nil
}

// Install returns the steps after which the service runs with this file. Errors: those of There.
func (s *Service) Install() ([]Step, error) {
	_, same, err := s.There()
	if err != nil {
		return nil, err
	}
	if same {
		return s.again, nil
	}
	return append([]Step{{Write: s.Path}}, s.load...), nil
}

// Uninstall returns the steps after which there is no service; none where there is none. Errors:
// those of There.
func (s *Service) Uninstall() ([]Step, error) {
	there, _, err := s.There()
	if err != nil || !there {
		return nil, err
	}
	return append(append(s.unload, Step{Remove: s.Path}), s.gone...), nil
}

// Ask is the command that exits with 0 where the service runs.
func (s *Service) Ask() []string { return s.ask }

// Do does a step; run runs a command and returns what it said.
func (s *Service) Do(step Step, run func(command []string) (said string, err error)) error {
	switch {
	case step.Write != "":
		return s.write()
	case step.Remove != "":
		return os.Remove(step.Remove)
	}
	said, err := run(step.Run)
	if err == nil || step.MayFail {
		return nil
	}
	return fmt.Errorf("%s: %w: %s", strings.Join(step.Run, " "), err, strings.TrimSpace(said))
}

// write writes the file whole or not at all.
func (s *Service) write() error {
	dir := filepath.Dir(s.Path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".mailtree-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(s.Text)
	if err = errors.Join(err, f.Chmod(0o600), f.Close()); err != nil { // a setting may be nobody else's business
		return err
	}
	return os.Rename(f.Name(), s.Path)
}
