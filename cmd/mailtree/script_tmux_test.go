package main

import (
	"fmt"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"mailtree/fixtures/tmuxtest"
)

// desktop is the tmux server of a script.
type desktop struct {
	t       testing.TB
	server  *tmuxtest.Server
	windows map[string]*tmuxtest.Window
	shell   *tmuxtest.Screen // of the command terminal
}

type desktopKey struct{}

// tmux starts the server where it does not run yet.
func (d *desktop) tmux() *tmuxtest.Server {
	if d.server == nil {
		d.server = tmuxtest.Start(d.t)
	}
	return d.server
}

// window NAME [DIR]: makes a tmux window in which a program writes down what is typed, or goes back
// to it; what follows runs in it, as far as $TMUX and $TMUX_PANE tell. Needs tmux: [!exec:tmux]
// skip.
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

// typed NAME [LINES]: prints what was typed into the window since the last time; with LINES it
// waits until that many lines have come.
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

// tab SHELL TEXT LINE: types the text in a new terminal in which the shell runs, whose prompt is
// "ready> ", and presses Tab until the line is that one. Needs tmux, as window does.
func cmdTab(ts *testscript.TestScript, neg bool, args []string) {
	screen := ts.Value(desktopKey{}).(*desktop).tmux().Open(ts.MkAbs("."), scriptEnv(ts), args[0])
	screen.Await("ready>")
	screen.Type(args[1])
	screen.PressUntil("Tab", "ready> "+args[2])
}

// terminal LINE TEXT: types the line into a shell in a terminal of 80 columns, the same each time, waits until the
// screen shows the text and the command is over, and prints the screen. Needs tmux, as window does.
func cmdTerminal(ts *testscript.TestScript, neg bool, args []string) {
	d := ts.Value(desktopKey{}).(*desktop)
	if d.shell == nil {
		d.shell = d.tmux().Open(ts.MkAbs("."), append(scriptEnv(ts), "PS1=ready> "), "sh")
		d.shell.Resize(80, 60)
		d.shell.Await("ready>")
	}
	d.shell.Type("clear; " + args[0])
	d.shell.PressUntil("Enter", args[1])
	d.shell.AwaitLast("ready>")
	show(ts, d.shell.Text())
}
