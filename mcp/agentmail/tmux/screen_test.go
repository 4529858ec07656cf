package tmux_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"mailtree/mcp/agentmail/tmux"
)

// TestScreens checks that ReadScreen interprets the screens of real clients in fixtures/screens correctly. Each file's
// name contains the expected result: "CASE: ACTIVITY TYPED; cursor LINE".
func TestScreens(t *testing.T) {
	activities := map[string]tmux.Activity{
		"waiting": tmux.Waiting, "typing": tmux.Typing, "asking": tmux.Asking, "working": tmux.Working,
	}
	name := regexp.MustCompile(`^(.+): (\w+) ?(.*); cursor (\d+)$`)
	files, err := filepath.Glob("../../../fixtures/screens/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no screens: %v", err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			m := name.FindStringSubmatch(f.Name)
			if m == nil || activities[m[2]] == "" {
				t.Fatalf("%s: the name of %q does not say what it shows", file, f.Name)
			}
			var cursor int
			fmt.Sscan(m[4], &cursor)
			got := tmux.ReadScreen(strings.ReplaceAll(string(f.Data), "␛", "\x1b"), cursor)
			if want := (tmux.Screen{Activity: activities[m[2]], Typed: m[3]}); got != want {
				t.Errorf("%s, %s: %+v, want %+v", filepath.Base(file), m[1], got, want)
			}
		}
	}
}

// TestCursorLine checks how screens with an unknown prompt are interpreted.
func TestCursorLine(t *testing.T) {
	for screen, want := range map[string]tmux.Activity{
		"":                        tmux.Waiting,
		"something\n":             tmux.Waiting,
		"a\nann@host:~/code$ ":    tmux.Waiting,
		"a\nann@host:~/code$ rm ": tmux.Typing,
		"a\n\x1b[1mann\x1b[0m % ": tmux.Waiting,
		"a\nhalf a line":          tmux.Typing,
	} {
		if got := tmux.ReadScreen(screen, 1); got.Activity != want {
			t.Errorf("%q: %+v, want %s", screen, got, want)
		}
	}
}
