package agentmail

import (
	"mailtree/maildir/refusal"
	"mailtree/mcp/tool"
)

// words defines the wording of the tools' refusals. Programs written for agentmail depend on the exact text of one
// refusal. See docs/reference/agentmail.md.
var words = refusal.Words{
	Args: map[refusal.Field]string{
		refusal.Recipients: "recipient",
		refusal.To:         "recipient",
		refusal.Body:       "message",
		refusal.Status:     "status",
	},
	Phrases: tool.Phrases(map[string]string{
		"make a project":       "A project is created when an agent first works in it.",
		"find agents":          "list-recipients lists the agents.",
		"make an agent":        "",
		"find messages":        "",
		"find threads":         "",
		"read a thread":        "",
		"name the reader":      "",
		"list the inbox":       "receive returns your oldest unread message.",
		"look anywhere":        "list-recipients lists the agents.",
		"answer somebody else": "list-recipients lists the agents.",
		"name one project":     "Specify one of them with --project.",
		"go on":                "continue where the previous response ended",
	}),
	Says: map[refusal.What]string{
		refusal.StatusUnknown: "Invalid status: {=name}. Valid: ready, work, offline",
	},
}
