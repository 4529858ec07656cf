package main

import (
	"fmt"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"mailtree/fixtures/tmuxtest"
)

// desktop is a script's tmux server.
type desktop struct {
	t       testing.TB
	server  *tmuxtest.Server
	windows map[string]*tmuxtest.Window
	shell   *tmuxtest.Screen // used by the commands terminal, start, press and resize
}

type desktopKey struct{}

// tmux starts the server if it is not running yet.
func (d *desktop) tmux() *tmuxtest.Server {
	if d.server == nil {
		d.server = tmuxtest.Start(d.t)
	}
	return d.server
}

// cmdWindow implements `window NAME [DIR]`. It creates a tmux window in which a program records the typed text, or
// returns to that window. $TMUX and $TMUX_PANE make the commands that follow run in the window. A script that uses the
// command needs [!exec:tmux] skip.
func cmdWindow(ts *testscript.TestScript, neg bool, args []string) {
	d := ts.Value(desktopKey{}).(*desktop)
	w := d.windows[args[0]]
	if w == nil {
		w = d.tmux().Window("work", args[0], ts.MkAbs(args[1]))
		d.windows[args[0]] = w
	}
	ts.Setenv("TMUX", w.Tmux)
	ts.Setenv("TMUX_PANE", w.Pane)
}

// cmdTyped implements `typed NAME [LINES]`. It prints the text that has been typed into the window since the last call.
// With LINES, it waits until that many lines have arrived.
func cmdTyped(ts *testscript.TestScript, neg bool, args []string) {
	w := ts.Value(desktopKey{}).(*desktop).windows[args[0]]
	if len(args) > 1 {
		var n int
		_, err := fmt.Sscan(args[1], &n)
		ts.Check(err)
		w.Await(n)
	}
	lines := w.Typed()
	for _, line := range lines {
		show(ts, line+"\n")
	}
	if len(lines) == 0 {
		show(ts, "nothing\n")
	}
}

// cmdTab implements `tab SHELL TEXT LINE`. It types the text in a new terminal that runs the shell with the prompt
// "ready> ", and presses Tab until the line equals LINE. It needs tmux, like window.
func cmdTab(ts *testscript.TestScript, neg bool, args []string) {
	screen := ts.Value(desktopKey{}).(*desktop).tmux().Open(ts.MkAbs("."), scriptEnv(ts), args[0])
	screen.Await("ready>")
	screen.Type(args[1])
	screen.PressUntil("Tab", "ready> "+args[2])
}

// cmdTerminal implements `terminal LINE TEXT`. It types the line into a shell in a terminal of 80 columns. It uses the
// same shell each time. It waits until the screen shows the text and the command has ended, and prints the screen.
// It needs tmux, like window.
func cmdTerminal(ts *testscript.TestScript, neg bool, args []string) {
	shell := shellOf(ts)
	shell.Resize(80, 60)
	shell.Type("clear; " + args[0])
	shell.Press("Enter") // only once: another Enter while the command runs would leave two prompts on one line
	shell.Await(args[1])
	shell.AwaitLast("ready>")
	show(ts, shell.Text())
}

// shellOf returns the terminal of the script. If no shell is running there yet, shellOf starts one.
func shellOf(ts *testscript.TestScript) *tmuxtest.Screen {
	d := ts.Value(desktopKey{}).(*desktop)
	if d.shell == nil {
		d.shell = d.tmux().Open(ts.MkAbs("."), append(scriptEnv(ts), "PS1=ready> "), "sh")
		d.shell.Await("ready>")
	}
	return d.shell
}

// cmdStart implements `start LINE TEXT`. It is like terminal, but for a full-screen program, in a terminal of 80
// columns and 24 lines. It does not wait for the program to exit.
func cmdStart(ts *testscript.TestScript, neg bool, args []string) {
	shell := shellOf(ts)
	shell.Resize(80, 24)
	shell.Type("clear; " + args[0])
	shell.Press("Enter")
	shell.Await(args[1])
	show(ts, shell.Text())
}

// cmdPress implements `press KEY TEXT`. It presses the key in the program that start has started, waits until the
// screen shows the text, and prints the screen. With the key "", it only waits. With `press -again KEY TEXT`, it
// presses the key every second until the screen shows the text.
func cmdPress(ts *testscript.TestScript, neg bool, args []string) {
	shell := shellOf(ts)
	switch {
	case args[0] == "-again":
		args = args[1:]
		shell.PressUntil(args[0], args[1])
	case args[0] != "":
		shell.Press(args[0])
	}
	shell.Await(args[1])
	show(ts, shell.Text())
}

// cmdResize implements `resize COLUMNS LINES TEXT`. It resizes the terminal, waits until the screen shows the text, and
// prints the screen.
func cmdResize(ts *testscript.TestScript, neg bool, args []string) {
	var columns, lines int
	_, err := fmt.Sscan(args[0]+" "+args[1], &columns, &lines)
	ts.Check(err)
	shell := shellOf(ts)
	shell.Resize(columns, lines)
	shell.Await(args[2])
	show(ts, shell.Text())
}
