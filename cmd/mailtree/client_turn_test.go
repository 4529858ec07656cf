package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mailtree/fixtures/model"
	"mailtree/fixtures/tmuxtest"
)

// kit describes how the tests use a client.
type kit struct {
	name     string
	prepare  func(d *desk) // writes the files that make the client use the model
	ask      []string      // the command line that runs a prompt without a terminal; the prompt is appended to it
	resume   []string      // like ask, but continues the previous session
	terminal string        // the command line of a session in a terminal

	greet func(*tmuxtest.Screen) // answers dialogs until the client accepts a prompt; may be nil

	shell      string // the client's tool that runs a command; write is its tool that writes a file
	write      string
	shellNamed bool // AGENT_NAME is set in the client's shell
	system     bool // the client adds the SessionStart hook's output to the system prompt
	shellInput func(command string) map[string]any
	writeInput func(path, content string) any
}

var kits = []kit{claudeKit, codexKit, geminiKit, opencodeKit, copilotKit, qwenKit}

// each runs a test with every installed client.
func each(t *testing.T, test func(t *testing.T, k kit)) {
	for _, k := range kits {
		t.Run(k.name, func(t *testing.T) { test(t, k) })
	}
}

// TestClientTurn checks one turn of a client that was set up with `mailtree setup`, over HTTP or stdio. The model
// learns its agent's name, calls a mailtree tool, and is notified once, within its turn, of mail that has just arrived.
// The model cannot write a file that another agent has claimed. When it writes an unclaimed file, its agent gets a
// claim on that file. A resumed session acts as the same agent, and is notified of the message again.
func TestClientTurn(t *testing.T) {
	each(t, func(t *testing.T, k kit) {
		for _, transport := range []string{"http", "stdio"} {
			t.Run(transport, func(t *testing.T) { turn(t, k, transport == "stdio", func(d *desk) { d.setUp(transport) }) })
		}
	})
}

// waitInTurn is a command that keeps a turn from ending. It creates a file when it starts, and exits when the test
// creates another file.
const waitInTurn = "touch started; until [ -f told ]; do sleep 0.05; done; echo go-on as $AGENT_NAME"

// turn runs the turn that TestClientTurn describes. setUp sets up the client. If resumes is true, turn also resumes the
// session.
func turn(t *testing.T, k kit, resumes bool, setUp func(d *desk)) {
	d := newDesk(t, k.name)
	d.model.Script(t,
		model.Rule{When: "Begin the work", Times: 1, Calls: say("list_agents", map[string]any{"project_key": d.code})},
		model.Rule{When: "GreenCastle", Times: 1, Calls: say(k.shell, k.shellInput(waitInTurn))},
		model.Rule{When: "go-on", Times: 1, Calls: say(k.write, k.writeInput(filepath.Join(d.code, "held.txt"), "mine"))},
		model.Rule{When: "held.txt", Times: 1, Calls: say(k.write, k.writeInput(filepath.Join(d.code, "free.txt"), "mine"))},
	)
	k.prepare(d)
	setUp(d)
	done := d.ask(k, "Begin the work.")
	d.awaitFile("started")
	d.claim("held.txt")
	agent := d.agent()
	d.send(agent, "Plan for /api/users")
	d.write("code/told", "")
	said := <-done
	if told := d.turnsWith("Plan for /api/users"); len(told) != 1 || !strings.Contains(told[0].Turn.Last(), "go-on") {
		t.Errorf("the model was notified of the message %d times, want once, with the command's output", len(told))
	}
	if n := d.times("Plan for /api/users"); n != 1 {
		t.Errorf("the message was announced %d times, want once", n)
	}
	identity, told := "You are "+agent+" (mail", 0
	if k.system {
		told = strings.Count(d.turnsWith("Begin the work.")[0].Turn.System, identity)
	} else {
		told = d.times(identity)
	}
	if told != 1 {
		t.Errorf("the model was told %d times who it is, want once", told)
	}
	if k.shellNamed && len(d.turnsWith("go-on as "+agent)) != 1 {
		t.Errorf("the shell does not have %s's name", agent)
	}
	if refused := d.turnsWith("GreenCastle holds"); len(refused) != 1 {
		t.Errorf("the edit was refused %d times, want once", len(refused))
	}
	if _, err := os.Stat(filepath.Join(d.code, "held.txt")); err == nil {
		t.Error("held.txt was written, though another agent has claimed it")
	}
	if _, err := os.Stat(filepath.Join(d.code, "free.txt")); err != nil {
		t.Error("free.txt was not written")
	}
	if resumes {
		k.ask = k.resume
		said += <-d.ask(k, "What is new?")
		// The pattern excludes the sessions of tmux windows.
		sessions, _ := filepath.Glob(filepath.Join(d.home, ".mailtree/projects/*/repo/.mailtree/sessions", k.name+"-*"))
		if now := d.agent(); now != agent || len(sessions) != 1 {
			t.Errorf("there are %d sessions, and the last belongs to %s; want only %s's resumed session", len(sessions), now, agent)
		}
		if told := d.turnsWith("Plan for /api/users"); len(told) != 2 {
			t.Errorf("after resuming, the model was notified of the message %d times, want once", len(told)-1)
		}
	}
	if t.Failed() {
		t.Logf("the client said:\n%s", said)
		d.model.Dump(t)
	}
}

// ask runs a prompt without a terminal. When the client exits, ask sends the client's output to the channel.
func (d *desk) ask(k kit, prompt string) <-chan string {
	var asking sync.WaitGroup
	d.t.Cleanup(asking.Wait)
	done := make(chan string, 1)
	asking.Go(func() {
		said, err := d.try(k.ask[0], append(slices.Clone(k.ask[1:]), prompt)...)
		if err != nil {
			d.t.Errorf("%s: %v", d.name, err)
		}
		done <- said
	})
	return done
}

// awaitFile waits until the code base contains the file.
func (d *desk) awaitFile(name string) {
	d.t.Helper()
	for deadline := time.Now().Add(clientWait); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(d.code, name)); err == nil {
			return
		}
		if time.Now().After(deadline) {
			d.model.Dump(d.t)
			d.t.Fatalf("the client did not create the file %s", name)
		}
	}
}
