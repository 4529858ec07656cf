package main

import "fmt"

// opencodeKit: opencode has the provider for the Messages API built in.
var opencodeKit = kit{
	name: "opencode",
	prepare: func(d *desk) {
		d.env = append(d.env, "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1")
		d.write(".config/opencode/opencode.json", fmt.Sprintf(opencodeConfig, d.modelURL+"/anthropic/v1"))
	},
	ask:      []string{"opencode", "run"},
	terminal: "opencode",
	shell:    "bash",
	write:    "write",
	shellInput: func(command string) map[string]any {
		return map[string]any{"command": command, "description": "Wait"}
	},
	writeInput: func(path, content string) any {
		return map[string]any{"filePath": path, "content": content}
	},
}

const opencodeConfig = `{
  "autoupdate": false,
  "share": "disabled",
  "model": "mock/mock-1",
  "small_model": "mock/mock-1",
  "permission": {"edit": "allow", "bash": "allow"},
  "provider": {"mock": {
    "npm": "@ai-sdk/anthropic",
    "name": "Mock",
    "options": {"baseURL": %q, "apiKey": "none"},
    "models": {"mock-1": {"name": "Mock"}}
  }}
}
`
