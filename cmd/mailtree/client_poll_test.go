package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mailtree/fixtures/model"
	"mailtree/fixtures/tmuxtest"
)

// TestClientPoll checks that mail wakes an idle Claude Code session even without a hook if one of the session's calls
// is waiting for mail. Claude Code moves such a call to the background.
func TestClientPoll(t *testing.T) {
	d := newDesk(t, "claude")
	d.call("create_agent", map[string]any{
		"project_key":      d.code,
		"name_hint":        "BlueLake",
		"program":          "claude",
		"model":            "none",
		"task_description": "Waits",
	})
	d.model.Script(t, model.Rule{When: "Begin the work", Times: 1, Calls: say("check_my_messages", map[string]any{
		"project_key":  d.code,
		"agent_name":   "BlueLake",
		"unread_only":  true,
		"wait_seconds": 3600,
	})})
	claudeKit.prepare(d)
	d.env = append(d.env, "CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS=1000") // the default is two minutes
	d.setUp("http", "--no-hooks")
	screen := d.open(claudeKit.terminal)
	d.promptUntilConnected(screen)
	d.awaitTurn("It was moved to the background")
	d.send("BlueLake", "The plan")
	d.awaitTurn("The plan")
}

// promptUntilConnected sends prompts to the client until the client offers mailtree's tools to its model. The client
// may accept prompts before it has connected to its servers.
func (d *desk) promptUntilConnected(screen *tmuxtest.Screen) {
	d.t.Helper()
	ours := func(tool string) bool { return strings.HasSuffix(tool, "check_my_messages") }
	for {
		d.prompts++
		prompt := fmt.Sprintf("Begin the work, try %d.", d.prompts)
		screen.Submit(prompt, func() bool { return len(d.turnsWith(prompt)) > 0 })
		if slices.ContainsFunc(d.turnsWith(prompt)[0].Turn.Tools, ours) {
			return
		}
	}
}
