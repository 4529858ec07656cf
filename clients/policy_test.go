package clients

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// TestOff checks that Off reports each setting that prevents hooks from running, along with the file that contains it.
func TestOff(t *testing.T) {
	t.Parallel()
	for _, of := range []struct{ client, file, text, want string }{
		{"claude", "home/.claude/settings.json", `{"disableAllHooks": true}`, "disableAllHooks in home/.claude/settings.json"},
		{"claude", "code/.claude/settings.local.json", `{"disableAllHooks": true}`, "disableAllHooks in code/.claude/settings.local.json"},
		{"claude", "code/.claude/settings.json", `{"disableAllHooks": false}`, ""},
		{"claude", "code/.claude/settings.json", `{"allowManagedHooksOnly": true}`, ""}, // has an effect only in managed files
		{"codex", "code/.codex/config.toml", "features.hooks = false\n", "features.hooks in code/.codex/config.toml"},
		{"gemini", "home/.gemini/settings.json", `{"hooksConfig": {"enabled": false}}`, "hooksConfig.enabled in home/.gemini/settings.json"},
		{"gemini", "home/.gemini/settings.json", `{"hooksConfig": {"disabled": ["x"]}}`, ""},
		{"gemini", "home/.gemini/settings.json", `{"hooksConfig": {"disabled": ["x", "mailtree"]}}`,
			"hooksConfig.disabled in home/.gemini/settings.json"},
		{"qwen", "code/.qwen/settings.json", `{"disableAllHooks": true}`, "disableAllHooks in code/.qwen/settings.json"},
		{"cursor", "home/.cursor/hooks.json", `{}`, ""},
	} {
		root, at := siteWith(t, of.file, of.text)
		got := strings.Join(Setup{Site: at, Client: named(of.client)}.Off(), "; ")
		if got = strings.ReplaceAll(got, root+"/", ""); got != of.want {
			t.Errorf("%s in %s: %q, want %q", of.text, of.file, got, of.want)
		}
	}
}

// siteWith is like siteOf, with a single file.
func siteWith(t *testing.T, file, text string) (root string, at Site) {
	t.Helper()
	return siteOf(t, "-- "+file+" --\n"+text)
}

// siteOf creates a folder that contains a home folder and a code base, and writes the files of an archive into it. In
// these files, it replaces the text ROOT with the folder's path.
func siteOf(t *testing.T, archive string) (root string, at Site) {
	t.Helper()
	root = t.TempDir()
	for _, f := range txtar.Parse([]byte(archive)).Files {
		name := filepath.Join(root, f.Name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, bytes.ReplaceAll(f.Data, []byte("ROOT"), []byte(root)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root, Site{Home: filepath.Join(root, "home"), Dir: filepath.Join(root, "code"), Env: func(string) string { return "" }}
}

func named(client string) Client {
	all := List()
	return all[slices.IndexFunc(all, func(c Client) bool { return c.Name == client })]
}

// TestEntryOff checks that EntryOff reports each setting that prevents a client from using the entry, along with the
// file that contains it.
func TestEntryOff(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		client     string
		scope      Scope
		file, text string
		want       string
	}{
		{"codex", User, "home/.codex/config.toml", "[mcp_servers.mail]\nenabled = false\n",
			"mcp_servers.mail.enabled in home/.codex/config.toml"},
		{"codex", User, "home/.codex/config.toml", "[mcp_servers.mail]\nenabled = true\n", ""},
		{"codex", User, "home/.codex/config.toml", "[mcp_servers.other]\nenabled = false\n", ""},
		{"opencode", Project, "code/opencode.json", `{"mcp": {"mail": {"enabled": false}}}`, "mcp.mail.enabled in code/opencode.json"},
		{"cline", User, "home/.cline/data/settings/cline_mcp_settings.json", `{"mcpServers": {"mail": {"disabled": true}}}`,
			"mcpServers.mail.disabled in home/.cline/data/settings/cline_mcp_settings.json"},
		{"gemini", User, "code/.gemini/settings.json", `{"mcp": {"excluded": ["x", "mail"]}}`, "mcp.excluded in code/.gemini/settings.json"},
		{"gemini", User, "code/.gemini/settings.json", `{"mcp": {"excluded": ["x"]}}`, ""},
		{"claude", User, "home/.claude.json", `{"projects": {"ROOT/code": {"disabledMcpServers": ["mail"]}}}`,
			"projects.code.disabledMcpServers in home/.claude.json"},
		{"claude", User, "home/.claude.json", `{"projects": {"ROOT/other": {"disabledMcpServers": ["mail"]}}}`, ""},
		{"claude", Project, "code/.claude/settings.local.json", `{"disabledMcpjsonServers": ["mail"]}`,
			"disabledMcpjsonServers in code/.claude/settings.local.json"},
		{"claude", User, "code/.claude/settings.local.json", `{"disabledMcpjsonServers": ["mail"]}`, ""}, // applies only to .mcp.json
		{"windsurf", Project, "home/.codeium/windsurf/mcp_config.json", `{}`, ""},
	} {
		root, at := siteWith(t, of.file, of.text)
		got := strings.Join(Setup{Site: at, Client: named(of.client), Scope: of.scope}.EntryOff(), "; ")
		if got = strings.ReplaceAll(got, root+"/", ""); got != of.want {
			t.Errorf("%s in %s: %q, want %q", of.text, of.file, got, of.want)
		}
	}
}
