package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mailtree/fixtures/tmuxtest"
	"mailtree/fixtures/waits"
)

var pictures = flag.Bool("pictures", false, "write docs/pictures/terminal.cast and terminal.svg")

// The width of the recorded terminal, the height of each pane, and the total height.
const (
	castColumns = 100
	castGreen   = 8
	castBlue    = 21
	castRobin   = 17
	castLines   = castGreen + castBlue + castRobin + 3 // a title above each pane
)

// castPanes are the titles of the recorded panes, from top to bottom.
var castPanes = []string{"GreenCastle, an agent", "BlueLake, an agent", "robin, a person"}

// castSteps are the commands of the recorded session. Each command is typed in a pane, which then shows the given text.
var castSteps = []struct {
	pane        int
	line, shows string
}{
	{0, "mailtree claim 'api/**' --reason 'orders API'", "claimed api/** for 1h (1 file)"},
	{1, "git commit -am 'Rename total'", "GreenCastle holds api/** (orders API) for another "},
	{1, "mailtree send robin 'May I rename total once GreenCastle is done?'", "to robin: May I rename total once GreenCastle is done?"},
	{2, "mailtree", "1  BlueLake  May I rename total once GreenCastle is done?"},
	{2, "mailtree yes 1", "Yes."},
	{0, "mailtree release 'api/**'", "released api/**"},
	{1, "git commit -am 'Rename total'", "1 file changed"},
}

// castEvent is an event in an asciicast file: the data that the terminal receives, and the time in seconds at which it
// receives the data.
type castEvent struct {
	at   float64
	data string
}

