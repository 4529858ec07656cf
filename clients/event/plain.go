package event

// This file formats the answers for clients whose form differs from Claude Code's.

// answerPlugin formats an answer for our own plugin, which carries out the answer itself.
func answerPlugin(a Answer, _ Event) any {
	if a == (Answer{}) {
		return nil
	}
	return struct {
		Tell  string `json:"tell,omitempty"`
		Deny  string `json:"deny,omitempty"`
		Warn  string `json:"warn,omitempty"`
		Agent string `json:"agent,omitempty"`
	}(a)
}

type cursorReply struct {
	Continue   bool              `json:"continue,omitempty"`
	Permission string            `json:"permission,omitempty"`
	ToAgent    string            `json:"agent_message,omitempty"`
	ToPerson   string            `json:"user_message,omitempty"`
	Context    string            `json:"additional_context,omitempty"`
	FollowUp   string            `json:"followup_message,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
}

func answerCursor(a Answer, e Event) any {
	switch {
	case e.Name == "beforeSubmitPrompt": // Cursor may hold back the prompt if it gets no answer
		return cursorReply{Continue: true}
	case e.Kind == Edit && a.Deny != "":
		return cursorReply{Permission: "deny", ToAgent: a.Deny, ToPerson: a.Deny}
	case a.forModel() == "" || e.Kind == Edit:
		return nil
	case e.Kind == Stop:
		return cursorReply{FollowUp: a.forModel()}
	case e.Kind == Start && a.Agent != "":
		return cursorReply{Context: a.forModel(), Env: map[string]string{"AGENT_NAME": a.Agent}}
	}
	return cursorReply{Context: a.forModel()}
}

type copilotReply struct {
	Decision   string `json:"decision,omitempty"`
	Reason     string `json:"reason,omitempty"`
	Permission string `json:"permissionDecision,omitempty"`
	Why        string `json:"permissionDecisionReason,omitempty"`
	Context    string `json:"additionalContext,omitempty"`
}

func answerCopilot(a Answer, e Event) any {
	switch {
	case e.Kind == Edit && a.Deny != "":
		return copilotReply{Permission: "deny", Why: a.Deny}
	case a.forModel() == "" || e.Kind == End:
		return nil
	case e.Kind == Stop:
		return copilotReply{Decision: "block", Reason: a.forModel()}
	}
	return copilotReply{Context: a.forModel()}
}

func answerAntigravity(a Answer, _ Event) any {
	type step struct {
		Message string `json:"ephemeralMessage"`
	}
	if a.forModel() == "" {
		return nil
	}
	return struct {
		Steps []step `json:"injectSteps"`
	}{[]step{{a.forModel()}}}
}
