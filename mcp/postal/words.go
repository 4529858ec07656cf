package postal

import (
	"mailtree/maildir/refusal"
	"mailtree/mcp/tool"
)

var words = refusal.Words{
	Args: map[refusal.Field]string{refusal.Recipients: "name", refusal.To: "name", refusal.Body: "msg", refusal.Key: "msg_id"},
	Phrases: tool.Phrases(map[string]string{
		"make a project":       "?project= creates a project if you pass its absolute path.",
		"find agents":          "",
		"make an agent":        "send_to_agent creates an agent the first time you send to it.",
		"find messages":        "",
		"find threads":         "",
		"read a thread":        "",
		"name the reader":      "",
		"list the inbox":       "",
		"look anywhere":        "",
		"answer somebody else": "send_to_agent can write to any agent.",
		"name one project":     "Specify one of them with ?project=.",
		"go on":                "continue where the previous response ended",
	}),
}
