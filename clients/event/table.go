package event

// client is how one client names its events, and how it is answered.
type client struct {
	kinds   map[string]Kind
	editors []string // tools that change files
	rootVar string   // the variable that names Event.Root; "": none does
	answer  func(a Answer, e Event) any
}

var clients = map[string]client{
	"claude": {
		kinds: map[string]Kind{
			"SessionStart":     Start,
			"UserPromptSubmit": Prompt,
			"PreToolUse":       Edit,
			"PostToolUse":      Tool,
			"PostToolBatch":    Tool,
			"Stop":             Stop,
			"SessionEnd":       End,
		},
		editors: []string{"Edit", "MultiEdit", "Write", "NotebookEdit"},
		rootVar: "CLAUDE_PROJECT_DIR",
		answer:  answerClaude,
	},
}

// Known reports whether there is a client of that name.
func Known(name string) bool {
	_, ok := clients[name]
	return ok
}

func answerClaude(a Answer, e Event) any {
	s := &specific{Event: e.Name, Context: a.forModel()}
	switch {
	case e.Kind == End: // nobody reads it
		return nil
	case e.Kind == Edit && a.Deny != "":
		s.Decision, s.Reason = "deny", a.Deny
	case s.Context == "":
		return nil
	}
	return reply{s}
}
