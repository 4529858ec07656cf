// Package service describes how to run the server as a user service. It returns the file for the service manager
// (systemd's user manager on Linux, launchd on macOS), and the commands that make the manager read the file. The
// package itself does not change anything.
package service

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/xml"
	"errors"
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

// These are the names of the service for systemd and launchd. The label does not contain a real domain.
const (
	unitName = "mailtree.service"
	label    = "internal.mailtree.mailtree"
)

// ErrSystem means that this system has no service manager that mailtree supports.
var ErrSystem = errors.New("mailtree supports only systemd on Linux and launchd on macOS, not this system's service manager")

// Config describes what to run, and for which OS user.
type Config struct {
	OS         string   // one of the values of runtime.GOOS
	Home       string   // the user's home folder
	ConfigHome string   // XDG_CONFIG_HOME; empty means .config in Home
	UID        int      // the user's uid, for launchd
	Program    string   // absolute path of mailtree
	Env        []string // the server's environment, as NAME=value
}

// Service describes the service that runs the server.
type Service struct {
	Path  string // path of the service's file
	Text  string // content of the service's file
	Start string // the command that makes the service manager read the file and start the server
	Stop  string // the command that makes the service manager stop the server and forget the file
}

// RunsStore reports whether a service file with the given text starts the server of the same store as s.
func (s *Service) RunsStore(text string) bool {
	const name = "MCP_MAIL_STORE"
	_, after, _ := strings.Cut(s.Text, name)
	line, rest, _ := strings.Cut(after, "\n")
	if strings.HasSuffix(line, "</key>") { // launchd: the value is on the next line
		value, _, _ := strings.Cut(rest, "\n")
		line += "\n" + value
	}
	return strings.Contains(text, name+line+"\n")
}

// New returns the description of the service. It returns ErrSystem if the system is not supported.
func New(cfg Config) (*Service, error) {
	switch cfg.OS {
	case "linux":
		return &Service{
			Path:  filepath.Join(cmp.Or(cfg.ConfigHome, filepath.Join(cfg.Home, ".config")), "systemd", "user", unitName),
			Text:  fill(unitText, cfg, nil),
			Start: "systemctl --user daemon-reload && systemctl --user enable " + unitName + " && systemctl --user restart " + unitName,
			Stop:  "systemctl --user disable --now " + unitName,
		}, nil
	case "darwin":
		path, domain := filepath.Join(cfg.Home, "Library", "LaunchAgents", label+".plist"), "gui/"+strconv.Itoa(cfg.UID)
		return &Service{
			Path:  path,
			Text:  fill(agentText, cfg, map[string]string{"Label": label, "Log": filepath.Join(cfg.Home, "Library", "Logs", "mailtree.log")}),
			Start: "launchctl bootstrap " + domain + " '" + path + "'",
			Stop:  "launchctl bootout " + domain + "/" + label,
		}, nil
	}
	return nil, ErrSystem
}

// fill fills in the template of a file.
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
		panic(err) // cannot happen: the template is part of this program
	}
	return b.String()
}

// quoteUnit quotes s as a single word of a systemd unit, so that no character has a special meaning. See
// systemd.syntax(7), "Quoting", and systemd.unit(5), "Specifiers". In the path of a program, systemd expands no
// variables and does not accept quotation marks.
func quoteUnit(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "%", "%%").Replace(s) + `"`
}

func quoteXML(s string) string {
	var b bytes.Buffer
	if err := xml.EscapeText(&b, []byte(s)); err != nil {
		panic(err) // writing to a buffer cannot fail
	}
	return b.String()
}
