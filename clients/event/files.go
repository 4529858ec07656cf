package event

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"mailtree/maildir/lazy"
)

// input contains a tool's arguments by name, as clients send them.
type input map[string]any

// UnmarshalJSON accepts an object, an object inside a string, and text. Text is the patch for a tool that accepts no
// other argument. It becomes the argument "input". Any other value is treated as no arguments.
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

// The names of tools' arguments. A fileArgument contains the name of a file, and a patchArgument contains a patch or a
// shell command.
var (
	fileArguments  = []string{"file_path", "notebook_path", "filePath", "path", "target_file", "TargetFile", "absolute_path"}
	patchArguments = []string{"command", "patchText", "patch", "input"}
)

// text returns an argument, or "" if it is missing or not a string.
func (in input) text(name string) string {
	s, _ := in[name].(string)
	return s
}

// files lists the files that an editing tool changes. They are named directly by the tool's arguments, or by a patch in
// the arguments.
func (in input) files() (paths []string) {
	for _, name := range fileArguments {
		paths = append(paths, in.text(name))
	}
	for _, name := range patchArguments {
		paths = append(paths, patched(in.text(name))...)
	}
	return distinct(paths)
}

// header matches a line of a patch that names a file, in the format of the tool apply_patch.
var header = lazy.Regexp(`(?m)^[ \t]*\*\*\* (?:Add File|Update File|Delete File|Move to): (.*?)[ \t\r]*$`)

// patched lists the files that a patch adds, changes, deletes and moves. It lists a moved file under both names.
func patched(patch string) (paths []string) {
	for _, m := range header().FindAllStringSubmatch(patch, -1) {
		paths = append(paths, m[1])
	}
	return distinct(paths)
}

// applying matches a shell command that passes a patch to apply_patch. Some clients execute such commands themselves.
// The expression's group is the folder that the command first changes to, with or without quotes.
var applying = lazy.Regexp(`^\s*(?:cd\s+("[^"]*"|'[^']*'|[^\s;&|<>]+)\s*&&\s*)?apply_?patch\s`)

// shellPatched lists the files that a shell command patches. It lists none for any other command.
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
