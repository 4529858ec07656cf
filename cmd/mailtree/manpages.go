//go:build pages

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"mailtree/cmd/mailtree/pages"
)

// main writes the files that packages install in addition to the program: manual pages in DIR/man1, and a completion
// script for each shell in DIR/completions. release/man runs it. Its arguments are DIR and the version.
func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: release/man DIR VERSION")
		os.Exit(exitUsage)
	}
	if err := writePages(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "release/man:", err)
		os.Exit(exitFailed)
	}
}

// completionFiles maps each shell to the name of its completion script.
var completionFiles = map[string]string{
	"bash":       "mailtree.bash",
	"zsh":        "_mailtree",
	"fish":       "mailtree.fish",
	"powershell": "mailtree.ps1",
	"nushell":    "mailtree.nu",
}

func writePages(dir, version string) error {
	root := rootCommand(nil, stdio{out: &bytes.Buffer{}, err: os.Stderr}, everyCommand)
	if err := pages.Write(root, filepath.Join(dir, "man1"), manual(version)); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "completions"), 0o755); err != nil {
		return err
	}
	for shell, name := range completionFiles {
		var text bytes.Buffer
		if code := run(context.Background(), []string{"completion", shell}, nil, stdio{out: &text, err: os.Stderr}); code != 0 {
			return fmt.Errorf("cannot write the completion script for %s", shell)
		}
		if err := os.WriteFile(filepath.Join(dir, "completions", name), text.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// manual returns the parts of the manual pages that do not come from the commands' help.
func manual(version string) pages.Config {
	m := pages.Config{
		Version: version,
		Environment: []pages.Entry{
			{Name: "MAILTREE_ME", Text: "your name as an agent (default: your login name)"},
			{Name: "AGENT_NAME", Text: "the name of the agent whose commit or edit the guard checks"},
			{Name: "GUARD_MODE", Text: "how the guard handles commits of claimed files: block (default), warn or off"},
			{Name: "GUARD_UNKNOWN", Text: "how the guard handles committers that it cannot identify: block (default) or warn"},
			{Name: "GUARD_BYPASS", Text: "set this to 1 to bypass the guard"},
			{Name: "CLAIM_MODE", Text: "how client hooks handle edits of claimed files: block (default), warn or off"},
			{Name: "NO_COLOR", Text: "turns off bold text"},
			{Name: "PAGER", Text: "the pager for long output (default less)"},
			{Name: "VISUAL, EDITOR", Text: "the editor for messages"},
			{Name: "XDG_STATE_HOME", Text: "the folder for the row numbers of recent lists (default ~/.local/state)"},
		},
		Files: []pages.Entry{
			{Name: "~/.mailtree/", Text: "the store; its README.md explains the files"},
			{Name: "~/.mailtree/projects/PROJECT/repo/", Text: "a project's mail, a Git working tree"},
			{Name: "~/.mailtree/index/", Text: "the index; if you delete it while no server is running, the next start rebuilds it"},
			{Name: "~/.mailtree/key, token, gateway/", Text: "the store's secrets: the key that seals messages, the token for HTTP, the keys that sign email"},
			{Name: "~/.mailtree/server.log", Text: "the log of a background server"},
			{Name: "~/.config/systemd/user/mailtree.service", Text: "the unit that mailtree service prints"},
			{Name: "~/.local/state/mailtree/lists", Text: "the row numbers of recent lists"},
			{Name: ".env", Text: "settings for mailtree serve, read from the folder in which you start it"},
		},
	}
	for _, s := range exitStatuses {
		m.Statuses = append(m.Statuses, pages.Entry{Name: strconv.Itoa(s.code), Text: s.text})
	}
	for _, s := range settings() {
		text := s.Help
		if s.Default != "" {
			text += " (default " + s.Default + ")"
		}
		m.Environment = append(m.Environment, pages.Entry{Name: s.Name, Text: text})
	}
	return m
}
