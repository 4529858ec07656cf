package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// opencodeKit is the kit for opencode, which has a built-in provider for the Messages API. When opencode first
// starts, it installs the types for its plugins from the registry, which takes up to half a minute. The files written
// here make the types look installed, so that opencode skips the installation.
var opencodeKit = kit{
	name: "opencode",
	prepare: func(d *desk) {
		d.env = append(d.env, "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1")
		d.write(".config/opencode/opencode.json", fmt.Sprintf(opencodeConfig, d.modelURL+"/anthropic/v1"))
		types := fmt.Sprintf(`{"dependencies": {"@opencode-ai/plugin": %q}}`, strings.TrimSpace(d.run("opencode", "--version")))
		d.write(".config/opencode/package.json", types)
		d.write(".config/opencode/package-lock.json", `{"lockfileVersion": 3, "packages": {"": `+types+`}}`)
		if err := os.Mkdir(filepath.Join(d.home, ".config/opencode/node_modules"), 0o700); err != nil {
			d.t.Fatal(err)
		}
	},
	ask:        []string{"opencode", "run"},
	resume:     []string{"opencode", "run", "--continue"},
	terminal:   "opencode",
	shell:      "bash",
	write:      "write",
	shellNamed: true,
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
