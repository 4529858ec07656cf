package event

// client describes a client's names for its events, and the form of the answers that it expects.
type client struct {
	kinds   map[string]Kind // kinds of events, by event name, or by event name and notification type
	editors []string        // tools that change files
	rootVar string          // the environment variable that contains Event.Root; "" if there is none
	deaf    []string        // events whose answers never reach the model, by name, or by name and source
	answer  func(a Answer, e Event) any
}

var clients = map[string]client{
	"claude": {
		kinds: map[string]Kind{
			"SessionStart":      Start,
			"UserPromptSubmit":  Prompt,
			"PreToolUse":        Edit,
			"PostToolUse":       Tool,
			"PostToolBatch":     Tool,
			"PermissionRequest": Ask,
			"Stop":              Stop,
			"StopFailure":       Stop,
			"SessionEnd":        End,
		},
		editors: []string{"Edit", "MultiEdit", "Write", "NotebookEdit"},
		deaf:    []string{"StopFailure"},
		rootVar: "CLAUDE_PROJECT_DIR",
		answer:  answerClaude,
	},
	"codex": {
		kinds: map[string]Kind{
			"SessionStart":      Start, // sent with the first prompt, not when the client starts
			"UserPromptSubmit":  Prompt,
			"PreToolUse":        Edit,
			"PostToolUse":       Tool,
			"PermissionRequest": Ask,
			"Stop":              Stop,
			"Interrupt":         Stop,
			"SessionEnd":        End,
		},
		editors: []string{"apply_patch"},
		deaf:    []string{"Interrupt"},
		answer:  answerCodex,
	},
	"gemini": {
		kinds: map[string]Kind{
			"SessionStart":                Start,
			"BeforeAgent":                 Prompt,
			"BeforeTool":                  Edit,
			"AfterTool":                   Tool,
			"Notification ToolPermission": Ask,
			"AfterAgent":                  Stop,
			"SessionEnd":                  End,
		},
		editors: []string{"write_file", "replace"},
		rootVar: "GEMINI_PROJECT_DIR",
		deaf:    []string{"SessionStart clear"},
		answer:  answerGemini,
	},
	"qwen": {
		kinds: map[string]Kind{
			"SessionStart":             Start,
			"UserPromptSubmit":         Prompt, // also sent before the model reads a tool's result
			"PreToolUse":               Edit,
			"PostToolUse":              Tool,
			"PostToolUseFailure":       Tool,
			"PermissionRequest":        Ask,
			"Stop":                     Stop,
			"StopFailure":              Stop,
			"Notification idle_prompt": Stop, // sent after every turn, even if the user ended it with Esc or "No"
			"SessionEnd":               End,
		},
		editors: []string{"edit", "write_file", "notebook_edit"},
		deaf:    []string{"StopFailure", "Notification"},
		answer:  answerCodex,
	},
	"opencode": { // our own plugin: clients/plugin
		kinds: map[string]Kind{
			"SessionStart":     Start,
			"UserPromptSubmit": Prompt,
			"PreToolUse":       Edit,
			"PostToolUse":      Tool,
			"Stop":             Stop,
			"SessionEnd":       End,
		},
		editors: []string{"edit", "write", "patch", "apply_patch", "multiedit"},
		answer:  answerPlugin,
	},
	"cursor": { // not tested with the real client
		kinds: map[string]Kind{
			"sessionStart":       Start,
			"beforeSubmitPrompt": Prompt,
			"preToolUse":         Edit,
			"postToolUse":        Tool,
			"preCompact":         Compact,
			"stop":               Stop,
			"sessionEnd":         End,
		},
		editors: []string{"Write", "Edit", "MultiEdit", "StrReplace", "Delete"},
		deaf:    []string{"beforeSubmitPrompt", "stop aborted", "stop error"},
		rootVar: "CURSOR_PROJECT_DIR",
		answer:  answerCursor,
	},
	"copilot": {
		kinds: map[string]Kind{
			"SessionStart":                   Start,
			"UserPromptSubmit":               Prompt,
			"PreToolUse":                     Edit,
			"PostToolUse":                    Tool,
			"PreCompact":                     Compact,
			"Notification permission_prompt": Ask, // unlike PermissionRequest, sent only if the user is actually asked
			"Stop":                           Stop,
			"ErrorOccurred":                  Stop,
			"SessionEnd":                     End,
		},
		// Copilot uses Claude Code's tool names for events with PascalCase names, and its own for events with
		// camelCase names.
		editors: []string{"Edit", "Write", "edit", "create", "str_replace", "str_replace_editor", "apply_patch"},
		deaf:    []string{"UserPromptSubmit", "ErrorOccurred"},
		answer:  answerCopilot,
	},
	"antigravity": { // not tested with the real client; PreInvocation is sent before each request to the model
		kinds:  map[string]Kind{"PreInvocation": Tool},
		answer: answerAntigravity,
	},
}

// Known reports whether the client is known.
func Known(name string) bool {
	_, ok := clients[name]
	return ok
}

func answerClaude(a Answer, e Event) any {
	s := &specific{Event: e.Name, Context: a.forModel()}
	switch {
	case e.Kind == End, e.Kind == Ask: // the client ignores the answer, or only the user may decide
		return nil
	case e.Kind == Edit && a.Deny != "":
		s.Decision, s.Reason = "deny", a.Deny
	case s.Context == "":
		return nil
	}
	return reply{Specific: s}
}

// answerCodex formats an answer for Codex or Qwen Code. These clients use the same form as Claude Code, except for a
// Stop. If a Stop is refused, the turn continues and the model gets the reason.
func answerCodex(a Answer, e Event) any {
	switch {
	case e.Kind != Stop:
		return answerClaude(a, e)
	case a.forModel() == "":
		return nil
	}
	return reply{Decision: "block", Reason: a.forModel()}
}

// answerGemini formats an answer for Gemini CLI. If a Stop is refused, the turn continues and the model gets the
// reason. The warning for an edit goes to the user, because the model would not see it.
func answerGemini(a Answer, e Event) any {
	switch {
	case e.Kind == Edit && a.Deny != "":
		return reply{Decision: "deny", Reason: a.Deny}
	case e.Kind == Edit && a.Warn != "":
		return reply{System: a.Warn}
	case e.Kind == Stop && a.forModel() != "":
		return reply{Decision: "deny", Reason: a.forModel()}
	case e.Kind == Edit || e.Kind == Stop:
		return nil
	}
	return answerClaude(a, e)
}
