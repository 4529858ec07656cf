package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mailtree/fixtures/model"
	"mailtree/fixtures/tmuxtest"
	"mailtree/fixtures/waits"
)

// ending describes how a user ends turns in a client, and how the client asks for permission.
type ending struct {
	kit
	interrupted string                   // the text on the screen after Esc has interrupted a turn
	twice       bool                     // Esc must be pressed twice in quick succession to interrupt a turn
	asking      string                   // command line of a session that asks before each command; if empty, terminal is used
	prepare     func(d *desk)            // additional setup for a session that asks; may be nil
	question    string                   // text that the screen shows at the prompt
	refuse      func(s *tmuxtest.Screen) // answers "No"
	escalates   bool                     // the command needs rights that the sandbox does not grant
	unshown     bool                     // the client does not report its prompts
}

func press(keys ...string) func(s *tmuxtest.Screen) {
	return func(s *tmuxtest.Screen) {
		for _, key := range keys {
			s.Press(key)
		}
	}
}

var endings = []ending{
	{
		kit:         claudeKit,
		interrupted: "Interrupted",
		asking:      "claude --permission-mode default --allowedTools mcp__mail",
		question:    "Do you want to proceed?",
		refuse:      press("Escape"),
	},
	{
		kit:         codexKit,
		interrupted: "Conversation interrupted",
		asking:      "codex -s read-only -a on-request",
		escalates:   true,
		question:    "Would you like to run the following command?",
		refuse:      press("Escape"),
	},
	{
		kit:         geminiKit,
		interrupted: "Request cancelled",
		asking:      "gemini --approval-mode default",
		question:    "Allow execution",
		refuse:      press("3"),
	},
	{
		kit:         opencodeKit,
		interrupted: "interrupted",
		prepare: func(d *desk) {
			d.replace(".config/opencode/opencode.json", `"bash": "allow"`, `"bash": "ask"`)
		},
		question: "Permission required",
		refuse:   press("Escape"),
		unshown:  true,
	},
	{
		kit:         copilotInTmux(),
		interrupted: "Operation cancelled by user",
		twice:       true,
		asking:      "copilot",
		question:    "Do you want to run this command?",
		refuse:      func(s *tmuxtest.Screen) { s.PressUntil("Escape", "Operation cancelled by user") },
	},
}

// copilotInTmux returns a kit in which the server types into Copilot CLI's window. Nothing else can wake Copilot CLI.
func copilotInTmux() kit {
	k := copilotKit
	k.terminal = "copilot --allow-all-tools"
	k.prepare = func(d *desk) {
		copilotKit.prepare(d)
		d.env = append(d.env, "NUDGE=tmux")
		d.restart()
	}
	k.greet = func(screen *tmuxtest.Screen) { screen.Await("❯") }
	return k
}

// TestClientEnds checks that mail wakes a session once after its turn has ended early: by Esc, by an error from the
// model's server, or by "No" at a permission prompt. The test logs the delay between the end of that turn and the woken
// turn.
func TestClientEnds(t *testing.T) {
	for _, e := range endings {
		t.Run(e.name, func(t *testing.T) {
			t.Run("esc", func(t *testing.T) { e.esc(t) })
			t.Run("error", func(t *testing.T) { e.error(t) })
			t.Run("no", func(t *testing.T) { e.no(t) })
		})
	}
}

const endThis = "End this turn."

func (e *ending) esc(t *testing.T) {
	d, screen, agent := e.open(t, e.terminal, nil, model.Rule{When: endThis, Times: 1, Calls: say(e.shell, e.shellInput(waitInTurn))})
	d.awaitFile("started")
	if e.twice {
		screen.PressTwiceUntil("Escape", e.interrupted)
	} else {
		screen.PressUntil("Escape", e.interrupted)
	}
	e.wakes(d, agent)
}

func (e *ending) error(t *testing.T) {
	d, _, agent := e.open(t, e.terminal, nil, model.Rule{When: endThis, Times: 1, Fail: 400})
	e.wakes(d, agent)
}

func (e *ending) no(t *testing.T) {
	terminal := e.asking
	if terminal == "" {
		terminal = e.terminal
	}
	asks := e.shellInput("touch asked")
	if e.escalates {
		asks["sandbox_permissions"], asks["justification"] = "require_escalated", "May it touch a file?"
	}
	d, screen, agent := e.open(t, terminal, e.prepare, model.Rule{When: endThis, Times: 1, Calls: say(e.shell, asks)})
	screen.Await(e.question)
	if !e.unshown {
		d.awaitAsks(agent, true)
	}
	e.refuse(screen)
	e.wakes(d, agent)
	d.awaitAsks(agent, false)
}

// open starts a session in a terminal, and returns when the model has received the session's second turn. rule is the
// model's rule for that turn.
func (e *ending) open(t *testing.T, terminal string, prepare func(d *desk), rule model.Rule) (d *desk, screen *tmuxtest.Screen, agent string) {
	if terminal == "" {
		t.Skip("this client has no session in a terminal here")
	}
	d = newDesk(t, e.name)
	d.model.Script(t, rule)
	e.kit.prepare(d)
	if prepare != nil {
		prepare(d)
	}
	d.setUp("stdio")
	screen = d.open(terminal)
	if e.greet != nil {
		e.greet(screen)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the screen showed:\n%s", screen.Text())
			d.model.Dump(t)
		}
	})
	screen.Submit("Begin the work.", func() bool { return len(d.turnsWith("Begin the work.")) > 0 })
	d.awaitIdle()
	screen.Submit(endThis, func() bool { return len(d.turnsWith(endThis)) > 0 })
	return d, screen, d.agent()
}

// wakes sends a message to a session whose turn has just ended, and waits for the single turn that the message causes.
func (e *ending) wakes(d *desk, agent string) {
	d.t.Helper()
	ended := time.Now()
	subject := fmt.Sprintf("The plan after %s", strings.ReplaceAll(d.t.Name(), "/", " "))
	d.send(agent, subject)
	woken := d.awaitTurn(subject)
	waits.Limit(d.t, "a wake after the end of a turn", woken.At.Sub(ended), 5*time.Second)
	d.awaitIdle()
	if n := len(d.turnsWith(subject)); n != 1 {
		d.t.Errorf("the message was announced in %d turns, want one", n)
	}
}
