package clients

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"mailtree/clients/edit"
)

// setting is a setting in a client's file. It is the value at path, or an element of the list at path.
type setting struct {
	file   string
	format edit.Format
	path   []string
	value  any
}

// isSet reports whether the file contains the setting. It returns false if the file cannot be read.
func (s setting) isSet() bool {
	f, err := open("", s.file)
	if err != nil || !f.is {
		return false
	}
	got, err := s.format.Get(f.data, s.path)
	if err != nil {
		return false
	}
	if list, ok := got.([]any); ok && reflect.TypeOf(s.value).Kind() == reflect.String {
		return slices.Contains(list, s.value)
	}
	return reflect.DeepEqual(got, s.value)
}

func (s setting) String() string { return strings.Join(s.path, ".") + " in " + s.file }

// Off returns the settings that prevent the client from running our hooks, each with its file. Off ignores files that
// cannot be read, because Entry and Hooks report them.
func (s Setup) Off() []string {
	if s.Client.hooks.off == nil {
		return nil
	}
	return namesOfSet(s.Client.hooks.off(s))
}

// EntryOff is like Off, but for the settings that prevent the client from using the entry.
func (s Setup) EntryOff() []string {
	file, err := s.config()
	if err != nil {
		return nil
	}
	all := []setting{
		{file, s.Client.format, append(s.path(), "enabled"), false},
		{file, s.Client.format, append(s.path(), "disabled"), true},
	}
	if s.Client.off != nil {
		all = append(all, s.Client.off(s)...)
	}
	return namesOfSet(all)
}

func namesOfSet(settings []setting) (all []string) {
	for _, s := range settings {
		if s.isSet() {
			all = append(all, s.String())
		}
	}
	return all
}

func claudeEntryOff(s Setup) (all []setting) {
	all = append(all, setting{
		file:   s.Client.user.find(s.Site),
		format: edit.JSON{},
		path:   []string{"projects", s.Dir, "disabledMcpServers"},
		value:  s.name(),
	})
	if s.Scope != Project {
		return all
	}
	for _, file := range claudeSettings(s) {
		all = append(all, setting{file, edit.JSON{}, []string{"disabledMcpjsonServers"}, s.name()})
	}
	return all
}

// claudeLocal is the path, relative to the code base, of a user's own settings file.
const claudeLocal = ".claude/settings.local.json"

// claudeSettings returns Claude Code's settings files.
func claudeSettings(s Setup) []string {
	return []string{
		s.Client.hooks.user.find(s.Site),
		filepath.Join(s.Dir, s.Client.hooks.project),
		filepath.Join(s.Dir, claudeLocal),
	}
}

func claudeOff(s Setup) (all []setting) {
	managed := claudeManaged(s)
	for _, file := range append(claudeSettings(s), managed...) {
		all = append(all, setting{file, edit.JSON{}, []string{"disableAllHooks"}, true})
	}
	for _, file := range managed {
		all = append(all, setting{file, edit.JSON{}, []string{"allowManagedHooksOnly"}, true})
	}
	return all
}

// claudeManaged returns the files in which the machine's administrator configures Claude Code.
func claudeManaged(s Setup) []string {
	system := "/etc/claude-code"
	if s.Mac {
		system = "/Library/Application Support/ClaudeCode"
	}
	files, _ := filepath.Glob(filepath.Join(system, "managed-settings.d", "*.json")) // the pattern is valid
	return append(files, filepath.Join(system, "managed-settings.json"))
}

func codexOff(s Setup) (all []setting) {
	for _, file := range []string{s.Client.user.find(s.Site), filepath.Join(s.Dir, s.Client.project)} {
		all = append(all, setting{file, edit.TOML{}, []string{"features", "hooks"}, false})
	}
	return all
}

// These are the files in which the machine's administrator configures Gemini CLI and Qwen Code.
const (
	geminiSystem = "/etc/gemini-cli/settings.json"
	qwenSystem   = "/etc/qwen-code/settings.json"
)

func geminiEntryOff(s Setup) []setting { return excluded(s, geminiSystem) }

func qwenEntryOff(s Setup) []setting { return excluded(s, qwenSystem) }

// excluded returns the settings that prevent Gemini CLI or Qwen Code from using the entry.
func excluded(s Setup, system string) (all []setting) {
	for _, file := range settingsFiles(s, system) {
		all = append(all, setting{file, s.Client.format, []string{"mcp", "excluded"}, s.name()})
	}
	return all
}

// settingsFiles returns the user's, the project's and the system's settings file.
func settingsFiles(s Setup, system string) []string {
	return []string{s.Client.user.find(s.Site), filepath.Join(s.Dir, s.Client.project), system}
}

func qwenOff(s Setup) (all []setting) {
	for _, file := range settingsFiles(s, qwenSystem) {
		all = append(all, setting{file, s.Client.hooks.format, []string{"disableAllHooks"}, true})
	}
	return all
}

func geminiOff(s Setup) (all []setting) {
	form := s.Client.hooks.format
	for _, file := range settingsFiles(s, geminiSystem) {
		all = append(all,
			setting{file, form, []string{"hooksConfig", "enabled"}, false},
			setting{file, form, []string{"hooksConfig", "disabled"}, program}) // the name of our handlers
	}
	return all
}
