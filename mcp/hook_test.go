package mcp

import (
	"os"
	"strings"
	"testing"
)

// TestIntroductionIsKnown checks that every text that tells agents to begin with create_agent also says that an
// introduced agent already has a name. Otherwise, the model would create a second agent, but would only be notified
// about the first agent's mail.
func TestIntroductionIsKnown(t *testing.T) {
	t.Parallel()
	const known = "You are NAME (mail: "
	if said := introduction("NAME", "/p"); !strings.HasPrefix(said, known) {
		t.Errorf("the introduction is %q", said)
	}
	for _, file := range []string{"mail/instructions.md", "../skills/mailtree/SKILL.md", "../clients/table.go"} {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), known+"…)") {
			t.Errorf("%s does not mention it: %v", file, err)
		}
	}
}

// TestOwnMessagingIsKnown checks that the texts that agents read first say when to use mail instead of the client's own
// messaging tools, which have similar names.
func TestOwnMessagingIsKnown(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"mail/instructions.md", "../skills/mailtree/SKILL.md"} {
		text, err := os.ReadFile(file)
		said := strings.Join(strings.Fields(string(text)), " ")
		for _, want := range []string{"list_agents", "ListAgents", "SendMessage", "for agents of other clients, for agents that are away, and for people"} {
			if err != nil || !strings.Contains(said, want) {
				t.Errorf("%s does not say %q: %v", file, want, err)
			}
		}
	}
}
