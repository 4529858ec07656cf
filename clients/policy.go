package clients

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"mailtree/clients/edit"
)

// offSwitch is a setting of a client that keeps it from running hooks, or from using an entry.
type offSwitch struct {
	file   string
	format edit.Format
	path   []string
	value  any
}

// Off names the settings that keep the client from running our hooks, each with its file. It passes
// over files that cannot be read: who looks at the entry or the hooks reports them.
func (s Setup) Off() []string {
	if s.Client.hooks.off == nil {
		return nil
	}
	return namesOfSet(s.Client.hooks.off(s))
}

// EntryOff is Off for the settings that keep the client from using the entry.
func (s Setup) EntryOff() []string {
	file, err := s.config()
	if err != nil {
		return nil
	}
	all := []offSwitch{
		{file, s.Client.format, append(s.path(), "enabled"), false},
		{file, s.Client.format, append(s.path(), "disabled"), true},
	}
	if s.Client.off != nil {
		all = append(all, s.Client.off(s)...)
	}
	return namesOfSet(all)
}

func namesOfSet(switches []offSwitch) (all []string) {
	for _, o := range switches {
		f, err := open(o.file)
		if err != nil || !f.is {
			continue
		}
		got, err := o.format.Get(f.data, o.path)
		list, isList := got.([]any)
		if err == nil && (reflect.DeepEqual(got, o.value) || isList && slices.Contains(list, o.value)) {
			all = append(all, strings.Join(o.path, ".")+" in "+o.file)
		}
	}
	return all
}

func claudeEntryOff(s Setup) (all []offSwitch) {
	all = append(all, offSwitch{
		file:   s.Client.user.find(s.Site),
		format: edit.JSON{},
		path:   []string{"projects", s.Dir, "disabledMcpServers"},
		value:  entryName,
	})
	if s.Scope != Project {
		return all
	}
	for _, file := range claudeSettings(s) {
		all = append(all, offSwitch{file, edit.JSON{}, []string{"disabledMcpjsonServers"}, entryName})
	}
	return all
}

// claudeSettings are the files in which people set what Claude Code does.
func claudeSettings(s Setup) []string {
	return []string{
		s.Client.hooks.user.find(s.Site),
		filepath.Join(s.Dir, s.Client.hooks.project),
		filepath.Join(s.Dir, ".claude/settings.local.json"),
	}
}

func claudeOff(s Setup) (all []offSwitch) {
	system := "/etc/claude-code"
	if s.Mac {
		system = "/Library/Application Support/ClaudeCode"
	}
	managed, _ := filepath.Glob(filepath.Join(system, "managed-settings.d", "*.json")) // the pattern is a good one
	managed = append(managed, filepath.Join(system, "managed-settings.json"))
	for _, file := range append(claudeSettings(s), managed...) {
		all = append(all, offSwitch{file, edit.JSON{}, []string{"disableAllHooks"}, true})
	}
	for _, file := range managed {
		all = append(all, offSwitch{file, edit.JSON{}, []string{"allowManagedHooksOnly"}, true})
	}
	return all
}

func codexOff(s Setup) (all []offSwitch) {
	for _, file := range []string{s.Client.user.find(s.Site), filepath.Join(s.Dir, s.Client.project)} {
		all = append(all, offSwitch{file, edit.TOML{}, []string{"features", "hooks"}, false})
	}
	return all
}

func geminiEntryOff(s Setup) (all []offSwitch) {
	for _, file := range geminiSettings(s) {
		all = append(all, offSwitch{file, s.Client.format, []string{"mcp", "excluded"}, entryName})
	}
	return all
}

func geminiSettings(s Setup) []string {
	return []string{s.Client.user.find(s.Site), filepath.Join(s.Dir, s.Client.project), "/etc/gemini-cli/settings.json"}
}

func geminiOff(s Setup) (all []offSwitch) {
	form := s.Client.hooks.format
	for _, file := range geminiSettings(s) {
		all = append(all,
			offSwitch{file, form, []string{"hooksConfig", "enabled"}, false},
			offSwitch{file, form, []string{"hooksConfig", "disabled"}, program}) // the name of our handlers
	}
	return all
}