// TestRecording plays a session of two agents and a user with the real program. It also checks that
// docs/pictures/terminal.cast shows such a session, and that terminal.svg is the picture of that file. With -pictures,
// it writes both files.
func TestRecording(t *testing.T) {
	t.Parallel()
	const cast, picture = "../../docs/pictures/terminal.cast", "../../docs/pictures/terminal.svg"
	events := record(t)
	if *pictures {
		writeCast(t, cast, events)
	}
	times, screens := playCast(t, readCast(t, cast))
	for _, step := range castSteps {
		shows := func(screen []string) bool { return strings.Contains(plainText(screen), step.shows) }
		if !slices.ContainsFunc(screens, shows) {
			t.Errorf("%s does not show %q: run docs/pictures/make", cast, step.shows)
		}
	}
	drawn := draw(times, screens)
	if *pictures {
		if err := os.WriteFile(picture, drawn, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if stored, err := os.ReadFile(picture); err != nil || !bytes.Equal(stored, drawn) {
		t.Errorf("%s is not the picture of %s: run docs/pictures/make (%v)", picture, cast, err)
	}
}

// record plays the session and returns what the terminal received. The times follow a reader's pace, not the test's.
func record(t *testing.T) []castEvent {
	env, code := castStore(t)
	panes := tmuxtest.Start(t)
	terminal := tmuxtest.Start(t) // its window shows the session of panes, and is recorded
	panes.Run("start-server", ";", "set", "-g", "status", "off", ";", "set", "-g", "set-titles", "on", ";",
		"set", "-g", "pane-border-status", "top", ";", "set", "-g", "pane-active-border-style", "fg=default", ";",
		"set", "-g", "pane-border-format", "#[fg=cyan,bold] #{pane_title} ", ";", "set", "-g", "exit-empty", "off")
	shell := func(agent string) []string {
		return append(slices.Clone(env), "PS1=\033[32m$\033[0m ", "MAILTREE_ME="+agent)
	}
	green := panes.Open(code, append(shell("GreenCastle"), "AGENT_NAME=GreenCastle"), "sh")
	terminal.Attach(panes)
	terminal.Run("resize-window", "-t", "terminal", "-x", strconv.Itoa(castColumns), "-y", strconv.Itoa(castLines))
	waits.Until(t, "the session has the terminal's size", func() bool {
		return panes.Run("display-message", "-p", "-t", green.Pane(), "#{window_width}x#{window_height}") == fmt.Sprintf("%dx%d", castColumns, castLines)
	})
	blue := green.Below(castBlue+castRobin+1, code, append(shell("BlueLake"), "AGENT_NAME=BlueLake"), "sh")
	robin := blue.Below(castRobin, code, shell("robin"), "sh")
	screens := []*tmuxtest.Screen{green, blue, robin}
	for i, screen := range screens {
		panes.Run("select-pane", "-t", screen.Pane(), "-T", castPanes[i])
		screen.Await("$")
	}

	file := filepath.Join(t.TempDir(), "terminal")
	terminal.Run("pipe-pane", "-O", "-t", "terminal", "exec cat >"+file)
	waits.Until(t, "the terminal is recorded", func() bool { _, err := os.Stat(file); return err == nil })
	// The first output assumes the current position of the cursor, so the first event begins by moving the cursor
	// there.
	start := terminal.Run("display-message", "-p", "-t", "terminal", "\x1b[#{e|+:#{cursor_y},1};#{e|+:#{cursor_x},1}H")
	panes.Run("refresh-client", "-t", panes.Run("list-clients", "-F", "#{client_name}"))
	var events []castEvent
	at, seen := 0.0, 0
	// until ends an event once the terminal has received everything that the panes show. To mark the end of the event,
	// it sets the terminal's title. The next event follows after the pause, in seconds.
	until := func(pause float64) {
		title := fmt.Sprintf("mailtree %d", len(events)+1)
		panes.Run("set", "-g", "set-titles-string", title)
		var end int
		waits.Until(t, "the terminal has got everything", func() bool {
			data, _ := os.ReadFile(file)
			before, _, found := bytes.Cut(data[seen:], []byte(title+"\a"))
			end = seen + len(before) + len(title) + 1
			if found {
				events = append(events, castEvent{at, start + string(data[seen:end])})
				start = ""
			}
			return found
		})
		at, seen = at+pause, end
	}
	until(1)
	for _, step := range castSteps {
		screen := screens[step.pane]
		panes.Run("select-pane", "-t", screen.Pane())
		screen.Type(step.line)
		until(1)
		screen.Press("Enter")
		screen.Await(step.shows)
		screen.AwaitLast("$")
		until(3)
	}
	return events
}

// castHome creates the home folder of the session. In a recording, its path is always the same.
func castHome() (string, error) {
	if !*pictures {
		return os.MkdirTemp("", "robin")
	}
	const home = "/tmp/robin"
	return home, os.Mkdir(home, 0o700)
}

// castStore creates the store and the code base of the session. It returns the environment of the session's shells, and
// the code base.
func castStore(t *testing.T) (env []string, code string) {
	home, err := castHome()
	if err != nil {
		t.Fatal(err)
	}
	code = filepath.Join(home, "shop")
	env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "MCP_MAIL_STORE=" + filepath.Join(home, ".mailtree"), "GIT_CONFIG_NOSYSTEM=1",
		"LANG=C.UTF-8", "IDLE=1h"}
	t.Cleanup(func() {
		endLeft(t, home)
		os.RemoveAll(home)
	})
	setup := exec.Command("sh", "-ec", `
		git config --global user.name robin
		git config --global user.email robin@example.org
		git init -q -b main "$0" && cd "$0"
		mkdir api && echo 'total = 0' >api/orders.py
		git add . && git commit -qm 'Begin'
		echo 'amount = 0' >api/orders.py
		export MAILTREE_ME=robin
		mailtree new project && mailtree guard install
		mailtree new agent GreenCastle && mailtree new agent BlueLake`, code)
	setup.Env = env
	if out, err := setup.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return env, code
}

// writeCast writes an asciicast file, version 2.
func writeCast(t *testing.T, path string, events []castEvent) {
	var file bytes.Buffer
	lines := json.NewEncoder(&file)
	lines.SetEscapeHTML(false)
	lines.Encode(map[string]any{"version": 2, "width": castColumns, "height": castLines, "title": "Two agents and a person"})
	for _, e := range events {
		lines.Encode([]any{e.at, "o", e.data})
	}
	if err := os.WriteFile(path, file.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// readCast reads an asciicast file that writeCast wrote.
func readCast(t *testing.T, path string) (events []castEvent) {
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(file) {
		var kind string
		var e castEvent
		if err := json.Unmarshal(line, &[]any{&e.at, &kind, &e.data}); err == nil && kind == "o" {
			events = append(events, e)
		}
	}
	return events
}

// playCast shows the events in a terminal. It returns the screen after each event, as lines with escape sequences, and
// the time at which that screen appears.
func playCast(t *testing.T, events []castEvent) (times []float64, screens [][]string) {
	file, err := os.Create(filepath.Join(t.TempDir(), "replay"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	server := tmuxtest.Start(t)
	screen := server.Open(t.TempDir(), nil, "sh -c 'stty raw -echo; exec tail -c +1 -f "+file.Name()+"'")
	screen.Resize(castColumns, castLines)
	for i, e := range events {
		if _, err := file.WriteString(e.data); err != nil {
			t.Fatal(err)
		}
		waits.Until(t, "the event is shown", func() bool {
			return server.Run("display-message", "-p", "-t", screen.Pane(), "#{pane_title}") == fmt.Sprintf("mailtree %d", i+1)
		})
		times = append(times, e.at)
		screens = append(screens, strings.Split(server.Run("capture-pane", "-e", "-p", "-t", screen.Pane()), "\n"))
	}
	return times, screens
}
