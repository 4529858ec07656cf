package main

import (
	"fmt"
	"strings"
	"testing"

	"mailtree/fixtures/tmuxtest"
)

// approvals is what each client asks a person in a new code base.
var approvals = []struct {
	kit    kit
	forget func(d *desk)          // takes back the trust that the kit gave
	check  string                 // what --check tells a person to do
	before string                 // what the client's own list of servers says then
	answer func(*tmuxtest.Screen) // as --check told
	after  string
}{
	{
		kit:    claudeKit,
		forget: func(d *desk) { d.write(".claude.json", `{"hasCompletedOnboarding": true}`) },
		check:  `start claude there once and choose "Yes, I trust this folder", then "Use this MCP server"`,
		before: "Pending approval",
		answer: func(screen *tmuxtest.Screen) {
			screen.PressUntil("Down", "❯ Yes, I trust this folder")
			screen.PressUntil("Enter", "New MCP server found")
			screen.PressUntil("Up", "❯ Use this MCP server")
			screen.PressUntil("Enter", "Claude Code v")
		},
		after: "Connected",
	},
	{
		kit: codexKit,
		forget: func(d *desk) {
			d.write(".codex/config.toml", fmt.Sprintf(codexConfig, d.modelURL+"/openai/v1", d.home))
		},
		check:  `start codex there once and choose "Trust and continue"`,
		before: "No MCP servers configured",
		answer: func(screen *tmuxtest.Screen) {
			screen.Await("› 1. Trust and continue")
			screen.PressUntil("Enter", "Trust all and continue") // the hooks, which it asks for next
			codexKit.greet(screen)
		},
		after: "mailtree",
	},
	{
		kit: geminiKit,
		// It starts anew with what it trusts.
		forget: func(d *desk) { d.env = append(d.env, "GEMINI_CLI_TRUST_WORKSPACE=", "GEMINI_CLI_NO_RELAUNCH=") },
		check:  `start gemini there once and choose "Trust folder"`,
		before: "Disabled",
		answer: func(screen *tmuxtest.Screen) {
			screen.Await("● 1. Trust folder")
			screen.PressUntil("Enter", "Type your message")
		},
		after: "Connected",
	},
}

// TestClientApproval: a client uses nothing that stands in a code base before a person has approved it
// there, and `mailtree setup --check` says so; once it is approved the client has the mail, and --check
// finds nothing.
func TestClientApproval(t *testing.T) {
	for _, of := range approvals {
		t.Run(of.kit.name, func(t *testing.T) {
			d := newDesk(t, of.kit.name)
			of.kit.prepare(d)
			of.forget(d)
			d.setUp("stdio", "--project")
			if out, err := d.try("mailtree", "setup", d.name, "--check"); err == nil || !strings.Contains(out, of.check) {
				t.Errorf("before: %v\n%s", err, out)
			}
			if out := d.run(d.name, "mcp", "list"); !strings.Contains(out, of.before) {
				t.Errorf("before, the client says:\n%s", out)
			}
			of.answer(d.open(d.name))
			if out, err := d.try("mailtree", "setup", d.name, "--check"); err != nil || !strings.Contains(out, "waits for a person's approval") {
				t.Errorf("after: %v\n%s", err, out)
			}
			if out := d.run(d.name, "mcp", "list"); !strings.Contains(out, of.after) {
				t.Errorf("after, the client says:\n%s", out)
			}
		})
	}
}
