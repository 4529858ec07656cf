package clients

import "mailtree/clients/edit"

// This file describes the hooks of each client: the events on which the client runs the command, and the form of its
// handlers. A matcher selects the tools that change files. Package clients/event defines the meaning of the events.

// These are the timeouts, in seconds, of Claude Code's hooks that wait for mail. The current timeout is about 23 days.
// Earlier setups wrote the old timeout of eight hours.
const (
	claudeWait    = 2_000_000
	claudeOldWait = "28800"
)

func claudeHooks() hooks {
	return hooks{
		user:    place{env: "CLAUDE_CONFIG_DIR", base: ".claude", files: []string{"settings.json"}},
		project: ".claude/settings.json",
		path:    []string{"hooks"},
		handler: func(e hookEvent, l line) []edit.Key {
			keys := []edit.Key{
				{Name: "type", Value: "command"},
				{Name: "command", Value: l.posix},
			}
			if e.wait {
				keys = append(keys, edit.Key{Name: "asyncRewake", Value: true})
			}
			return append(keys, edit.Key{Name: "timeout", Value: e.seconds})
		},
		guarded: true,
		missing: forUser,
		fresh:   "startup",
		off:     claudeOff,
		events: []hookEvent{
			{name: "SessionStart", seconds: 10},
			{name: "SessionStart", seconds: claudeWait, wait: true}, // also wakes a session that has not had a turn yet
			{name: "UserPromptSubmit", seconds: 5},
			// Needed because the previous waiting hook may have exited to start this turn.
			{name: "UserPromptSubmit", seconds: claudeWait, wait: true},
			{name: "PreToolUse", matcher: "Edit|MultiEdit|Write|NotebookEdit", seconds: 5},
			{name: "PostToolBatch", seconds: 5},
			{name: "PermissionRequest", seconds: 5},
			{name: "Stop", seconds: 10},
			{name: "StopFailure", seconds: 5},
			{name: "SessionEnd", seconds: 5},
		},
	}
}

func codexHooks() hooks {
	return hooks{
		user:    place{env: "CODEX_HOME", base: ".codex", files: []string{"hooks.json"}},
		project: ".codex/hooks.json",
		top:     true,
		path:    []string{"hooks"},
		handler: shellHandler,
		missing: forUser,
		off:     codexOff,
		events: []hookEvent{
			{name: "SessionStart", seconds: 10},
			{name: "UserPromptSubmit", seconds: 5},
			{name: "PreToolUse", matcher: "apply_patch|Bash", seconds: 5}, // the shell can apply patches too
			{name: "PostToolUse", seconds: 5},
			{name: "Stop", seconds: 10},
			{name: "SessionEnd", seconds: 3}, // the maximum that Codex allows
			{name: "Interrupt", seconds: 3},  // also the maximum that Codex allows
			{name: "PermissionRequest", seconds: 5},
		},
		trust: "Codex runs a hook only after you trust it: start codex, type /hooks, and trust mailtree's hooks",
	}
}

func geminiHooks() hooks {
	return hooks{
		user:    place{env: "GEMINI_CLI_HOME", files: []string{".gemini/settings.json"}},
		project: ".gemini/settings.json",
		format:  edit.JSON{Comments: true},
		path:    []string{"hooks"},
		handler: namedHandler,
		missing: forUser,
		off:     geminiOff,
		events: []hookEvent{
			{name: "SessionStart", seconds: 10},
			{name: "BeforeAgent", seconds: 5},
			{name: "BeforeTool", matcher: "write_file|replace", seconds: 5},
			{name: "AfterTool", seconds: 5},
			{name: "AfterAgent", seconds: 10},
			{name: "Notification", seconds: 5},
			{name: "SessionEnd", seconds: 5},
		},
	}
}

