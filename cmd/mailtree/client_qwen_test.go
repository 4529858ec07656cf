package main

// qwenKit is the kit for Qwen Code, which reads the model's address from its environment. With tool search turned
// off, the model sees all tools from the start. Nothing wakes Qwen Code, because the server mistakes the placeholder
// in its prompt for text that the user is typing.
var qwenKit = kit{
	name: "qwen",
	prepare: func(d *desk) {
		d.env = append(d.env, "OPENAI_BASE_URL="+d.modelURL+"/openai/v1", "OPENAI_API_KEY=none", "OPENAI_MODEL=gpt-5",
			"QWEN_TELEMETRY_ENABLED=0")
		d.write(".qwen/settings.json", qwenSettings)
	},
	ask:    []string{"qwen", "--approval-mode", "yolo", "-p"},
	resume: []string{"qwen", "--approval-mode", "yolo", "--continue", "-p"},
	shell:  "run_shell_command",
	write:  "write_file",
	system: true,
	shellInput: func(command string) map[string]any {
		return map[string]any{"command": command, "is_background": false}
	},
	writeInput: func(path, content string) any {
		return map[string]any{"file_path": path, "content": content}
	},
}

const qwenSettings = `{
  "general": {"enableAutoUpdate": false},
  "privacy": {"usageStatisticsEnabled": false},
  "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": false}},
  "tools": {"toolSearch": {"enabled": false}}
}
`
