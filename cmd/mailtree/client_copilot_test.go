package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailtree/fixtures/model"
)

// copilotKit is the kit for Copilot CLI, which reads the model's address from its environment and needs no login in
// offline mode. Its configuration file says that the user trusts the folder.
var copilotKit = kit{
	name: "copilot",
	prepare: func(d *desk) {
		d.env = append(d.env, "COPILOT_OFFLINE=true", "COPILOT_PROVIDER_BASE_URL="+d.modelURL+"/openai/v1",
			"COPILOT_PROVIDER_TYPE=openai", "COPILOT_PROVIDER_API_KEY=none", "COPILOT_MODEL=gpt-5", "COPILOT_AUTO_UPDATE=false")
		d.write(".copilot/config.json", fmt.Sprintf(`{"trustedFolders": [%q]}`, d.code))
	},
	ask:    []string{"copilot", "--allow-all-tools", "-p"},
	resume: []string{"copilot", "--allow-all-tools", "--continue", "-p"},
	shell:  "bash",
	write:  "create",
	shellInput: func(command string) map[string]any {
		return map[string]any{"command": command, "description": "Wait", "initial_wait": 600}
	},
	writeInput: func(path, content string) any {
		return map[string]any{"path": path, "file_text": content}
	},
}

// TestClientCopilotEdits checks that Copilot CLI does not change a file that another agent has claimed, whether the
// model uses the client's own edit tools or the patch tool that the client offers to other models.
func TestClientCopilotEdits(t *testing.T) {
	for _, c := range []struct {
		model, tool string
		input       func(path string) any
	}{
		{"gpt-5", "edit", func(path string) any { return map[string]any{"path": path, "old_str": "theirs", "new_str": "mine"} }},
		{"gpt-5.1-codex", "apply_patch", func(path string) any {
			return "*** Begin Patch\n*** Update File: " + path + "\n@@\n-theirs\n+mine\n*** End Patch\n"
		}},
	} {
		t.Run(c.tool, func(t *testing.T) {
			d := newDesk(t, "copilot")
			d.model.Script(t,
				model.Rule{When: "Begin the work", Times: 1, Calls: say(c.tool, c.input(filepath.Join(d.code, "held.txt")))},
				model.Rule{When: "GreenCastle holds", Times: 1, Calls: say(c.tool, c.input(filepath.Join(d.code, "free.txt")))},
			)
			copilotKit.prepare(d)
			d.env = append(d.env, "COPILOT_MODEL="+c.model)
			d.setUp("stdio")
			d.write("code/held.txt", "theirs\n")
			d.write("code/free.txt", "theirs\n")
			d.claim("held.txt")
			said := <-d.ask(copilotKit, "Begin the work.")
			for file, want := range map[string]string{"held.txt": "theirs\n", "free.txt": "mine\n"} {
				if got, err := os.ReadFile(filepath.Join(d.code, file)); err != nil || string(got) != want {
					t.Errorf("%s contains %q, %v; want %q", file, got, err, want)
				}
			}
			if t.Failed() {
				t.Logf("the client said:\n%s", said)
				d.model.Dump(t)
			}
		})
	}
}

// TestClientCopilotAlone checks that Copilot CLI's tools work if mailtree is not on its PATH. They also work if the
// code base has hooks for Claude Code, including hooks from earlier setups, whose arguments Copilot ignores.
func TestClientCopilotAlone(t *testing.T) {
	for _, missing := range []bool{true, false} {
		t.Run(fmt.Sprintf("missing=%t", missing), func(t *testing.T) {
			d := newDesk(t, "copilot")
			d.model.Script(t,
				model.Rule{When: "Begin the work", Times: 1, Calls: say("create", map[string]any{"path": filepath.Join(d.code, "a.txt"), "file_text": "a"})},
				model.Rule{When: "a.txt", Times: 1, Calls: say("bash", map[string]any{"command": "touch b.txt", "description": "Touch it"})},
			)
			copilotKit.prepare(d)
			d.setUp("stdio")
			d.run("mailtree", "setup", "claude", "--project")
			if missing {
				d.env = append(d.env, "PATH="+os.Getenv(clientsEnv)+":"+withoutMailtree())
			} else {
				d.write("code/.claude/settings.json", oldClaudeHooks)
				d.env = append(d.env, "MCP_MAIL_STORE="+filepath.Join(d.home, "none")) // so that plain `mailtree` fails
			}
			said := <-d.ask(copilotKit, "Begin the work.")
			for _, file := range []string{"a.txt", "b.txt"} {
				if _, err := os.Stat(filepath.Join(d.code, file)); err != nil {
					t.Errorf("a tool was denied: %v", err)
				}
			}
			sessions, _ := filepath.Glob(filepath.Join(d.home, ".mailtree/projects/*/repo/.mailtree/sessions/claude-*"))
			if len(sessions) > 0 {
				t.Errorf("the hooks for Claude Code created the sessions %v", sessions)
			}
			if t.Failed() {
				t.Logf("the client said:\n%s", said)
				d.model.Dump(t)
			}
		})
	}
}

// withoutMailtree returns the PATH without the folders that contain mailtree.
func withoutMailtree() string {
	var dirs []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if _, err := os.Stat(filepath.Join(dir, "mailtree")); err != nil {
			dirs = append(dirs, dir)
		}
	}
	return strings.Join(dirs, ":")
}

// oldClaudeHooks are the hooks for edits that earlier versions of `mailtree setup claude` wrote.
const oldClaudeHooks = `{"hooks": {
  "SessionStart": [{"hooks": [{"type": "command", "command": "mailtree", "args": ["hook", "claude"], "timeout": 10}]}],
  "PreToolUse": [{"matcher": "Edit|MultiEdit|Write|NotebookEdit", "hooks": [
    {"type": "command", "command": "mailtree", "args": ["hook", "claude"], "timeout": 5}]}]
}}
`
