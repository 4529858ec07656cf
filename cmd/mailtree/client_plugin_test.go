package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailtree/fixtures/model"
)

// plugged describes a client and how a user installs the plugin for that client.
type plugged struct {
	kit
	install func(d *desk, dir string) // installs the plugin from a folder that `mailtree setup --plugin` wrote
}

var plugins = []plugged{
	{claudeKit, commands("claude plugin marketplace add DIR", "claude plugin install mailtree@mailtree")},
	{codexKit, commands("codex plugin marketplace add DIR", "codex plugin add mailtree@mailtree")},
	{geminiKit, commands("gemini extensions install DIR --consent")},
	{copilotKit, commands("copilot plugin marketplace add DIR", "copilot plugin install mailtree@mailtree")},
	{qwenKit, commands("qwen extensions install DIR --consent")},
	{opencodeKit, func(d *desk, dir string) {
		module := filepath.Join(dir, "clients/plugin/opencode")
		d.replace(".config/opencode/opencode.json", `"autoupdate": false`, fmt.Sprintf(`"autoupdate": false, "plugin": [%q]`, "file://"+module))
	}},
}

// commands returns a function that runs command lines, and answers yes to any question they ask.
func commands(lines ...string) func(d *desk, dir string) {
	return func(d *desk, dir string) {
		d.t.Helper()
		for _, line := range lines {
			words := strings.Fields(strings.ReplaceAll(line, "DIR", dir))
			if out, err := d.tryWith("y\n", words[0], words[1:]...); err != nil {
				d.t.Fatalf("%s: %v\n%s", line, err, out)
			}
		}
	}
}

// plugIn installs the plugin as a user would.
func (d *desk) plugIn(p plugged) {
	d.t.Helper()
	dir := filepath.Join(d.home, "mailtree")
	d.run("mailtree", "setup", "--plugin", dir)
	p.install(d, dir)
}

func eachPlugin(t *testing.T, test func(t *testing.T, p plugged)) {
	for _, p := range plugins {
		t.Run(p.name, func(t *testing.T) { test(t, p) })
	}
}

// TestClientPlugin checks that a client with the plugin behaves as it does after `mailtree setup`, and that a client
// with both the plugin and the setup does nothing twice.
func TestClientPlugin(t *testing.T) {
	eachPlugin(t, func(t *testing.T, p plugged) {
		t.Run("alone", func(t *testing.T) { turn(t, p.kit, true, func(d *desk) { d.plugIn(p) }) })
		t.Run("setup", func(t *testing.T) {
			turn(t, p.kit, true, func(d *desk) {
				d.plugIn(p)
				d.setUp("stdio")
			})
		})
	})
}

// TestClientPluginWake checks that mail wakes a session of a client with the plugin only once, even if `mailtree
// setup` has also set up the client.
func TestClientPluginWake(t *testing.T) {
	eachPlugin(t, func(t *testing.T, p plugged) {
		if p.terminal == "" {
			t.Skip("only typed text wakes this client")
		}
		for _, both := range []bool{false, true} {
			t.Run(fmt.Sprintf("setup=%t", both), func(t *testing.T) {
				d := newDesk(t, p.name)
				p.prepare(d)
				d.plugIn(p)
				if both {
					d.setUp("stdio")
				}
				screen := d.open(p.terminal)
				if p.greet != nil {
					p.greet(screen)
				}
				defer func() {
					if t.Failed() {
						t.Logf("the screen showed:\n%s", screen.Text())
						d.model.Dump(t)
					}
				}()
				screen.Submit("Begin the work.", func() bool { return len(d.turnsWith("Begin the work.")) > 0 })
				agent := d.awaitIdle()
				d.wake(agent, "The first plan")
				d.wake(agent, "The second plan")
				for _, subject := range []string{"The first plan", "The second plan"} {
					if n := len(d.turnsWith(subject)); n != 1 {
						t.Errorf("%q was announced in %d turns, want one", subject, n)
					}
				}
			})
		}
	})
}

// TestClientPluginMissing checks that a client with the plugin works if mailtree is not on its PATH, and says once per
// session how to install mailtree, either on its screen or to its model.
func TestClientPluginMissing(t *testing.T) {
	const says = "because mailtree is not on the PATH"
	eachPlugin(t, func(t *testing.T, p plugged) {
		d := newDesk(t, p.name)
		p.prepare(d)
		d.plugIn(p)
		d.env = append(d.env, "PATH="+os.Getenv(clientsEnv)+":"+withoutMailtree())
		if p.terminal == "" {
			said := <-d.ask(p.kit, "Begin the work.")
			n := strings.Count(said, says) + len(d.turnsWith(says))
			if p.system {
				n += strings.Count(d.turnsWith("Begin the work.")[0].Turn.System, says)
			}
			if n != 1 {
				t.Errorf("it was said %d times, want once:\n%s", n, said)
				d.model.Dump(t)
			}
			return
		}
		screen := d.open(p.terminal)
		if p.greet != nil {
			p.greet(screen)
		}
		for _, prompt := range []string{"Begin the work.", "Go on with it."} {
			screen.Submit(prompt, func() bool { return len(d.turnsWith(prompt)) > 0 })
		}
		if len(d.turnsWith(says)) == 0 {
			screen.Await(says)
		}
		if n := strings.Count(screen.Text(), says) + len(d.turnsWith(says)); n != 1 {
			t.Errorf("it was said %d times, want once:\n%s", n, screen.Text())
		}
	})
}

// TestClientPluginAgent checks that clients that read Agent Plugins 1.0 offer mailtree's tools and its skill to their
// models. The format has no hooks, so the session does not become an agent.
func TestClientPluginAgent(t *testing.T) {
	for _, p := range []plugged{
		{qwenKit, commands("qwen extensions install DIR --consent")},
		{copilotKit, commands("copilot plugin install DIR")},
	} {
		t.Run(p.name, func(t *testing.T) {
			d := newDesk(t, p.name)
			d.model.Script(t, model.Rule{When: "Begin the work", Times: 1, Calls: say("list_agents", map[string]any{"project_key": d.code})})
			p.prepare(d)
			dir := filepath.Join(d.home, "mailtree")
			d.run("mailtree", "setup", "--plugin", dir)
			p.install(d, filepath.Join(dir, "clients/plugin/agent"))
			said := <-d.ask(p.kit, "Begin the work.")
			if n := len(d.turnsWith("The other side")); n != 1 {
				t.Errorf("the model reached the server %d times, want once", n)
			}
			first := d.turnsWith("Begin the work.")[0].Turn
			if !strings.Contains(first.System+first.All(), "Mail and file claims for coding agents and people") {
				t.Error("the model does not see the skill")
			}
			if n := d.sessions(); n != 0 {
				t.Errorf("%d sessions became agents, want none", n)
			}
			if t.Failed() {
				t.Logf("the client said:\n%s", said)
				d.model.Dump(t)
			}
		})
	}
}
