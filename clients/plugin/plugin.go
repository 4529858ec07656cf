// Package plugin generates mailtree's plugins. A plugin is a folder that a user installs with the client's own plugin
// command. It contains everything that `mailtree setup` would write for the client, and the skill. `mailtree setup
// --plugin DIR` writes the plugins' files. They are checked in, because clients install plugins from the repository:
//
//	.claude-plugin/, .agents/, .github/plugin/     lists of plugins, which Claude Code, Codex and Copilot CLI read
//	gemini-extension.json, hooks/, skills/         the extension for Gemini CLI, which is the repository itself
//	qwen-extension.json                            the same for Qwen Code, which would otherwise run Gemini CLI's hooks
//	clients/plugin/NAME/                           the other plugins; agent is for clients that read Agent Plugins 1.0
package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mailtree/clients"
	"mailtree/maildir/lazy"
	"mailtree/maildir/tree"
	"mailtree/skills"
)

// These values change with each release. The command release/apply sets the repository's address.
const (
	version    = "0.0.0"
	repository = ""
)

const (
	name        = "mailtree"
	title       = "Mailtree"
	description = "Mail, threads, search and file claims for coding agents"
	license     = "MIT"

	agent         = "agent" // the plugin for clients that read Agent Plugins 1.0
	extensionFile = "gemini-extension.json"
	qwenHooks     = "clients/plugin/qwen/hooks.json"
)

// ErrOther means that a file does not belong to mailtree.
var ErrOther = errors.New("the file does not belong to mailtree")

// home contains the version and the address of a release, which the plugins include.
type home struct {
	Version    string // clients update a plugin only if its version changes
	Repository string // the address of the repository; "" while the project is not published
}

// notInstalled returns the text that a plugin shows to the user if mailtree is not on the PATH.
func (h home) notInstalled() string {
	where := "the mailtree README"
	if h.Repository != "" {
		where = h.Repository
	}
	return "The mailtree plugin is inactive because mailtree is not on the PATH. To install mailtree, see " + where
}

// Files returns the files of all plugins. Their names are relative to the top of the repository.
func Files() ([]clients.File, error) {
	return home{version, repository}.render()
}

// kind describes one plugin.
type kind struct {
	client   string // the client whose hooks the plugin contains; the plugin "agent" has no hooks
	manifest string // the manifest's name in the plugin's folder
	content  any
	servers  string // the file with the MCP entry
	list     string // the list that includes the plugin, relative to the repository; "" if there is none
	listed   any
}

func (h home) kinds() []kind {
	return []kind{
		{
			client:   "claude",
			manifest: ".claude-plugin/plugin.json",
			content:  h.manifest(),
			servers:  ".mcp.json",
			list:     ".claude-plugin/marketplace.json",
			listed:   h.marketplace("claude"),
		},
		{
			client:   "codex",
			manifest: ".codex-plugin/plugin.json",
			content:  h.codexManifest(),
			servers:  ".mcp.json",
			list:     ".agents/plugins/marketplace.json",
			listed:   codexMarketplace(),
		},
		{
			client:   "copilot",
			manifest: "plugin.json",
			content:  h.manifest(),
			servers:  ".mcp.json",
			list:     ".github/plugin/marketplace.json",
			listed:   h.marketplace("copilot"),
		},
		{
			client:   agent,
			manifest: "plugin.json",
			content:  h.portable(),
			servers:  "mcp.json",
		},
	}
}