// qwenHooks writes timeouts in milliseconds. Every version of Qwen Code reads numbers of 1000 or more as
// milliseconds. Smaller numbers are milliseconds in earlier versions and seconds in later ones.
func qwenHooks() hooks {
	return hooks{
		user:    place{env: "QWEN_HOME", base: ".qwen", files: []string{"settings.json"}},
		project: ".qwen/settings.json",
		format:  edit.JSON{Comments: true},
		path:    []string{"hooks"},
		handler: namedHandler,
		missing: forQwen,
		off:     qwenOff,
		events: []hookEvent{
			{name: "SessionStart", seconds: 10},
			{name: "UserPromptSubmit", seconds: 5},
			{name: "PreToolUse", matcher: "edit|write_file|notebook_edit", seconds: 5},
			{name: "PostToolUse", seconds: 5},
			{name: "PostToolUseFailure", seconds: 5},
			{name: "PermissionRequest", seconds: 5},
			{name: "Notification", matcher: "idle_prompt", seconds: 5},
			{name: "Stop", seconds: 10},
			{name: "StopFailure", seconds: 5},
			{name: "SessionEnd", seconds: 5},
		},
	}
}

func opencodeHooks() hooks {
	return hooks{
		user:    place{env: "XDG_CONFIG_HOME", base: ".config", files: []string{"opencode/plugins/mailtree.js"}},
		project: ".opencode/plugins/mailtree.js",
		top:     true,
		plugin:  true,
	}
}

func cursorHooks() hooks {
	return hooks{
		user:    place{base: ".cursor", files: []string{"hooks.json"}},
		project: ".cursor/hooks.json",
		path:    []string{"hooks"},
		flat:    true,
		root:    []edit.Key{{Name: "version", Value: 1}},
		handler: func(e hookEvent, l line) []edit.Key {
			return []edit.Key{
				{Name: "command", Value: l.posix},
				{Name: "timeout", Value: e.seconds},
			}
		},
		events: []hookEvent{
			{name: "sessionStart", seconds: 10},
			{name: "beforeSubmitPrompt", seconds: 5},
			{name: "preToolUse", matcher: "Write|Edit|MultiEdit|StrReplace|Delete", seconds: 5},
			{name: "postToolUse", seconds: 5},
			{name: "preCompact", seconds: 5},
			{name: "stop", seconds: 10},
			{name: "sessionEnd", seconds: 5},
		},
	}
}

// copilotHooks uses Claude Code's event names, because Copilot then includes the event name in the hook's input.
func copilotHooks() hooks {
	return hooks{
		user:    place{env: "COPILOT_HOME", base: ".copilot", files: []string{"hooks/mailtree.json"}},
		project: ".github/hooks/mailtree.json",
		top:     true,
		path:    []string{"hooks"},
		flat:    true,
		root:    []edit.Key{{Name: "version", Value: 1}},
		handler: func(e hookEvent, l line) []edit.Key {
			return []edit.Key{
				{Name: "type", Value: "command"},
				{Name: "bash", Value: l.posix},
				{Name: "powershell", Value: l.powershell},
				{Name: "timeoutSec", Value: e.seconds},
			}
		},
		guarded: true,
		missing: forModel,
		events: []hookEvent{
			{name: "SessionStart", seconds: 10},
			{name: "UserPromptSubmit", seconds: 5},
			{name: "PreToolUse", seconds: 5},
			{name: "PostToolUse", seconds: 5},
			{name: "PreCompact", seconds: 5},
			{name: "Notification", seconds: 5},
			{name: "Stop", seconds: 10},
			{name: "ErrorOccurred", seconds: 5},
			{name: "SessionEnd", seconds: 5},
		},
	}
}

// antigravityHooks omits the events that require a decision as the answer, because Antigravity would treat even an
// empty answer as a decision.
func antigravityHooks() hooks {
	return hooks{
		user:    place{base: ".gemini/config", files: []string{"hooks.json"}},
		path:    []string{program},
		flat:    true,
		handler: shellHandler,
		events: []hookEvent{
			{name: "PreInvocation", seconds: 5}, // before each request to the model
		},
	}
}

func shellHandler(e hookEvent, l line) []edit.Key {
	return []edit.Key{
		{Name: "type", Value: "command"},
		{Name: "command", Value: l.posix},
		{Name: "timeout", Value: e.seconds},
	}
}

// namedHandler returns a handler that has a name and a timeout in milliseconds.
func namedHandler(e hookEvent, l line) []edit.Key {
	return []edit.Key{
		{Name: "type", Value: "command"},
		{Name: "name", Value: program},
		{Name: "command", Value: l.posix},
		{Name: "timeout", Value: 1000 * e.seconds},
	}
}
