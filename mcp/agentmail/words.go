package agentmail

import (
	"mailtree/maildir/refusal"
	"mailtree/mcp/tool"
)

// words is the wording of the tools. Programs written for agentmail depend on one of the sentences. See
// docs/agentmail.md.
var words = refusal.Words{
	Args: map[refusal.Field]string{
		refusal.Recipients: "recipient",
		refusal.To:         "recipient",
		refusal.Body:       "message",
		refusal.Status:     "status",
	},
	Phrases: tool.Phrases(map[string]string{
		"make a project":       "One is made when an agent first works in it.",
		"find agents":          "list-recipients shows who is there.",
		"make an agent":        "",
		"find messages":        "",
		"find threads":         "",
		"read a thread":        "",
		"list unread":          "",
		"list the inbox":       "receive takes what is.",
		"look anywhere":        "list-recipients shows who is there.",
		"answer somebody else": "list-recipients shows who is there.",
		"name one project":     "Name one with --project.",
		"go on":                "go on where the answer before ended",
	}),
	Says: map[refusal.What]string{
		refusal.StatusUnknown: "Invalid status: {=name}. Valid: ready, work, offline",
	},
}