func (h home) render() (all []clients.File, err error) {
	add := func(name string, data []byte, failed error) {
		all = append(all, clients.File{Name: name, Data: data})
		err = errors.Join(err, failed)
	}
	value := func(name string, v any) {
		data, failed := encode(v)
		add(name, data, failed)
	}
	for _, k := range h.kinds() {
		dir := folder(k.client)
		value(path.Join(dir, k.manifest), k.content)
		servers, failed := h.servers(k.client)
		err = errors.Join(err, failed)
		value(path.Join(dir, k.servers), servers)
		if k.list != "" {
			hooks, failed := h.setup(k.client).HooksAlone()
			add(path.Join(dir, "hooks/hooks.json"), hooks, failed)
			value(k.list, k.listed)
		}
		add(path.Join(dir, "skills/mailtree/SKILL.md"), []byte(skills.Mailtree), nil)
	}

	for _, e := range []struct{ client, manifest, hooks, declared string }{
		{"gemini", extensionFile, "hooks/hooks.json", ""}, // the only path at which Gemini CLI finds hooks
		{"qwen", "qwen-extension.json", qwenHooks, qwenHooks},
	} {
		extension, failed := h.extension(e.client, e.declared)
		err = errors.Join(err, failed)
		value(e.manifest, extension)
		hooks, failed := h.setup(e.client).HooksAlone()
		add(e.hooks, hooks, failed)
	}
	add("skills/mailtree/SKILL.md", []byte(skills.Mailtree), nil)

	module, failed := h.setup("opencode").HooksAlone()
	add(path.Join(folder("opencode"), "index.js"), module, failed)
	value(path.Join(folder("opencode"), "package.json"), h.module())
	slices.SortFunc(all, func(a, b clients.File) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

// folder returns the folder of a plugin, relative to the top of the repository.
func folder(client string) string { return "clients/plugin/" + client }

// setup returns the setup that would write the files of the client's plugin.
func (h home) setup(client string) clients.Setup {
	list := clients.List()
	return clients.Setup{
		Site:    clients.Site{Env: func(string) string { return "" }},
		Client:  list[slices.IndexFunc(list, func(c clients.Client) bool { return c.Name == client })],
		Scope:   clients.Project,
		Missing: h.notInstalled(),
	}
}

// servers is the content of a file with MCP entries.
type servers struct {
	Schema  string          `json:"$schema,omitempty"`
	Servers json.RawMessage `json:"mcpServers"`
}

// servers returns the MCP entry of a plugin. Copilot CLI, Gemini CLI and Qwen Code each have their own form. The other
// clients use the same form as Claude Code.
func (h home) servers(client string) (s servers, err error) {
	if client == agent {
		s.Schema = schemas + "mcp.schema.json"
	}
	if client != "copilot" && client != "gemini" && client != "qwen" {
		client = "claude"
	}
	files, err := h.setup(client).Alone(clients.Wanted{Server: clients.Server{Args: []string{"stdio"}}, NoHooks: true})
	if err == nil {
		err = json.Unmarshal(files[0].Data, &s)
	}
	return s, err
}

// Change is an outdated or missing file of a plugin.
type Change struct {
	Name          string // the path of the file
	before, after []byte
}

// Diff returns the change as a unified diff.
func (c Change) Diff() []byte { return clients.Diff(c.Name, c.before, c.after) }

// Apply writes the file. It returns any write error.
func (c Change) Apply() error {
	if err := os.MkdirAll(filepath.Dir(c.Name), 0o755); err != nil {
		return err
	}
	return tree.ReplaceFile(c.Name, c.after, 0o644)
}

// Changes returns the changes that bring the plugins in a folder up to date. It returns any read error. It returns
// ErrOther if it would replace a file in a folder that does not contain mailtree's extension for Gemini CLI.
func Changes(dir string) (all []Change, err error) {
	files, err := Files()
	if err != nil {
		return nil, err
	}
	var own manifest
	data, _ := os.ReadFile(filepath.Join(dir, extensionFile))
	ours := json.Unmarshal(data, &own) == nil && own.Name == name
	for _, f := range files {
		c := Change{Name: filepath.Join(dir, filepath.FromSlash(f.Name)), after: f.Data}
		c.before, err = os.ReadFile(c.Name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		case bytes.Equal(c.before, c.after):
			continue
		case !ours:
			return nil, fmt.Errorf("%s: %w", c.Name, ErrOther)
		}
		all = append(all, c)
	}
	return all, nil
}

// Remove removes the plugins' files from a folder, and the folders that become empty. It returns the names of the
// removed files. It also returns the names of the files that it keeps because their content differs from what this
// version of mailtree would write. A different version in a manifest does not count. Remove does not follow links out of
// the folder. If dry is true, it removes nothing. It returns any file system error, but does not treat a missing file or
// folder as an error.
func Remove(dir string, dry bool) (removed, kept []string, err error) {
	files, err := Files()
	if err != nil {
		return nil, nil, err
	}
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	for _, f := range files {
		data, err := root.ReadFile(f.Name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil, !bytes.Equal(withoutVersion(data), withoutVersion(f.Data)):
			kept = append(kept, f.Name)
			continue
		}
		removed = append(removed, f.Name)
		if dry {
			continue
		}
		if err := root.Remove(f.Name); err != nil {
			return removed, kept, err
		}
		for at := path.Dir(f.Name); at != "."; at = path.Dir(at) {
			_ = root.Remove(at) // fails if the folder is not empty
		}
	}
	if !dry {
		_ = os.Remove(dir)
	}
	return removed, kept, nil
}

var versionField = lazy.Regexp(`(?m)^  "version": "[^"]*"`)

// withoutVersion removes the version from the content of a manifest.
func withoutVersion(data []byte) []byte { return versionField().ReplaceAll(data, nil) }
