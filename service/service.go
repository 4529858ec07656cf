// Package service describes the server as a service of its user: which file the manager reads, systemd's of
// the user on Linux or launchd on macOS, and which commands have it take the file. It changes nothing.
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

// Names of the service, as systemd and launchd know it. No domain of anybody's stands in a label.
const (
	unitName = "mailtree.service"
	label    = "internal.mailtree.mailtree"
)

// ErrSystem says that no manager of the system is known.
var ErrSystem = errors.New("there is no service manager that this program knows: systemd on Linux, launchd on macOS")

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
	Path  string // of its file
	Text  string // of its file
	Start string // the command that has the manager take the file and start the server
	Stop  string // the command that has it stop the server and forget the file
}

// New describes the service. Errors: ErrSystem.
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
