package clients

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestOff: a setting that keeps hooks from running is named with its file.
func TestOff(t *testing.T) {
	t.Parallel()
	for _, of := range []struct{ client, file, text, want string }{
		{"claude", "home/.claude/settings.json", `{"disableAllHooks": true}`, "disableAllHooks in home/.claude/settings.json"},
		{"claude", "code/.claude/settings.local.json", `{"disableAllHooks": true}`, "disableAllHooks in code/.claude/settings.local.json"},
		{"claude", "code/.claude/settings.json", `{"disableAllHooks": false}`, ""},
		{"claude", "code/.claude/settings.json", `{"allowManagedHooksOnly": true}`, ""}, // counts in managed files alone
		{"codex", "code/.codex/config.toml", "features.hooks = false\n", "features.hooks in code/.codex/config.toml"},
		{"gemini", "home/.gemini/settings.json", `{"hooksConfig": {"enabled": false}}`, "hooksConfig.enabled in home/.gemini/settings.json"},
		{"gemini", "home/.gemini/settings.json", `{"hooksConfig": {"disabled": ["x"]}}`, ""},
		{"gemini", "home/.gemini/settings.json", `{"hooksConfig": {"disabled": ["x", "mailtree"]}}`,
			"hooksConfig.disabled in home/.gemini/settings.json"},
		{"cursor", "home/.cursor/hooks.json", `{}`, ""},
	} {
		root := t.TempDir()
		file := filepath.Join(root, of.file)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(of.text), 0o600); err != nil {
			t.Fatal(err)
		}
		at := Site{Home: filepath.Join(root, "home"), Dir: filepath.Join(root, "code"), Env: func(string) string { return "" }}
		all := List()
		i := slices.IndexFunc(all, func(c Client) bool { return c.Name == of.client })
		got := strings.Join(Setup{Site: at, Client: all[i]}.Off(), "; ")
		if got = strings.ReplaceAll(got, root+"/", ""); got != of.want {
			t.Errorf("%s in %s: %q, want %q", of.text, of.file, got, of.want)
		}
	}
}
