package plugin

import (
	"encoding/json"
	"errors"
	"iter"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mailtree/clients"
)

const top = "../.."

// TestCheckedIn checks that the plugins in the repository are up to date. To update them, run `mailtree setup --plugin
// .` at the top of the repository.
func TestCheckedIn(t *testing.T) {
	t.Parallel()
	changes, err := Changes(top)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		t.Errorf("run `mailtree setup --plugin .`: %s is not up to date:\n%s", c.Name, c.Diff())
	}
}

// TestChanges checks that a file is written if it is missing or differs in one byte, and that other files do not
// change.
func TestChanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := write(t, dir)
	for _, f := range files {
		name := filepath.Join(dir, f.Name)
		for _, spoil := range []func() error{
			func() error { return os.WriteFile(name, append(slices.Clone(f.Data), ' '), 0o600) },
			func() error { return os.Remove(name) },
		} {
			if err := spoil(); err != nil {
				t.Fatal(err)
			}
			changes, err := Changes(dir)
			if err != nil || len(changes) != 1 || changes[0].Name != name {
				t.Errorf("%s: the changes are %v, %v", f.Name, changes, err)
			}
			if err := os.WriteFile(name, f.Data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// write writes the files of all plugins into a folder, and returns them.
func write(t *testing.T, dir string) []clients.File {
	t.Helper()
	changes, err := Changes(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		if err := c.Apply(); err != nil {
			t.Fatal(err)
		}
	}
	files, err := Files()
	if err != nil || len(files) != len(changes) {
		t.Fatalf("%d files, %d changes, %v", len(files), len(changes), err)
	}
	return files
}

// TestOther checks that files of another project are not replaced.
func TestOther(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "gemini-extension.json"), []byte(`{"name": "other"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if changes, err := Changes(dir); !errors.Is(err, ErrOther) || changes != nil {
		t.Errorf("the changes are %v, %v", changes, err)
	}
}

// TestLists checks that each entry in a list of plugins refers to a plugin with that name.
func TestLists(t *testing.T) {
	t.Parallel()
	for _, list := range []struct{ file, manifest string }{
		{".claude-plugin/marketplace.json", ".claude-plugin/plugin.json"},
		{".agents/plugins/marketplace.json", ".codex-plugin/plugin.json"},
		{".github/plugin/marketplace.json", "plugin.json"},
	} {
		var m struct {
			Plugins []struct {
				Name   string
				Source json.RawMessage
			}
		}
		decode(t, list.file, &m)
		if len(m.Plugins) != 1 {
			t.Fatalf("%s lists %d plugins", list.file, len(m.Plugins))
		}
		var dir string
		var local struct{ Path string }
		if json.Unmarshal(m.Plugins[0].Source, &dir) != nil && json.Unmarshal(m.Plugins[0].Source, &local) == nil {
			dir = local.Path
		}
		var listed manifest
		decode(t, path.Join(dir, list.manifest), &listed)
		if listed.Name != m.Plugins[0].Name || listed.Name == "" {
			t.Errorf("%s lists %q, but %s has %q", list.file, m.Plugins[0].Name, dir, listed.Name)
		}
	}
}

func decode(t *testing.T, name string, v any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(top, filepath.FromSlash(name)))
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// TestHome checks that the manifests, and the text about a missing mailtree, contain the repository's address. If there
// is no address yet, no manifest may contain an empty one.
func TestHome(t *testing.T) {
	t.Parallel()
	const repository = "https://github.com/example/mailtree"
	for _, h := range []home{{"1.2.3", repository}, {"1.2.3", ""}} {
		files, err := h.render()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			text := string(f.Data)
			ends := func(suffixes ...string) bool {
				return slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(f.Name, suffix) })
			}
			if want := ends("plugin.json", "package.json", "extension.json"); want != strings.Contains(text, `"version": "1.2.3"`) {
				t.Errorf("%s has the version: %t, want %t\n%s", f.Name, !want, want, text)
			}
			if want := h.Repository != "" && ends("plugin.json", "package.json", "hooks.json", "index.js"); want != strings.Contains(text, repository) {
				t.Errorf("%s contains the address: %t, want %t\n%s", f.Name, !want, want, text)
			}
			if strings.Contains(text, `""`) && ends(".json") {
				t.Errorf("%s has an empty value:\n%s", f.Name, text)
			}
		}
	}
}

// TestMissing runs the commands of all plugins without mailtree on the PATH. It checks that each command succeeds, and
// that only one command for the start of a session says that mailtree is missing. In Claude Code, this command runs
// only when a new session starts, and the command that runs mailtree always runs.
func TestMissing(t *testing.T) {
	t.Parallel()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{
		"hooks/hooks.json", "clients/plugin/claude/hooks/hooks.json", "clients/plugin/codex/hooks/hooks.json",
		"clients/plugin/copilot/hooks/hooks.json", qwenHooks,
	} {
		var all struct{ Hooks map[string][]map[string]any }
		decode(t, file, &all)
		said := 0
		for event, list := range all.Hooks {
			for group, command := range eachCommand(list) {
				cmd := exec.Command(sh, "-c", command)
				cmd.Env = []string{"PATH=" + t.TempDir()}
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Errorf("%s: %s: %v", file, command, err)
				}
				runs := strings.Contains(command, "mailtree hook ")
				if runs && !strings.Contains(command, " --plugin") {
					t.Errorf("%s: %s does not say that it belongs to a plugin", file, command)
				}
				fresh := group["matcher"] == "startup"
				if strings.Contains(file, "claude") && (fresh != (len(out) > 0) || fresh && runs) {
					t.Errorf("%s: the matcher of %s is %v", file, command, group["matcher"])
				}
				if len(out) == 0 {
					continue
				}
				said++
				var answer map[string]any
				if err := json.Unmarshal(out, &answer); err != nil || event != "SessionStart" || !strings.Contains(string(out), "To install mailtree") {
					t.Errorf("%s: %s prints %q, %v", file, event, out, err)
				}
			}
		}
		if said != 1 {
			t.Errorf("%s: %d commands say that mailtree is missing, want one", file, said)
		}
	}
}

// eachCommand returns the POSIX shell commands in an event's list, each with its element of the list.
func eachCommand(list []map[string]any) iter.Seq2[map[string]any, string] {
	return func(yield func(map[string]any, string) bool) {
		for _, group := range list {
			for _, command := range commands(group) {
				if !yield(group, command) {
					return
				}
			}
		}
	}
}

// commands returns the POSIX shell commands that a value from a hooks file contains.
func commands(v any) (all []string) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			all = append(all, commands(item)...)
		}
	case map[string]any:
		for key, value := range v {
			if text, ok := value.(string); ok && (key == "command" || key == "bash") {
				all = append(all, text)
			}
			all = append(all, commands(value)...)
		}
	}
	return all
}
