package event

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"mailtree/maildir/lazy"
)

// input contains the arguments of a tool call by name, as the client sends them.
type input map[string]any

// UnmarshalJSON accepts an object, an object encoded as a string, or plain text. Plain text is a patch, for a tool that
// has no other arguments. It becomes the argument "input". Any other value is treated as no arguments.
func (in *input) UnmarshalJSON(data []byte) error {
	var object map[string]any
	var text string
	if json.Unmarshal(data, &text) == nil {
		data = []byte(text)
	}
	if json.Unmarshal(data, &object) != nil && text != "" {
		object = map[string]any{"input": text}
	}
	*in = object
	return nil
}

// These are the names of tools' arguments. The arguments in fileArguments contain a path. The arguments in
// patchArguments contain a patch or a shell command.
var (
	fileArguments  = []string{"file_path", "notebook_path", "filePath", "path", "target_file", "TargetFile", "absolute_path"}
	patchArguments = []string{"command", "patchText", "patch", "input"}
)

// text returns the argument with the given name, or "" if it is missing or not a string.
func (in input) text(name string) string {
	s, _ := in[name].(string)
	return s
}

// files returns the files that an editing tool changes. They are in the tool's arguments, or in a patch in the
// arguments.
func (in input) files() (paths []string) {
	for _, name := range fileArguments {
		paths = append(paths, in.text(name))
	}
	for _, name := range patchArguments {
		paths = append(paths, patched(in.text(name))...)
	}
	return distinct(paths)
}

// header matches a line that names a file in a patch for the tool apply_patch.
var header = lazy.Regexp(`(?m)^[ \t]*\*\*\* (?:Add File|Update File|Delete File|Move to): (.*?)[ \t\r]*$`)

// patched returns the files that a patch adds, changes, deletes or moves. For a moved file, it returns both names.
func patched(patch string) (paths []string) {
	for _, m := range header().FindAllStringSubmatch(patch, -1) {
		paths = append(paths, m[1])
	}
	return distinct(paths)
}

// applying matches a shell command that passes a patch to apply_patch. Some clients execute such commands themselves.
// If the command first changes to a folder, the group matches that folder, including any quotes around it.
var applying = lazy.Regexp(`^\s*(?:cd\s+("[^"]*"|'[^']*'|[^\s;&|<>]+)\s*&&\s*)?apply_?patch\s`)

// shellPatched returns the files that a shell command patches, or nil if the command does not apply a patch.
func shellPatched(command string) []string {
	m := applying().FindStringSubmatch(command)
	if m == nil {
		return nil
	}
	paths := patched(command)
	if dir := strings.Trim(m[1], `"'`); dir != "" {
		for i, p := range paths {
			if !filepath.IsAbs(p) {
				paths[i] = filepath.Join(dir, p)
			}
		}
	}
	return paths
}

// distinct returns the non-empty paths without duplicates.
func distinct(paths []string) (all []string) {
	for _, p := range paths {
		if p != "" && !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
}
