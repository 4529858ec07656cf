package main

import "fmt"

// claudeKit is the kit for Claude Code. Claude Code asks no questions at startup if its configuration file says that
// the user has finished onboarding and trusts the folder. A token, unlike a key, needs no approval.
var claudeKit = kit{
	name: "claude",
	prepare: func(d *desk) {
		d.env = append(d.env, "ANTHROPIC_BASE_URL="+d.modelURL+"/anthropic", "ANTHROPIC_AUTH_TOKEN=none",
			"ENABLE_TOOL_SEARCH=false", "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1")
		d.write(".claude.json", fmt.Sprintf(`{"hasCompletedOnboarding": true, "projects": {%q: {"hasTrustDialogAccepted": true}}}`, d.code))
	},
	ask:        []string{"claude", "--permission-mode", "acceptEdits", "--allowedTools", "Bash,mcp__mail,mcp__plugin_mailtree_mail", "-p"},
	resume:     []string{"claude", "--permission-mode", "acceptEdits", "--continue", "-p"},
	terminal:   "claude --permission-mode acceptEdits --allowedTools Bash,mcp__mail,mcp__plugin_mailtree_mail",
	shell:      "Bash",
	write:      "Write",
	shellNamed: true,
	shellInput: func(command string) map[string]any {
		return map[string]any{"command": command, "description": "Wait"}
	},
	writeInput: func(path, content string) any {
		return map[string]any{"file_path": path, "content": content}
	},
}
