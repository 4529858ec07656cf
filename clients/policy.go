package clients

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"mailtree/clients/edit"
)

// offSwitch is a setting of a client that keeps it from running hooks.
type offSwitch struct {
	file   string
	format edit.Format
	path   []string
	value  any
}

// Off names the settings that keep the client from running our hooks, each with its file. It passes
// over files that cannot be read: who looks at the entry or the hooks reports them.
func (s Setup) Off() (all []string) {
	if s.Client.hooks.off == nil {
		return nil
	}
	for _, o := range s.Client.hooks.off(s) {
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

func claudeOff(s Setup) (all []offSwitch) {
	system := "/etc/claude-code"
	if s.Mac {
		system = "/Library/Application Support/ClaudeCode"
	}
	managed, _ := filepath.Glob(filepath.Join(system, "managed-settings.d", "*.json")) // the pattern is a good one
	managed = append(managed, filepath.Join(system, "managed-settings.json"))
	own := []string{
		s.Client.hooks.user.find(s.Site),
		filepath.Join(s.Dir, s.Client.hooks.project),
		filepath.Join(s.Dir, ".claude/settings.local.json"),
	}
	for _, file := range append(own, managed...) {
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

func geminiOff(s Setup) (all []offSwitch) {
	form := s.Client.hooks.format
	for _, file := range []string{s.Client.user.find(s.Site), filepath.Join(s.Dir, s.Client.project), "/etc/gemini-cli/settings.json"} {
		all = append(all,
			offSwitch{file, form, []string{"hooksConfig", "enabled"}, false},
			offSwitch{file, form, []string{"hooksConfig", "disabled"}, program}) // the name of our handlers
	}
	return all
}
