package main

import "mailtree/fixtures/tmuxtest"

// geminiKit is the kit for Gemini CLI, which reads the model's address from its environment. If the environment names
// the model, Gemini CLI does not use a second model to classify prompts. Only text typed into its window wakes it, and
// the server types that text because NUDGE is set to tmux.
var geminiKit = kit{
	name: "gemini",
	prepare: func(d *desk) {
		d.env = append(d.env, "GOOGLE_GEMINI_BASE_URL="+d.modelURL+"/gemini", "GEMINI_API_KEY=none",
			"GEMINI_MODEL=gemini-2.5-pro", "GEMINI_CLI_TRUST_WORKSPACE=true", "GEMINI_CLI_NO_RELAUNCH=true", "NUDGE=tmux")
		d.restart()
		d.write(".gemini/settings.json", geminiSettings)
	},
	ask:      []string{"gemini", "--approval-mode", "yolo", "-p"},
	resume:   []string{"gemini", "--approval-mode", "yolo", "--resume", "latest", "-p"},
	terminal: "gemini --approval-mode yolo",
	greet:    func(screen *tmuxtest.Screen) { screen.Await("Type your message") },
	shell:    "run_shell_command",
	write:    "write_file",
	shellInput: func(command string) map[string]any {
		return map[string]any{"command": command}
	},
	writeInput: func(path, content string) any {
		return map[string]any{"file_path": path, "content": content}
	},
}

const geminiSettings = `{
  "general": {"enableAutoUpdate": false},
  "privacy": {"usageStatisticsEnabled": false},
  "security": {"auth": {"selectedType": "gemini-api-key"}}
}
`
